/*
 * Memory that is given back as a whole: what a compiled policy or a read
 * configuration is made of.
 */
#ifndef POLICY_ARENA_H
#define POLICY_ARENA_H

#include "base/bytes.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    size_t used, size; /* of the newest chunk */
};

/* Zeroed, aligned for any object; NULL when out of memory. */
void *arena_alloc(struct arena *a, size_t size);
/* n objects of a size. */
void *arena_array(struct arena *a, size_t n, size_t size);
/* A copy of v with a NUL behind it. NULL p when out of memory. */
struct view arena_copy(struct arena *a, struct view v);
void arena_free(struct arena *a);

#endif

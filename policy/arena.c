#include "policy/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_SIZE = 16384, ALLOC_MAX = 1 << 28 };

struct arena_chunk {
    struct arena_chunk *next;
    alignas(max_align_t) uint8_t bytes[];
};

void *arena_alloc(struct arena *a, size_t size) {
    if (size > ALLOC_MAX)
        return NULL;
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (!a->chunks || size > a->size - a->used) {
        size_t n = size > CHUNK_SIZE ? size : CHUNK_SIZE;
        struct arena_chunk *chunk = calloc(1, sizeof *chunk + n);
        if (!chunk)
            return NULL;
        chunk->next = a->chunks;
        a->chunks = chunk;
        a->size = n;
        a->used = 0;
    }
    void *p = a->chunks->bytes + a->used;
    a->used += size;
    return p;
}

void *arena_array(struct arena *a, size_t n, size_t size) {
    if (size != 0 && n > ALLOC_MAX / size)
        return NULL;
    return arena_alloc(a, n * size);
}

struct view arena_copy(struct arena *a, struct view v) {
    if (v.n >= ALLOC_MAX)
        return (struct view){NULL, 0};
    uint8_t *p = arena_alloc(a, v.n + 1);
    if (!p)
        return (struct view){NULL, 0};
    view_copy(v, p);
    return view_of(p, v.n);
}

void arena_free(struct arena *a) {
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;
        free(a->chunks);
        a->chunks = next;
    }
    *a = (struct arena){0};
}

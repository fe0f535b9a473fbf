/*
 * Secrets: the one locked, undumpable arena of a process (promise P2).
 *
 * The arena is memory from memfd_secret where the kernel has it (invisible
 * even to the kernel's own mappings), else anonymous memory; locked, left out
 * of core dumps and not inherited by forks. Everything that may hold a real
 * secret lives here: leases, patterns of the guard, serialisation buffers,
 * channel buffers between broker and egress. There is no function that prints.
 *
 * Only broker and egress call secret_arena_open.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include "base/bytes.h"

/*
 * Makes the arena, once, size bytes rounded up to pages, before the process
 * narrows its rights. ERR_SYSTEM (RLIMIT_MEMLOCK is the usual cause).
 */
MUST_USE int secret_arena_open(size_t size);
/* Zeroed memory inside the arena, 16-byte aligned; NULL when full or no arena was opened. */
void *secret_alloc(size_t size);
/* The same content in at least size bytes, perhaps elsewhere, what was left there cleared; NULL when full: p stays. */
void *secret_realloc(void *p, size_t size);
/* Clears and gives back; NULL is fine. */
void secret_free(void *p);
/* Overwrites in a way the compiler keeps. */
void secret_clear(void *p, size_t n);
/* Whether p points into the arena. */
bool secret_owns(const void *p);
/* Compares in time that depends on n only. */
bool secret_equal(const void *a, const void *b, size_t n);
/* Bytes in use, for status and leak tests. */
size_t secret_in_use(void);

#endif

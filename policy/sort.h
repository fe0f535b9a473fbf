/*
 * Sorting in place, without memory and without system calls: the C library's
 * qsort asks the system how much memory there is before it sorts more than a
 * kilobyte, which confined roles may not.
 */
#ifndef POLICY_SORT_H
#define POLICY_SORT_H

#include <stddef.h>

/* Heap sort: n items of a size of at most 512 bytes, by order, which is given ctx. Not stable. */
void sort_items(void *items, size_t n, size_t size,
                int (*order)(const void *a, const void *b, const void *ctx), const void *ctx);

#endif

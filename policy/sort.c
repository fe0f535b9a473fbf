#include "policy/sort.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { ITEM_MAX = 512 };

struct heap {
    uint8_t *items;
    size_t size;
    int (*order)(const void *a, const void *b, const void *ctx);
    const void *ctx;
};

static uint8_t *item(const struct heap *h, size_t i) {
    return h->items + i * h->size;
}

static void swap(const struct heap *h, size_t i, size_t k) {
    uint8_t between[ITEM_MAX];
    memcpy(between, item(h, i), h->size);
    memcpy(item(h, i), item(h, k), h->size);
    memcpy(item(h, k), between, h->size);
}

static void sink(const struct heap *h, size_t i, size_t n) {
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && h->order(item(h, child), item(h, child + 1), h->ctx) < 0)
            child++;
        if (h->order(item(h, i), item(h, child), h->ctx) >= 0)
            return;
        swap(h, i, child);
    }
}

void sort_items(void *items, size_t n, size_t size,
                int (*order)(const void *a, const void *b, const void *ctx), const void *ctx) {
    struct heap h = {items, size, order, ctx};
    assert(size <= ITEM_MAX);
    for (size_t i = n / 2; i > 0; i--)
        sink(&h, i - 1, n);
    for (size_t left = n; left > 1; left--) {
        swap(&h, 0, left - 1);
        sink(&h, 0, left - 1);
    }
}

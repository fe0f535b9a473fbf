#include "base/table.h"

#include <assert.h>
#include <stdlib.h>

static size_t place(const struct table *t, uint32_t id) {
    /* Fibonacci hashing spreads ids that count up. */
    return (size_t)((uint64_t)id * UINT64_C(11400714819323198485) >> 32) & (t->cap - 1);
}

static struct table_slot *find(const struct table *t, uint32_t id) {
    size_t i = place(t, id);
    while (t->slots[i].id != 0 && t->slots[i].id != id)
        i = (i + 1) & (t->cap - 1);
    return &t->slots[i];
}

static int grow(struct table *t) {
    struct table old = *t;
    size_t cap = old.cap ? old.cap * 2 : 16;
    struct table_slot *slots = calloc(cap, sizeof *slots);
    if (!slots)
        return ERR_MEMORY;
    t->slots = slots;
    t->cap = cap;
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].id != 0)
            *find(t, old.slots[i].id) = old.slots[i];
    free(old.slots);
    return 0;
}

int table_put(struct table *t, uint32_t id, void *object) {
    assert(id != 0);
    if ((t->n + 1) * 2 > t->cap && grow(t) != 0)
        return ERR_MEMORY;
    struct table_slot *slot = find(t, id);
    if (slot->id != 0)
        return ERR_EXISTS;
    *slot = (struct table_slot){id, object};
    t->n++;
    return 0;
}

void *table_get(const struct table *t, uint32_t id) {
    if (t->n == 0 || id == 0)
        return NULL;
    const struct table_slot *slot = find(t, id);
    return slot->id != 0 ? slot->object : NULL;
}

void *table_take(struct table *t, uint32_t id) {
    void *object = table_get(t, id);
    if (!object)
        return NULL;
    size_t hole = (size_t)(find(t, id) - t->slots), mask = t->cap - 1;
    t->slots[hole].id = 0;
    t->n--;
    /* Move up those behind that would no longer be found past the hole. */
    for (size_t i = (hole + 1) & mask; t->slots[i].id != 0; i = (i + 1) & mask) {
        size_t home = place(t, t->slots[i].id);
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        t->slots[hole] = t->slots[i];
        t->slots[i].id = 0;
        hole = i;
    }
    return object;
}

void *table_any(const struct table *t, uint32_t *id) {
    for (size_t i = 0; t->n > 0 && i < t->cap; i++) {
        if (t->slots[i].id == 0)
            continue;
        *id = t->slots[i].id;
        return t->slots[i].object;
    }
    return NULL;
}

void table_each(const struct table *t, void (*visit)(void *ctx, uint32_t id, void *object),
                void *ctx) {
    for (size_t i = 0; i < t->cap; i++)
        if (t->slots[i].id != 0)
            visit(ctx, t->slots[i].id, t->slots[i].object);
}

void table_free(struct table *t) {
    free(t->slots);
    *t = (struct table){NULL, 0, 0};
}

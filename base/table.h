/*
 * Tables from 32-bit ids to objects somebody else owns: tunnels, exchanges, asks in flight.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct table {
    struct table_slot {
        uint32_t id; /* 0: free */
        void *object;
    } * slots;
    size_t n, cap; /* cap is 0 or a power of two, at least twice n */
};

/* ids are not 0. ERR_EXISTS, ERR_MEMORY. */
MUST_USE int table_put(struct table *t, uint32_t id, void *object);
/* NULL when there is none. */
void *table_get(const struct table *t, uint32_t id);
/* Takes it out; NULL when there was none. */
void *table_take(struct table *t, uint32_t id);
/* Any object of the table, or NULL when it is empty: to take out all. */
void *table_any(const struct table *t, uint32_t *id);
/* Calls visit for each; visit may change objects, not the table. */
void table_each(const struct table *t, void (*visit)(void *ctx, uint32_t id, void *object),
                void *ctx);
void table_free(struct table *t);

#endif

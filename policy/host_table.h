/*
 * Hosts of a policy by hash: which host rules cover a host, the most specific
 * first, without walking over the others. Internal to policy/.
 */
#ifndef POLICY_HOST_TABLE_H
#define POLICY_HOST_TABLE_H

#include "policy/arena.h"
#include "policy/pattern.h"

struct host_rule;

struct host_table {
    const struct host_rule **slots; /* the first rule of a pattern; more behind its `same` */
    size_t mask;                    /* slots - 1, a power of two less one */
};

/* Takes room for n rules. ERR_MEMORY. */
MUST_USE int host_table_init(struct host_table *t, struct arena *a, size_t n);
void host_table_add(struct host_table *t, struct host_rule *h);

/* A walk over what covers one host. */
struct host_walk {
    const struct host_table *table;
    struct host_facts host;
    struct view rest;             /* what is left to be tried behind a `**.` */
    const struct host_rule *next; /* of the pattern in hand */
    unsigned level;
};

/* The facts must outlive the walk. */
struct host_walk host_walk_of(const struct host_table *t, const struct host_facts *host);
/*
 * The next rule, or NULL. *level says how specific its pattern is: 0 the name itself, 1 one label before
 * it, from 2 on any, longer bases first; equal for rules with equal patterns only.
 */
const struct host_rule *host_walk_next(struct host_walk *w, unsigned *level);

#endif

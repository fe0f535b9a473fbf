/*
 * Which requests two policies judge differently (`exeat policy diff`). Pure.
 *
 * Computed on the rules: hosts, ports, methods, paths, conditions, credentials and sandboxes are
 * parted into classes that no rule of either policy tells apart, and one request of each class is put to
 * the evaluator with both policies, but where the services, lines and grants that have a say are the same in
 * both. So whatever is found is an example that both confirm, and where nothing
 * is found and the result is `whole`, there is nothing (within docs/policy.md, "What diff compares").
 */
#ifndef POLICY_DIFF_H
#define POLICY_DIFF_H

#include "policy/policy.h"

enum diff_kind {
    DIFF_ALLOWED,    /* was refused, is allowed */
    DIFF_DENIED,     /* was allowed, is refused */
    DIFF_CREDENTIAL, /* carries another credential */
    DIFF_UNREAD,     /* was read before it left, and is spliced now */
    DIFF_READ,       /* the other way round */
    DIFF_LAXER,      /* its grant has fewer or wider limits, or its splice a wider budget */
    DIFF_STRICTER,   /* its grant has other limits */
    DIFF_FURTHER,    /* its host may be at further addresses, or show something else */
    DIFF_NEARER,     /* the other way round */
    DIFF_KINDS,
};

struct diff_found {
    enum diff_kind kind;
    struct view sandbox;
    struct view method, url; /* of a connection: "CONNECT" */
    struct view more;        /* what else the request is: its credential, fields, body, address */
    struct verdict before, after;
};

enum { DIFFERENCES_MAX = 1000 };

struct diff_result {
    size_t requests; /* that were put to both */
    size_t found[DIFF_KINDS];
    bool whole;
    const char *why; /* not whole: a sentence fragment */
};

/*
 * Calls found for one request of each difference: of those by which the same clauses decide for the same
 * sandbox. Sandboxes with the same rights in both policies count as one. ERR_MEMORY.
 */
MUST_USE int policy_diff(const struct policy *before, const struct policy *after,
                         void (*found)(void *ctx, const struct diff_found *f), void *ctx,
                         struct diff_result *result);

#endif

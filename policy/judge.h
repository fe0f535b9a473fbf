/*
 * The parts of the evaluator that policy_judge and policy_explain share.
 * Internal to policy/.
 */
#ifndef POLICY_JUDGE_H
#define POLICY_JUDGE_H

#include "policy/rules.h"

/* The most specific line so far. */
struct choice {
    const struct rule *rule;
    unsigned level; /* of its host, lower is more specific */
};

/* A line of which only conditions do not hold. */
struct unmet {
    const struct rule *rule;
    const struct condition *condition; /* the first that does not */
    unsigned level;
    bool granted;
};

/* A search for the lines that match a request. */
struct search {
    const struct who *who;
    const struct request_facts *facts;
    struct body_needs
        *needs; /* not NULL: what the body would say is taken to be in favour, and noted here */
    uint64_t method;
    unsigned level;
    struct choice any, granted, anonymous;
    struct unmet unmet;        /* the nearest of operations */
    const struct rule *never;  /* the first in the text */
    bool is_dns;               /* only lines that name such messages take it */
    const struct rule *no_dns; /* a granted one that does not */
    bool unsure;               /* something was noted */
    bool favoured;             /* needs was asked for: without it the verdict may be another */
    uint64_t sizes;            /* the greatest limit that a body's size is compared with */
};

/* Whether and why who may connect. */
struct verdict judge_door(const struct policy *p, const struct who *who, bool tls,
                          const struct authority *a, const struct host_facts *host);
/* Whether the operations of a service may be asked for by such a request at all. */
bool service_takes(const struct service *s, const struct request_facts *f);

#endif

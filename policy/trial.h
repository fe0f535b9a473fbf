/*
 * Trials: one request written as text, sent the way of the data path
 * (authority_parse, target_parse, provenance, policy_judge). For expectations
 * and for `exeat policy explain`.
 */
#ifndef POLICY_TRIAL_H
#define POLICY_TRIAL_H

#include "policy/policy.h"

/* What the trial puts into the service's place; without a credential, foreign goes into Authorization. */
enum with {
    WITH_DEFAULT, /* ours where the service has a credential and no field carries one, else none */
    WITH_OURS,
    WITH_NONE,
    WITH_FOREIGN,
};

struct trial {
    struct view sandbox;
    struct view method;
    bool tls;
    struct authority authority;
    struct view target; /* path and query; empty is "/" */
    enum with with;
    const struct field *fields; /* a value that is a placeholder counts as ours */
    size_t n_fields;
    struct view type; /* of the body, as if it stood in Content-Type; empty: not said */
    struct view body; /* read where the verdict depends on what it says */
    /* what a request may also be that is not written as text */
    uint64_t length;                /* of a body that is not given; 0: that of `body` */
    const struct body_facts *facts; /* what is known of it instead; NULL: what `body` says */
    bool websocket;
    uint64_t now; /* as in request_facts */
};

/*
 * Splits `https://host[:port]/path` (or http) into t->tls, authority and
 * target, a view into url. ERR_BAD: *why is a static sentence fragment.
 */
MUST_USE int trial_url(struct view url, struct trial *t, const char **why);
/* ERR_BAD when it is no request (method, target) or asks for a credential that is not there. ERR_MEMORY. */
MUST_USE int trial_run(const struct policy *p, const struct trial *t, struct verdict *out,
                       const char **why);

/* The same; where it is refused, or let through by `mode observe`, *nearest says what came nearest to allowing it. */
struct nearest;
MUST_USE int trial_explain(const struct policy *p, const struct trial *t, struct verdict *out,
                           struct nearest *nearest, const char **why);

/* The same for who is given instead of t->sandbox; nearest NULL: not asked for. For policy/ only. */
struct who;
MUST_USE int trial_run_as(const struct policy *p, const struct who *who, const struct trial *t,
                          struct verdict *out, struct nearest *nearest, const char **why);
/*
 * Whether provenance sees a credential in the place as one that could be replaced; behind the
 * scheme of a signature it does not. For policy/ only.
 */
bool trial_place_is_seen(const struct credential_place *place);

#endif

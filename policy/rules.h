/*
 * The compiled form of a policy. Internal to policy/: made by reader.c, checked
 * and resolved by check.c, asked by judge.c.
 *
 * Lists are in the order of the text. Everything, the copy of the text that
 * views point into included, lives in the policy's arena.
 */
#ifndef POLICY_RULES_H
#define POLICY_RULES_H

#include "policy/arena.h"
#include "policy/pattern.h"
#include "policy/policy.h"
#include "policy/trial.h"

enum { PORTS_MAX = 16, SERVICES_MAX = 1024 };

struct host_rule {
    struct host_pattern pattern;
    struct view text; /* as written */
    bool wide;        /* it may cover hosts of strangers, and after the check: it does */
    struct service *service;
    struct position at;
    struct host_rule *next;
};

/* What is looked at of every host of a policy at every request: small, and in one array. */
struct host_entry {
    enum host_reach reach;
    uint32_t mark;
    const struct host_rule *rule;
};

/* One line of an operation or of never. */
struct rule {
    uint64_t methods; /* bits of policy/method.h */
    bool any_method;  /* never: also those without a bit */
    struct path_pattern path;
    struct position at;
    struct rule *next;
};

struct operation {
    struct view name;
    bool anonymous;
    size_t index; /* in sandbox.operations */
    struct rule *rules;
    struct service *service;
    struct position at;
    struct operation *next;
};

struct range_rule {
    struct range range;
    struct position at;
    struct range_rule *next;
};

/* A sandbox's rights, as bits by index. */
struct rights {
    uint64_t *operations;
    uint64_t *services; /* at least one operation is granted */
};

struct service {
    struct view name;
    size_t index;
    struct host_rule *hosts;
    uint16_t ports[PORTS_MAX];
    size_t n_ports;
    bool every_port; /* only never lines, and no port named */
    bool clear;
    struct view credential;
    struct credential_place place;
    struct position credential_at;
    bool accept_any, accept_cookies, accept_destinations;
    struct range_rule *ranges;
    struct operation *operations;
    struct rule *nevers;
    struct position never_all; /* line 0: there is none */
    bool broken;               /* it has errors already: what is missing in it is no news */
    struct rights everything;  /* every operation of this service: for its expectations */
    struct position at;
    struct service *next;
};

struct grant {
    struct view service, operation; /* operation empty: all */
    struct position service_at, operation_at;
    struct grant *next;
};

struct sandbox {
    struct view name;
    struct grant *grants; /* as written */
    struct rights rights;
    struct view *credentials;
    size_t n_credentials;
    struct position at;
    struct sandbox *next;
};

struct expectation {
    bool allow;
    const struct service *service; /* NULL at the top level */
    struct view sandbox;           /* empty: one that holds everything of the service */
    enum with with;
    struct view method, url; /* or a path, inside a service */
    struct view reason;
    struct position at, sandbox_at, url_at, reason_at;
    struct expectation *next;
};

struct policy {
    struct arena arena;
    struct service *services;
    struct sandbox *sandboxes;
    struct sandbox **by_name;   /* sorted */
    struct service **by_index;  /* services, for the bits of rights */
    struct host_entry *entries; /* one for every host rule */
    size_t n_services, n_operations, n_sandboxes, n_entries;
    struct expectation *expectations;
};

/* reader.c: text to lists. ERR_MEMORY; other errors only in errors. */
MUST_USE int policy_read(struct policy *p, struct view text, const char *file,
                         struct policy_errors *errors);
/* check.c: resolves grants, and finds what contradicts itself. The same results. */
MUST_USE int policy_check(struct policy *p, struct policy_errors *errors);
/* expect.c: tries the expectations of a policy that has no errors. The same results. */
MUST_USE int policy_try(const struct policy *p, struct policy_errors *errors);

/* judge.c: NULL when there is none. */
const struct sandbox *policy_sandbox(const struct policy *p, struct view name);
/* judge.c: policy_judge with the rights given instead of looked up by f->sandbox. */
struct verdict judge_rights(const struct policy *p, const struct rights *rights,
                            const struct request_facts *f);
/* judge.c: whether m is well-formed and where this place is. */
bool material_stands_in(const struct material *m, const struct credential_place *place);
/* judge.c: the host rule that matches, or NULL; whether the port is one of the service's. */
const struct host_rule *service_covering_host(const struct service *s,
                                              const struct host_facts *host);
bool service_covers_port(const struct service *s, uint16_t port);

/* Words that hold n bits. */
static inline size_t bit_words(size_t n) {
    return (n + 63) / 64;
}

static inline bool bit_is_set(const uint64_t *bits, size_t i) {
    return bits[i / 64] >> (i % 64) & 1;
}

static inline void bit_set(uint64_t *bits, size_t i) {
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

#endif

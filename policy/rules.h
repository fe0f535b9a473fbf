/*
 * The compiled form of a policy. Internal to policy/: made by reader*.c, resolved
 * and checked by check*.c, arranged by compile.c, asked by judge.c.
 *
 * Lists are in the order of the text (of included files in the place of their
 * `include`). Everything, the copies of the texts that views point into
 * included, lives in the policy's arena.
 */
#ifndef POLICY_RULES_H
#define POLICY_RULES_H

#include "policy/arena.h"
#include "policy/condition.h"
#include "policy/host_table.h"
#include "policy/path_trie.h"
#include "policy/pattern.h"
#include "policy/policy.h"
#include "policy/trial.h"

enum { PORTS_MAX = 16, SERVICES_MAX = 1024 };

enum layer { LAYER_VENDOR, LAYER_ORGANISATION, LAYER_PROJECT, LAYER_SESSION };

struct host_rule {
    struct host_pattern pattern;
    struct view text; /* as written */
    bool wide;        /* it may cover hosts of strangers, and after the check: it does */
    struct service *service;
    struct position at;
    struct host_rule *next;
    const struct host_rule *same; /* host_table: the next with an equal pattern */
};

/* One line of an operation, of never or of a guard. */
struct rule {
    uint64_t methods; /* bits of policy/method.h */
    bool any_method;  /* never: also those without a bit */
    struct path_pattern path;
    struct condition *conditions;
    size_t n_conditions;
    bool websocket;              /* a condition says so: other rules do not match upgrades */
    bool fetches;                /* of `git fetch`: reads, though by POST */
    struct operation *operation; /* NULL: of a never line */
    struct service *service;     /* NULL: of a guard */
    uint32_t rank; /* equal for equally specific paths and conditions; higher is more specific */
    struct position at;
    struct rule *next;
    const struct rule *same; /* path_trie: the next with an equal path */
};

enum preset { PRESET_NONE, PRESET_READ, PRESET_WRITE };

struct operation {
    struct view name;
    bool anonymous;
    enum preset preset; /* after the check never PRESET_NONE */
    size_t index;       /* in rights.operations */
    struct rule *rules;
    struct service *service;
    const struct credential *credential; /* NULL: none */
    struct position at;
    struct operation *next;
};

struct range_rule {
    struct range range;
    struct position at;
    struct range_rule *next;
};

/* A name used somewhere, to be found among those declared. */
struct mention {
    struct view name;
    struct position at;
    struct mention *next;
};

struct credential {
    struct view name;
    struct credential_place place;
    unsigned at_most;           /* occurrences in a request */
    struct mention *operations; /* `for`; none: all that no other credential names */
    size_t index;               /* in policy.credentials: of its name */
    struct position at;
    struct credential *next;
};

/* `country` or `asn`: an address must be, or must not be, in one of these. */
struct location_rule {
    bool given, not ;
    struct position at;
    struct view *countries; /* or */
    uint64_t *systems;
    size_t n;
};

/* A sandbox's rights, as bits by index. */
struct rights {
    uint64_t *operations;
    uint64_t *services;    /* at least one operation is granted */
    uint64_t *credentials; /* at least one operation with it is; a sandbox's, once compiled */
};

struct service {
    struct view name;
    size_t index;
    struct host_rule *hosts;
    uint16_t ports[PORTS_MAX];
    size_t n_ports;
    bool every_port; /* only never lines, and no port named */
    enum service_tls tls;
    struct position tls_at; /* line 0: not said */
    struct credential *credentials;
    bool accept_any, accept_cookies, accept_none, accept_destinations;
    struct position accept_at;      /* of `ours` */
    bool encoded_slash, parameters; /* `path allow` */
    struct range_rule *ranges;
    struct location_rule country, asn;
    struct upstream_terms upstream;
    uint64_t body_limit;
    uint64_t splice_most;                  /* bytes each way; UINT64_MAX: not said */
    struct operation *operations, **names; /* names: sorted */
    size_t n_operations;
    struct rule *nevers;
    struct mention *guards;
    struct position never_all;       /* line 0: there is none */
    bool broken;                     /* it has errors already: what is missing in it is no news */
    struct rights everything;        /* every operation of this service: for its expectations */
    uint32_t allow_root, never_root; /* in policy.paths */
    struct position at;
    struct service *next;
};

struct guard {
    struct view name;
    struct rule *rules;
    struct position at;
    struct guard *next;
};

struct grant {
    struct view service, operation; /* operation empty: all */
    struct position service_at, operation_at;
    struct grant_limits limits;
    bool limited, observe; /* it has terms */
    struct view note;
    size_t index; /* one for each line */
    size_t rank;  /* of lines: which of several is used; the order of the text plays no part */
    const struct service *of; /* resolved; NULL: an error was reported */
    uint64_t *operations;     /* of a line with terms: what it grants */
    const struct sandbox *sandbox;
    struct grant *next;
};

/* A block `sandbox NAME { ... }`, as written. */
struct sandbox {
    struct view name;
    bool glob;
    enum layer layer;
    struct mention
        *labels; /* of a name: it has them; of a glob: only sandboxes that have them all */
    struct grant *grants;
    struct rights rights;
    uint64_t *unlimited; /* operations of grants without terms; NULL: all of them are */
    struct position at;
    struct sandbox *next;
};

/* A sandbox that has blocks of its own: what those of all layers leave it. */
struct identity {
    struct view name;
    struct position at;
    struct rights rights; /* what all layers grant, labels included */
    const struct sandbox **blocks;
    size_t n_blocks;
};

/* Who asks: its rights are what all of these grant. Named sandboxes have one, their identity's. */
struct who {
    const struct rights *rights[LAYERS_MAX];
    size_t n_rights;
    const struct sandbox *const *blocks; /* that apply, for the terms of grants */
    size_t n_blocks;
    const struct sandbox *globs[LAYERS_MAX]; /* blocks, of who has none of its own */
};

struct expectation {
    bool allow;
    const struct service *service; /* NULL at the top level */
    struct view sandbox;           /* empty: one that holds everything of the service */
    enum with with;
    struct view method, url; /* or a path, inside a service */
    struct view type, body;  /* content type; empty: not said */
    bool has_body;
    struct field *fields;
    size_t n_fields;
    struct view reason;
    struct position at, sandbox_at, url_at, body_at, reason_at;
    struct expectation *next;
};

struct policy {
    struct arena arena;
    struct service *services;
    struct guard *guards;
    struct sandbox *sandboxes;
    struct expectation *expectations;
    struct identity *by_name;  /* sandboxes by name, sorted */
    struct sandbox **globs;    /* blocks with a glob and without labels */
    struct service **by_index; /* services, for the bits of rights */
    struct host_table hosts;
    struct path_trie paths;
    struct view *pointers;    /* of body conditions, each once */
    struct view *credentials; /* names, each once */
    struct grant **grants;    /* by index; the first of each line */
    bool layered[LAYERS_MAX]; /* the layer has sandbox blocks */
    size_t n_services, n_operations, n_sandboxes, n_hosts, n_identities, n_globs, n_grants,
        n_pointers, n_rules, n_credentials;
};

/* reader.c: texts to lists. ERR_MEMORY; other errors only in errors. */
MUST_USE int policy_read(struct policy *p, struct view text, const char *file,
                         const struct policy_files *files, struct policy_errors *errors);
/* grant.c: ranks the lines of grants, and tells of those that cannot be told apart. ERR_MEMORY. */
MUST_USE int policy_rank_grants(struct policy *p, struct policy_errors *errors);
/* reader_sandbox.c: the i-th word for a term of a grant, for suggestions; NULL beyond the last. */
const char *grant_term(size_t i);
/* check.c: resolves names, and finds what contradicts itself. The same results. */
MUST_USE int policy_check(struct policy *p, struct policy_errors *errors);
/* check.c: whether there is the sandbox that it is about. */
void policy_check_expectation(const struct policy *p, const struct expectation *e,
                              struct policy_errors *errors);
/* check_grants.c: what blocks grant, and what their layers leave to each sandbox. The same results. */
MUST_USE int policy_check_sandboxes(struct policy *p, struct policy_errors *errors);
/* compile.c: host table, tries, ranks and credentials of a policy whose names are resolved. ERR_MEMORY. */
MUST_USE int policy_compile(struct policy *p);
/* check_ties.c: rules of which neither is more specific and that pick different credentials. */
void policy_check_ties(const struct policy *p, struct policy_errors *errors);
/* expect.c: tries the expectations of a policy that has no errors. The same results. */
MUST_USE int policy_try(const struct policy *p, struct policy_errors *errors);

/* check.c: whether some host and port is covered by both. */
const struct host_rule *services_share_host(const struct service *a, const struct service *b);
bool services_share_port(const struct service *a, const struct service *b);
bool service_covers_port(const struct service *s, uint16_t port);
/* Whether its operations may have paths with what this one has: `path allow`. */
bool service_allows_path(const struct service *s, const struct target *t);
/* check.c: the operation of this very name, or NULL; *nearest is offered those that there are. */
struct operation *service_operation(const struct service *s, struct view name);
MUST_USE int rights_new(struct policy *p, struct rights *out);
void rights_add(struct rights *r, const struct operation *o);

/* who.c: false when nobody has this name. */
bool who_find(const struct policy *p, struct view sandbox, struct who *out);
struct who who_of(const struct rights *rights);
bool who_holds(const struct who *w, const struct operation *o);
/* At least one operation of the service. */
bool who_reaches(const struct who *w, const struct service *s);
/* What the glob says when several blocks of a layer match: the one with the most characters that are no stars. */
size_t glob_weight(struct view glob);

/* judge.c: policy_judge for who is given instead of looked up by f->sandbox. */
struct verdict judge_who(const struct policy *p, const struct who *who,
                         const struct request_facts *f);
bool body_needs_who(const struct policy *p, const struct who *who, const struct request_facts *f,
                    struct body_needs *needs);

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

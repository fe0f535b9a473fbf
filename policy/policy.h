/*
 * Policies: the text of docs/policy.md compiled, and the one evaluator.
 *
 * Pure: text and facts in, verdict and reason out. No event loop, clock, file,
 * DNS, OpenSSL or logging. `exeat policy explain`, the expectations inside a
 * policy, dialer, ca and the data path all call the functions below.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "policy/authority.h"
#include "policy/body_facts.h"
#include "policy/field.h"
#include "policy/provenance.h"
#include "policy/reason.h"
#include "policy/target.h"

enum { POLICY_TEXT_MAX = 1 << 20 /* bytes */, POLICY_NAME_MAX = 64 };

struct policy;
struct service;
struct operation;
struct credential;
struct grant;
struct rule;
struct condition;

struct position {
    const char *file;
    uint32_t line, column; /* from 1; column counts bytes */
};

struct policy_error {
    struct position at;
    char text[448]; /* what is wrong and what was expected */
};

enum { POLICY_ERRORS_MAX = 64 };

struct policy_errors {
    struct policy_error at[POLICY_ERRORS_MAX];
    size_t n;         /* kept */
    size_t total;     /* met */
    char names[8192]; /* of included files, for positions that outlive the policy */
    size_t n_names;
};

/*
 * Reads the files that `include` names: policy/ opens nothing itself. path is as written, relative to the
 * file `from`, which is named as it was when it was read. Appends the text to out and gives the name
 * under which it is known (in name, a C string): two names that are equal are one file. ERR_MISSING, or
 * any other error with *why a static sentence fragment.
 */
struct policy_files {
    int (*read)(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                size_t size, const char **why);
    void *ctx;
};

/*
 * Compiles text (named file in positions; the string must outlive the policy)
 * and checks its expectations. ERR_BAD with all errors of the text; ERR_MEMORY.
 * The policy copies what it needs. files NULL: `include` is an error, but where text is packed.
 */
MUST_USE int policy_load(struct view text, const char *file, struct policy **out,
                         struct policy_errors *errors);
MUST_USE int policy_load_files(struct view text, const char *file, const struct policy_files *files,
                               struct policy **out, struct policy_errors *errors);
/*
 * The same, and packed (empty) gets one text of all files, which policy_load reads like the first one. Also
 * ERR_LIMIT: they do not fit.
 */
MUST_USE int policy_load_packing(struct view text, const char *file,
                                 const struct policy_files *files, struct buf *packed,
                                 struct policy **out, struct policy_errors *errors);
/*
 * As policy_load_files, but a policy of which nothing but expectations fails is given all the same, and what failed is in errors: for
 * tools that tell why. It is not to be used.
 */
MUST_USE int policy_load_failing(struct view text, const char *file,
                                 const struct policy_files *files, struct policy **out,
                                 struct policy_errors *errors);
void policy_free(struct policy *p);
/*
 * Tries the expectations of a text that consists of nothing else (those of the top level). 0, and what
 * failed is in errors; ERR_BAD when the text is none, ERR_MEMORY. *n: how many there are.
 */
MUST_USE int policy_test(const struct policy *p, struct view text, const char *file, size_t *n,
                         struct policy_errors *errors);
/*
 * The i-th host, in no certain order, whose star covers hosts of strangers, as its line admits with
 * `wide`. False at the end.
 */
bool policy_wide_host(const struct policy *p, size_t i, struct view *text, struct position *at);

enum {
    LAYERS_MAX = 4,     /* vendor, organisation, project, session */
    GRANTS_A_LAYER = 4, /* with limits, of one operation in one block */
};

struct verdict {
    bool allow;
    enum reason reason;
    const struct service *service;     /* NULL when none matched */
    const struct operation *operation; /* NULL when none matched */
    /*
     * The decisive clause: the rule or host that allowed, the never line, the credential. For the default deny
     * file is NULL, and line and column are those of the nearest service, or 0.
     */
    struct position at;
    /* That of the operation; NULL when none. Known once the operation is. */
    const struct credential *credential;
    /* allowed requests to a service with a credential */
    int swap;       /* index of the (first) material to be replaced, or -1 */
    uint32_t swaps; /* bits of all of them */
    /*
     * Of each layer that grants the operation only with limits the grants that have not ended, by layer
     * (grant_layer): allowed only while in each of these layers one has room, and the first that has is used.
     */
    const struct grant *grants[LAYERS_MAX * GRANTS_A_LAYER];
    size_t n_grants;
    /* `mode observe`: allowed, and refused for this reason if it were enforced; REASON_ALLOWED: no such. */
    enum reason observed;
    /*
     * Of REASON_OPERATION_NOT_ALLOWED, also an observed one: a line with this method and path, and the first of its conditions that
     * does not hold, which is the decisive clause then. NULL: there is no such line.
     */
    const struct rule *unmet;
    const struct condition *condition;
};

/*
 * May this sandbox open a connection to this authority at all? Decides before any DNS query,
 * certificate or connection (P5). tls false is plain HTTP. Of a service that is spliced nothing else is
 * judged, so the verdict has its operation and grants.
 */
struct verdict policy_judge_host(const struct policy *p, struct view sandbox, bool tls,
                                 const struct authority *a);

struct request_facts {
    struct view sandbox;
    bool tls;
    const struct authority *authority;
    struct view method;                /* case-sensitive */
    const struct target *target;       /* canonical */
    const struct materials *materials; /* with origins filled in */
    /* a placeholder stands where no credential is read: refused everywhere */
    bool placeholder_elsewhere;
    /* All of the request's; fields NULL: not known, and every condition on them is undecided. */
    const struct field *fields;
    size_t n_fields;
    bool websocket; /* it asks for an upgrade to it */
    bool length_known;
    uint64_t length;               /* of the body */
    uint64_t now;                  /* seconds since 1970; 0: not known, and no grant has ended */
    const struct body_facts *body; /* NULL: not read (yet) */
};

/*
 * The verdict. A condition that is undecided for want of a fact, or because the request can be read in
 * two ways, does not hold for an operation and holds for a never line. Allocates nothing.
 */
struct verdict policy_judge(const struct policy *p, const struct request_facts *f);
/*
 * Whether the verdict depends on a body that f does not have: by its head the request may be
 * allowed, and a line that is still in question asks for the body. Then *needs says what must be read, and
 * policy_judge is asked again with f->body. False: whether it is allowed is settled without it.
 */
bool policy_body_needs(const struct policy *p, const struct request_facts *f,
                       struct body_needs *needs);
/*
 * Both at once, of a request without f->body, where most requests are judged once: *out is what policy_judge says, and false is
 * that policy_body_needs is true; *out is nothing then.
 */
bool policy_judge_head(const struct policy *p, const struct request_facts *f, struct verdict *out,
                       struct body_needs *needs);
/* The JSON pointer (RFC 6901; `*` as a token stands for every member or item) with this index; empty beyond the last. */
struct view policy_body_pointer(const struct policy *p, uint16_t index);

/*
 * The places in which credentials go at this authority. There, provenance must watch them whatever their
 * names are (P7). Services that share an authority have the same ones.
 */
void policy_watch(const struct policy *p, const struct authority *a, struct watched *out);
/* Whether paths at this authority may hold an encoded slash: for target_parse, before policy_judge. */
bool policy_allows_encoded_slash(const struct policy *p, const struct authority *a);

/* ---- what else the roles ask of a policy ---- */

bool policy_has_sandbox(const struct policy *p, struct view sandbox);
size_t policy_sandboxes(const struct policy *p);
struct view policy_sandbox_at(const struct policy *p, size_t i);
/*
 * The i-th block that is the sandbox's: those that declare it by name, or where none does the one of each layer whose glob stands
 * for it. *name as it is written there. False beyond the last.
 */
bool policy_sandbox_block(const struct policy *p, struct view sandbox, size_t i, struct view *name,
                          struct position *at);
/* Credentials that a sandbox's grants reach, each once: how many, and the name of one; empty behind the last. */
size_t policy_sandbox_credentials(const struct policy *p, struct view sandbox);
struct view policy_sandbox_credential_at(const struct policy *p, struct view sandbox, size_t i);
/* Whether a service has this credential; if none has, *nearest is the name most like it (empty: no service has any). */
bool policy_has_credential(const struct policy *p, struct view name, struct view *nearest);
/* Whether a service shows the client certificate of this name. */
bool policy_has_certificate(const struct policy *p, struct view name);
/* Whether some service has this credential in a place of this kind. */
bool policy_puts(const struct policy *p, struct view credential, enum place place);
/* Whether the sandbox was granted an operation that uses this credential at this authority over TLS (broker's check). */
bool policy_lends(const struct policy *p, struct view sandbox, struct view credential,
                  const struct authority *a);
/* Whether a service that the sandbox has a grant at shows the client certificate of this name at this authority (broker's check). */
bool policy_shows(const struct policy *p, struct view sandbox, struct view name,
                  const struct authority *a);
/* Whether the address class may be dialled for this service: public, or inside one of its ranges. METADATA needs a range of exactly that address. */
bool service_permits_address(const struct service *s, const struct address *a);

/* A service with `never all` that has this address as a host and covers the port; NULL: there is none. */
const struct service *policy_never_address(const struct policy *p, const struct address *a,
                                           uint16_t port);

/* The services, in no certain order; NULL beyond the last. */
const struct service *policy_service_at(const struct policy *p, size_t i);
size_t policy_services(const struct policy *p);
/*
 * By whose operations a request to this place is judged, whoever makes it: of those that cover it the service with the most
 * specific host. NULL: there is none, or it is spliced.
 */
const struct service *policy_service_of(const struct policy *p, bool tls,
                                        const struct authority *a);
/* Distinguishes the services of a policy: 0 to policy_services - 1. */
size_t service_index(const struct service *s);
struct view service_name(const struct service *s);
struct position service_position(const struct service *s);
/* `accept any`: bodies need not be inspected and foreign credentials pass. */
bool service_accepts_any(const struct service *s);

enum service_tls { SERVICE_INTERCEPT, SERVICE_SPLICE, SERVICE_CLEAR };
enum service_tls service_tls(const struct service *s);
/* `tls splice at most`: bytes each way of one connection; UINT64_MAX: none said. */
uint64_t service_splice_most(const struct service *s);

/* `upstream`: what the far end must show, and what is shown to it. Empty or NULL: nothing said. */
struct upstream_terms {
    struct view ca; /* a file of certificates, named relative to at.file: only these are trusted */
    const uint8_t *pin; /* SHA-256 of the SubjectPublicKeyInfo of one certificate of the chain */
    struct view client_certificate; /* a name of the vault's */
    struct position at;             /* of the last such line */
};
const struct upstream_terms *service_upstream(const struct service *s);

/*
 * Whether an address in this country (two capital letters, empty: not known) and autonomous system (0:
 * not known) may be dialled. What is not known does not match. True where the service has no such condition.
 */
bool service_permits_location(const struct service *s, struct view country, uint32_t asn);
/* Whether the service has such a condition, for which a database is wanted. */
bool service_asks_country(const struct service *s);
bool service_asks_asn(const struct service *s);

/* Code and words for a reason of the verdict's, its own or the observed one. */
const struct reason_info *verdict_reason(const struct verdict *v, enum reason r);
/* Appends "the condition 'body at most' of 'create' does not hold", where v->unmet says so. */
void verdict_put_condition(const struct verdict *v, struct buf *out);
/* The credential's name, and its place; empty and NULL where the verdict has none. */
struct view verdict_credential(const struct verdict *v);
const struct credential_place *verdict_place(const struct verdict *v);

/* What a grant allows: counted by egress, for each sandbox and grant. 0: no limit. */
struct grant_limits {
    uint64_t until; /* seconds since 1970; refused from then on */
    uint64_t uses;
    uint64_t rate, rate_seconds; /* so many requests in so many seconds */
    uint64_t bytes_out;
    uint64_t concurrent;
};
const struct grant_limits *grant_limits(const struct grant *g);
/* Distinguishes the grants of a policy: 0 to policy_grants - 1. */
size_t grant_index(const struct grant *g);
size_t policy_grants(const struct policy *p);
/* The grant with this index; NULL where none has limits or observes. */
const struct grant *policy_grant_at(const struct policy *p, size_t index);
/* 0 to LAYERS_MAX - 1. */
unsigned grant_layer(const struct grant *g);
struct position grant_position(const struct grant *g);
struct view grant_service(const struct grant *g);
struct view grant_note(const struct grant *g);
bool grant_observes(const struct grant *g);
/*
 * What makes it the same grant in another policy, for counts that go on: layer, block, labels, service,
 * operations as written, and note; its limits are not part of it.
 */
void grant_put_identity(const struct grant *g, struct buf *out);
/* Its terms as they are written: "uses 5 rate 10/m mode observe". */
void grant_put_terms(const struct grant *g, struct buf *out);
/* The i-th grant with terms that applies to the sandbox; NULL beyond the last. */
const struct grant *policy_sandbox_grant_at(const struct policy *p, struct view sandbox, size_t i);
/* The i-th grant in `mode observe`, for status and log. False at the end. */
bool policy_observes(const struct policy *p, size_t i, struct view *sandbox, struct view *service,
                     struct position *at);

/* Where at this host, on any port, the sandbox may be lent the credential; false: nowhere. */
bool policy_lends_at_host(const struct policy *p, struct view sandbox, struct view credential,
                          const struct authority *a, struct authority *where);
/* The same of any host: one that a service with this credential covers. */
bool policy_lends_somewhere(const struct policy *p, struct view sandbox, struct view credential,
                            struct authority *where);
/* Whether the sandbox holds a credential at any service of this host: then answers are guarded and codings narrowed. */
bool policy_guards_host(const struct policy *p, struct view sandbox, const struct authority *a);
struct view operation_name(const struct operation *o);
bool operation_is_anonymous(const struct operation *o);

#endif

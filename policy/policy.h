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
#include "policy/provenance.h"
#include "policy/reason.h"
#include "policy/target.h"

enum { POLICY_TEXT_MAX = 1 << 20 /* bytes */, POLICY_NAME_MAX = 64 };

struct policy;
struct service;
struct operation;

struct position {
    const char *file;
    uint32_t line, column; /* from 1; column counts bytes */
};

struct policy_error {
    struct position at;
    char text[256]; /* what is wrong and what was expected */
};

enum { POLICY_ERRORS_MAX = 64 };

struct policy_errors {
    struct policy_error at[POLICY_ERRORS_MAX];
    size_t n;     /* kept */
    size_t total; /* met */
};

/*
 * Compiles text (named file in positions; the string must outlive the policy)
 * and checks its expectations. ERR_BAD with all errors of the text; ERR_MEMORY.
 * The policy copies what it needs.
 */
MUST_USE int policy_load(struct view text, const char *file, struct policy **out,
                         struct policy_errors *errors);
void policy_free(struct policy *p);
/*
 * The i-th host, in no certain order, whose star covers hosts of strangers, as its line admits with
 * `wide`. False at the end.
 */
bool policy_wide_host(const struct policy *p, size_t i, struct view *text, struct position *at);

/* Where a credential goes and how it is spelled there. */
struct credential_place {
    enum place place;   /* PLACE_HEADER, PLACE_BASIC_USER or PLACE_BASIC_PASSWORD */
    struct view header; /* lower-case field name */
    struct view scheme; /* lower-case, or empty for the whole value */
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
    /* allowed requests to a service with a credential */
    int swap; /* index of the material to be replaced, or -1 */
};

/*
 * May this sandbox open a connection to this authority at all? Decides before any DNS query,
 * certificate or connection (P5). tls false is plain HTTP.
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
    bool
        placeholder_elsewhere; /* a placeholder stands where no credential is read: refused everywhere */
};

struct verdict policy_judge(const struct policy *p, const struct request_facts *f);

/*
 * The name of the field in which a credential goes at this authority, in lower case; empty where
 * there is none. There, provenance must watch it whatever its name is (P7). Services that
 * share an authority have one place.
 */
struct view policy_credential_field(const struct policy *p, const struct authority *a);

/* ---- what else the roles ask of a policy ---- */

bool policy_has_sandbox(const struct policy *p, struct view sandbox);
size_t policy_sandboxes(const struct policy *p);
struct view policy_sandbox_at(const struct policy *p, size_t i);
/* Credentials that a sandbox's grants reach, each once. */
size_t policy_sandbox_credentials(const struct policy *p, struct view sandbox);
struct view policy_sandbox_credential_at(const struct policy *p, struct view sandbox, size_t i);
/* Whether a service has this credential; if none has, *nearest is the name most like it (empty: no service has any). */
bool policy_has_credential(const struct policy *p, struct view name, struct view *nearest);
/* Whether the sandbox was granted an operation that uses this credential at this authority over TLS (broker's check). */
bool policy_lends(const struct policy *p, struct view sandbox, struct view credential,
                  const struct authority *a);
/* Whether the address class may be dialled for this service: public, or inside one of its ranges. METADATA needs a range of exactly that address. */
bool service_permits_address(const struct service *s, const struct address *a);

/* A service with `never all` that has this address as a host and covers the port; NULL: there is none. */
const struct service *policy_never_address(const struct policy *p, const struct address *a,
                                           uint16_t port);

struct view service_name(const struct service *s);
/* Empty when the service has no credential. */
struct view service_credential(const struct service *s);
const struct credential_place *service_place(const struct service *s);
/* `accept any credential`: bodies need not be inspected and foreign credentials pass. */
bool service_accepts_any(const struct service *s);
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

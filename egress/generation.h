/*
 * Generations: what a lane judges by, compiled from one numbered text. Immutable and counted:
 * an exchange keeps the one it was judged by until it ends or is judged again.
 */
#ifndef EGRESS_GENERATION_H
#define EGRESS_GENERATION_H

#include "http/tls.h"
#include "policy/bundle.h"

struct trust; /* compiled trust anchors; shared by generations that have the same ones */

struct generation {
    unsigned references;
    uint32_t number;
    struct limits limits;
    struct policy *policy;
    char *policy_file;
    char *names; /* sandboxes of the lane, separated by SP */
    bool shared, unenforced, closed;
    bool audit_durable;
    struct range synthetic[GENERATED_RANGES]; /* of the DNS door's addresses; family 0: none */
    bool behind_proxy;                        /* connections are made to an upstream proxy */
    struct trust *trust;
    struct trust **own; /* by service_index; NULL: the service has no anchors of its own */
    size_t n_own;
    bool locked;           /* the vault is: whether anything was issued is not known */
    struct issued *issued; /* the registry, as a hash table */
    size_t n_issued;       /* a power of two */
    char *strings;         /* what the entries' views point into */
    uint8_t (*grants)[32]; /* digests of their identities, by index */
};

/*
 * Compiles the lane's part of a bundle's text, from which nothing is borrowed. before may be NULL; its
 * trust anchors are taken over when they are the same bytes. ERR_BAD (the text, or a policy that does
 * not load), ERR_MISSING (no such lane), ERR_MEMORY.
 */
MUST_USE int generation_new(uint32_t number, struct view text, uint32_t lane,
                            const struct generation *before, struct generation **out);
struct generation *generation_keep(struct generation *g);
void generation_drop(struct generation *g); /* NULL is fine */

/* The anchors for upstreams of services that have none of their own. */
struct tls_client *generation_tls(const struct generation *g);
/* Those of `upstream ca`; NULL: the service has none of its own. The same bytes keep the same pointer. */
struct tls_client *generation_own_tls(const struct generation *g, const struct service *s);
/* The digest (DIGEST_SIZE bytes) of a grant's identity: that of the same grant is the same in every generation. */
const uint8_t *generation_grant(const struct generation *g, const struct grant *grant);
/* Whether one of its grants with terms has this digest. */
bool generation_grants(const struct generation *g, const uint8_t *digest);
/* Whether the lane serves this sandbox. */
bool generation_has(const struct generation *g, struct view sandbox);
/* Who a placeholder was issued to and for what; false when nobody, or nobody any more. */
bool generation_issued(const struct generation *g, const uint8_t fingerprint[FINGERPRINT_SIZE],
                       struct view *sandbox, struct view *credential);
/* The fingerprint of a placeholder that the sandbox was issued for the credential; NULL when it has none. */
const uint8_t *generation_placeholder(const struct generation *g, struct view sandbox,
                                      struct view credential);
/* Whether this is the fingerprint of the sandbox's proxy token. */
bool generation_token(const struct generation *g, const uint8_t fingerprint[FINGERPRINT_SIZE],
                      struct view sandbox);

#endif

/*
 * Issuing: what a sandbox is given in place of secrets. Pure: randomness and
 * time are arguments. The values exist only in struct issued, on their way to
 * the operator who asked; what stays is their SHA-256 in the vault.
 *
 * A token is "ext_" and 256 random bits in base 62. A placeholder
 * (policy/placeholder.h) has the prefix that its secret was added with.
 */
#ifndef BROKER_ISSUE_H
#define BROKER_ISSUE_H

#include "broker/inventory.h"
#include "policy/placeholder.h"

enum { TOKEN_SIZE = 48 /* 4, 43 digits, NUL */ };

struct issued {
    char token[TOKEN_SIZE];
    bool replaces;                    /* what was issued to it before, which ends */
    struct vault_sandbox sandbox;     /* fingerprints; to be kept */
    char (*values)[PLACEHOLDER_SIZE]; /* one for each of sandbox.placeholders */
};

typedef void issue_random(void *p, size_t n);

void issue_token(const uint8_t random[32], char out[TOKEN_SIZE]);

/*
 * A new token, and a placeholder for each credential. ERR_MISSING: one of them
 * has no secret in the vault; *which names it. ERR_BAD for a name or prefix;
 * ERR_LIMIT, ERR_MEMORY. On error nothing is held.
 */
MUST_USE int issue_sandbox(const struct inventory *v, struct view name,
                           const struct view *credentials, size_t n, issue_random *random,
                           uint64_t now, struct issued *out, struct view *which);
/* Clears. */
void issued_free(struct issued *i);
/* {"name":...,"token":...,"placeholders":[{"credential":...,"value":...}],"replaces":false} */
void issued_write(const struct issued *i, struct buf *out);

/* The registry (policy/bundle.h) of all that is issued, always in the same order. NULL: the vault is locked. */
void issue_registry(const struct inventory *v, struct buf *out);

/*
 * Whether a placeholder with this fingerprint was issued to this sandbox for
 * this credential and its secret is still the one it was issued for (PH-11: one
 * answer for near misses, revoked ones and those of others).
 */
bool issue_covers(const struct inventory *v, struct view sandbox, struct view credential,
                  const uint8_t fingerprint[DIGEST_SIZE]);

#endif

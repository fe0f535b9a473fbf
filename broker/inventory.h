/*
 * The inventory: what the vault holds, without any value, as its rows say. Pure.
 *
 * Rows (kind, name, body; numbers big-endian, blocks with a 32-bit length):
 *
 *   STATE, ""       u32 schema, u64 counter, 32 bytes key check, 32 bytes digest
 *   SECRET, name    u64 id, u32 version, u64 created, u64 rotated (seconds),
 *                   block like, block wrapped data key, block box (broker/seal.h);
 *                   of a client certificate, whose box has the digits of its key
 *                   (base/client_key.h): block subject, u64 end (seconds),
 *                   32 bytes fingerprint, block chain
 *   SANDBOX, name   u64 created, 32 bytes SHA-256 of the token, u16 n, n times:
 *                   block credential, u64 id of its secret, 32 bytes SHA-256 of the placeholder
 */
#ifndef BROKER_INVENTORY_H
#define BROKER_INVENTORY_H

#include "base/digest.h"
#include "broker/store.h"

enum { NAME_SIZE = 65, LIKE_SIZE = 61, SUBJECT_SIZE = 128, PLACEHOLDERS_MAX = 1024 };

enum row_kind { ROW_STATE, ROW_SECRET, ROW_SANDBOX };

/* What is told of a client certificate. */
struct vault_certificate {
    char subject[SUBJECT_SIZE]; /* RFC 4514, perhaps cut */
    uint64_t not_after;         /* seconds since 1970; 0: it is none */
    uint8_t fingerprint[DIGEST_SIZE];
};

struct vault_secret {
    char name[NAME_SIZE];
    char like[LIKE_SIZE]; /* prefix of placeholders, perhaps empty */
    uint64_t id;          /* never used for another secret, not even of the same name */
    uint32_t version;     /* from 1, one more at each rotation */
    uint64_t created, rotated;
    struct vault_certificate certificate;
};

struct vault_placeholder {
    char credential[NAME_SIZE];
    uint64_t secret_id; /* a secret that was removed and added again has another */
    uint8_t fingerprint[DIGEST_SIZE];
};

struct vault_sandbox {
    char name[NAME_SIZE];
    uint8_t token[DIGEST_SIZE];
    uint64_t created;
    struct vault_placeholder *placeholders;
    size_t n;
};

struct inventory {
    struct vault_secret *secrets; /* both sorted by name */
    size_t n_secrets;
    struct vault_sandbox *sandboxes;
    size_t n_sandboxes;
};

/* What the policy calls a name: [A-Za-z0-9][A-Za-z0-9._-]{0,63}. Two that differ only in case do not coexist. */
bool vault_name_is_good(struct view name);

void inventory_free(struct inventory *v);
/* Adds what a SECRET or SANDBOX row says. ERR_CRYPTO for one that no vault of ours wrote. ERR_MEMORY. */
MUST_USE int inventory_add(struct inventory *v, const struct row *r);
/* Whether it is a client certificate, and thus never put into a request. */
bool vault_secret_is_certificate(const struct vault_secret *s);
/* By exact name; NULL when there is none. */
const struct vault_secret *inventory_secret(const struct inventory *v, struct view name);
const struct vault_sandbox *inventory_sandbox(const struct inventory *v, struct view name);

/* Whether another name is there that differs from this one only in case (XS-05). */
bool inventory_has_twin(const struct inventory *v, enum row_kind kind, struct view name);

/* The sealed part of a SECRET row's body; views point into it. */
struct sealed_secret {
    struct vault_secret secret;      /* without name */
    struct view wrapped, box, chain; /* chain: of a client certificate */
};
MUST_USE int inventory_read_secret(struct view body, struct sealed_secret *out);
void inventory_write_secret(const struct sealed_secret *s, struct buf *out);
void inventory_write_sandbox(const struct vault_sandbox *s, struct buf *out);

#endif

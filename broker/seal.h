/*
 * Sealing: envelope encryption of the vault's secrets. Pure: bytes in, bytes out.
 *
 * Each version of each secret has a data key of its own (256 random bits);
 * the secret is sealed with it by AES-256-GCM under a random 96-bit nonce, and
 * the data key is sealed in the same way with a key derived from the
 * key-encryption key. Whose box it is stands in the additional data, so that a
 * box moved to another record, name or version does not open:
 *
 *   additional data: "exeat seal", u32 schema, u8 purpose, u64 id, u32 version, block name
 *   box: 12 bytes nonce, ciphertext, 16 bytes tag
 *
 * Keys and plaintext are only ever written into the arena (base/secret.h). The
 * expanded AES key lives in OpenSSL's context for the length of one call and
 * is cleansed by it.
 */
#ifndef BROKER_SEAL_H
#define BROKER_SEAL_H

#include "base/bytes.h"
#include "base/digest.h"

enum {
    SEAL_SCHEMA = 1, /* of the whole vault; another one is refused, never converted silently */
    SEAL_KEY_SIZE = 32,
    SEAL_NONCE_SIZE = 12,
    SEAL_TAG_SIZE = 16,
    SEAL_OVERHEAD = SEAL_NONCE_SIZE + SEAL_TAG_SIZE,
    SEAL_WRAPPED_SIZE = SEAL_KEY_SIZE + SEAL_OVERHEAD,
};

/* Derived from one key-encryption key by HMAC-SHA-256, one for each purpose. */
struct seal_keys {
    uint8_t wrap[SEAL_KEY_SIZE];   /* seals data keys */
    uint8_t digest[SEAL_KEY_SIZE]; /* authenticates the vault's content as a whole */
    uint8_t head[SEAL_KEY_SIZE];   /* authenticates vault.head */
};

/* Whose box: a record's id is never used again, not even for the same name. */
struct seal_label {
    uint64_t id;
    uint32_t version;
    struct view name;
};

/*
 * Loads what OpenSSL loads lazily, without its configuration file, and checks
 * the cipher against a known answer. Before the process narrows. ERR_CRYPTO.
 */
MUST_USE int seal_open_library(void);

/*
 * The key file's text: exactly 64 hexadecimal digits and at most one newline.
 * kek must be in the arena. ERR_BAD.
 */
MUST_USE int seal_parse_key(struct view text, uint8_t kek[SEAL_KEY_SIZE]);

/* In the arena; seal_keys_free clears. NULL when the arena is full. */
struct seal_keys *seal_keys_new(const uint8_t kek[SEAL_KEY_SIZE]);
void seal_keys_free(struct seal_keys *k);

/* Appends the wrapped data key and the box. ERR_MEMORY, ERR_CRYPTO. */
MUST_USE int seal_envelope(const struct seal_keys *k, const struct seal_label *l,
                           struct view secret, struct buf *wrapped, struct buf *box);
/* Appends the secret to a secret buffer. ERR_CRYPTO when anything was changed: then nothing is appended. */
MUST_USE int seal_reveal(const struct seal_keys *k, const struct seal_label *l, struct view wrapped,
                         struct view box, struct buf *secret);
/* The same data key, wrapped by other keys. ERR_CRYPTO, ERR_MEMORY. */
MUST_USE int seal_rewrap(const struct seal_keys *from, const struct seal_keys *to,
                         const struct seal_label *l, struct view wrapped, struct buf *out);

#endif

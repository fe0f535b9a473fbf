/*
 * Signed heads: "the chain stood at record `seq` with `hash` at `time`", signed with audit's Ed25519
 * key (RFC 8032). A head that was exported shows later that the chain was cut or written anew.
 * The only file of audit that knows OpenSSL's keys. Pure: keys and heads are bytes.
 *
 * What is signed, to the byte (every line ends in LF):
 *
 *   exeat audit head v1
 *   seq 4711
 *   hash <64 hex>
 *   time 2026-01-02T03:04:05.678901Z
 *   key <16 hex>
 *
 * `key` is the beginning of the SHA-256 of the public key's SubjectPublicKeyInfo.
 */
#ifndef AUDIT_CHAIN_HEAD_H
#define AUDIT_CHAIN_HEAD_H

#include "audit/chain.h"

enum { HEAD_KEY_SIZE = 8, HEAD_SIGNATURE_SIZE = 64, HEAD_JSON_MAX = 1024 };

struct chain_head {
    uint64_t seq;
    uint8_t hash[DIGEST_SIZE];
    char time[CHAIN_TIME_SIZE];
    uint8_t key[HEAD_KEY_SIZE];
    uint8_t signature[HEAD_SIGNATURE_SIZE];
};

struct chain_signer;
struct chain_keys;

/* Makes a key pair: PEM private key (PKCS #8), PEM public key. */
MUST_USE int chain_key_make(struct buf *private_pem, struct buf *public_pem);
/* ERR_CRYPTO when pem is no Ed25519 private key. */
MUST_USE int chain_signer_new(struct view pem, struct chain_signer **out);
void chain_signer_free(struct chain_signer *s);
/* The public key that belongs to s, PEM. */
MUST_USE int chain_signer_public(const struct chain_signer *s, struct buf *pem);
/* Fills in *out for where the chain stands. */
MUST_USE int chain_head_sign(const struct chain_signer *s, const struct chain *at, uint64_t wall,
                             struct chain_head *out);

/* Public keys that may have signed: one or more PEM blocks, at most 16. ERR_CRYPTO, ERR_LIMIT. */
MUST_USE int chain_keys_new(struct view pem, struct chain_keys **out);
void chain_keys_free(struct chain_keys *k);
/* 0; ERR_MISSING when its key is none of k; ERR_CRYPTO when the signature is wrong. */
MUST_USE int chain_head_verify(const struct chain_keys *k, const struct chain_head *h);

/* One line of JSON with its LF, the content of head.json. */
void chain_head_write(const struct chain_head *h, struct buf *out);
/* text may end in one LF. ERR_BAD. */
MUST_USE int chain_head_read(struct view text, struct chain_head *out);
/* The head that a line of kind "head" states: of the record before it. ERR_BAD. */
MUST_USE int chain_head_of_line(const struct chain_line *line, struct chain_head *out);
/* `,"kind":"head","key":...,"signature":...`: the members of such a line. */
void chain_head_members(const struct chain_head *h, struct buf *out);

#endif

/*
 * Private keys of client certificates in OpenSSL's hands. What OpenSSL allocates while it takes a key lies in
 * the arena (base/secret.h), and so does the key until it is freed: nothing of it gets into ordinary
 * memory but what a signature is computed with, which OpenSSL clears (docs/decisions/0010).
 *
 * A key is its number, in hexadecimal digits of the full length: P-256, P-384 (RFC 5915) and Ed25519 (RFC 8032).
 */
#ifndef BASE_CLIENT_KEY_H
#define BASE_CLIENT_KEY_H

#include "base/bytes.h"

enum { CLIENT_KEY_BYTES = 48, CLIENT_KEY_DIGITS = 2 * CLIENT_KEY_BYTES };

struct evp_pkey_st;
struct ossl_lib_ctx_st;

/* Bytes of the private keys that belong to such a public one; 0: keys of this kind are not taken. */
size_t client_key_size(const struct evp_pkey_st *public_key);
/*
 * library: that of whoever signs with the key (NULL: OpenSSL's default one), since OpenSSL copies a key of another one.
 * digits: in the arena. NULL: they are not the key of this public one; or no memory, which openssl_memory_refused
 * counts. To be freed by EVP_PKEY_free. openssl_memory_start was called.
 */
struct evp_pkey_st *client_key_new(struct ossl_lib_ctx_st *library, struct evp_pkey_st *public_key,
                                   struct view digits);

#endif

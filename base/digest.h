/*
 * SHA-256, for fingerprints and chains. The only thing of OpenSSL's EVP that several folders need.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/bytes.h"

enum { DIGEST_SIZE = 32 };

/*
 * Starts the cryptographic library without the system's configuration file, which a narrowed role
 * could not open; once, before rights_enter. ERR_CRYPTO.
 */
MUST_USE int digest_start(void);

void digest_sha256(struct view v, uint8_t out[DIGEST_SIZE]);
/* HMAC-SHA-256 (RFC 2104). */
void digest_hmac(struct view key, struct view v, uint8_t out[DIGEST_SIZE]);
/* n random bytes from the kernel; ends the process if there are none. */
void random_bytes(void *p, size_t n);

#endif

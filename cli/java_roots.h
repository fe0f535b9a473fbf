/*
 * A trust store for Java: a PKCS #12 file (RFC 7292) of certificates, neither encrypted nor with a
 * MAC, so that it needs no password. Java takes a certificate in such a file for a trusted one
 * only when its bag has an attribute of Java's own, trustedKeyUsage. Pure.
 */
#ifndef CLI_JAVA_ROOTS_H
#define CLI_JAVA_ROOTS_H

#include "base/bytes.h"

/* Certificates on their way into a store; reading them takes much longer than writing it. */
struct java_roots;
struct java_roots *java_roots_new(void);
void java_roots_free(struct java_roots *j);
/* Adds all certificates in pem, which may be empty. Broken ones are passed over. ERR_CRYPTO. */
MUST_USE int java_roots_add(struct java_roots *j, struct view pem);
/* Appends the store of all that were added, once. ERR_BAD: there is none; ERR_CRYPTO, ERR_LIMIT. */
MUST_USE int java_roots_write(struct java_roots *j, struct buf *out);

#endif

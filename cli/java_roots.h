/*
 * A trust store for Java: a PKCS #12 file (RFC 7292) of certificates, neither encrypted nor with a
 * MAC, so that it needs no password. Java takes a certificate in such a file for a trusted one
 * only when its bag has an attribute of Java's own, trustedKeyUsage. Pure.
 */
#ifndef CLI_JAVA_ROOTS_H
#define CLI_JAVA_ROOTS_H

#include "base/bytes.h"

/* Appends the store of all certificates in pem. Broken ones are passed over. ERR_BAD: there is none; ERR_CRYPTO, ERR_LIMIT. */
MUST_USE int java_roots(struct view pem, struct buf *out);

#endif

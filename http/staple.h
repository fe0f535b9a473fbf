/*
 * Stapled OCSP answers (RFC 6960, RFC 7633): what an upstream sent along with
 * its certificate about its revocation. Nothing is ever fetched.
 */
#ifndef HTTP_STAPLE_H
#define HTTP_STAPLE_H

#include "base/bytes.h"

#include <openssl/x509.h>

enum staple {
    STAPLE_GOOD,
    STAPLE_NONE, /* none, or one that proves nothing: malformed, outdated, not signed by the issuer */
    STAPLE_REVOKED, /* the issuer says so, however long ago */
};

/* der: the answer as sent, empty for none. chain: verified, the leaf first, the anchor last. */
enum staple staple_check(struct view der, STACK_OF(X509) * chain, X509_STORE *store);
/* The certificate must come with a good answer (TLS feature status_request). */
bool staple_is_must(const X509 *leaf);

#endif

/*
 * Client certificates as an operator gives them: a chain, which is public, and the private key, which is read in the arena
 * only and kept as its digits (base/client_key.h). The one home of what is taken and what is not. Pure.
 */
#ifndef BROKER_CERTIFICATE_H
#define BROKER_CERTIFICATE_H

#include "broker/inventory.h"

struct certificate {
    struct vault_certificate told;
    struct buf chain; /* DER, one after another, the client's own first */
};

/*
 * pem: certificates, in order, and whatever text is between them. Keys of P-256, P-384 and Ed25519 are taken. NULL
 * when it can be kept, else a static sentence fragment that says what is wrong. To be freed in both cases.
 */
const char *certificate_read(struct view pem, uint64_t now, struct certificate *out);
void certificate_free(struct certificate *c);
/*
 * pem: the private key of the certificate, as PKCS #8 (RFC 5958) or "EC PRIVATE KEY" (RFC 5915), not encrypted, in
 * the arena. Appends its digits to a buffer of the arena. NULL, or what is wrong.
 */
const char *certificate_key(const struct certificate *c, struct view pem, struct buf *digits);

#endif

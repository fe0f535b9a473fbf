/*
 * Signing certificates (RFC 5280): the only file that does. Pure: keys, names, times and serial
 * numbers come in, PEM or DER goes out; no clock, randomness (but a new key's), file or log.
 *
 * Root: P-256, self-signed, critical basicConstraints CA:TRUE with path length 0, critical keyUsage
 * keyCertSign and cRLSign, subject key identifier. Leaf: the given P-256 key, SHA-256, one subject
 * alternative name and nothing else that names (dNSName, or iPAddress for a literal), CN only where it
 * fits (64 bytes; without it the subject is empty and the alternative name critical, RFC 5280
 * 4.2.1.6), authority and subject key identifiers, critical CA:FALSE, critical keyUsage
 * digitalSignature, extended key usage serverAuth only.
 */
#ifndef CA_MINT_H
#define CA_MINT_H

#include "base/digest.h"
#include "policy/authority.h"

enum {
    MINT_SERIAL_SIZE = 16,
    MINT_PEM_MAX = 64 * 1024,
    /* Callers let validities begin this long before now, for sandboxes whose clock is behind. */
    MINT_BACKDATE_SECONDS = 3600,
};

struct mint;      /* a CA: key and certificate */
struct mint_form; /* a leaf for one public key, all but name, serial and validity filled in */

struct mint_validity {
    uint64_t not_before, not_after; /* seconds since 1970 */
};

/* What a certificate says, for people. */
struct mint_facts {
    char subject[128]; /* RFC 2253, cut to fit */
    struct mint_validity validity;
    uint8_t fingerprint[DIGEST_SIZE]; /* SHA-256 of the DER */
};

/* ---- making a CA ---- */

/* A new P-256 key, PEM (PKCS #8). The caller clears the buffer. */
MUST_USE int mint_key(struct buf *pem);
/* A root certificate for that key, PEM. serial is used as it is but for its sign. */
MUST_USE int mint_root(struct view key_pem, const char *common_name, struct mint_validity validity,
                       const uint8_t serial[MINT_SERIAL_SIZE], struct buf *pem);
/* The first certificate of pem. ERR_CRYPTO when there is none. */
MUST_USE int mint_describe(struct view pem, struct mint_facts *out);

/* ---- signing leaves ---- */

/* Locked memory, left out of dumps, for private keys; once, before the process narrows its rights. False without it. */
bool mint_lock_memory(void);
/*
 * ERR_CRYPTO: not readable, not a P-256 key, or the certificate is no CA. ERR_DENIED: the key is not
 * the certificate's. The key lives in OpenSSL's memory from here on; the caller clears key_pem.
 */
MUST_USE int mint_new(struct view key_pem, struct view cert_pem, struct mint **out);
void mint_free(struct mint *m);
const struct mint_facts *mint_facts(const struct mint *m);
/* spki: SubjectPublicKeyInfo, DER, of a P-256 key. ERR_CRYPTO otherwise. m must outlive the form. */
MUST_USE int mint_form_new(const struct mint *m, struct view spki, struct mint_form **out);
void mint_form_free(struct mint_form *f);
/*
 * Appends a leaf for a's host (the port does not matter) as DER. not_after is cut to the CA's own
 * end; *ends, if not NULL, gets it. ERR_BAD: a host that is not canonical, a serial of zeros, or a
 * validity that is empty.
 */
MUST_USE int mint_leaf(struct mint_form *f, const struct authority *a,
                       struct mint_validity validity, const uint8_t serial[MINT_SERIAL_SIZE],
                       struct buf *der, uint64_t *ends);

#endif

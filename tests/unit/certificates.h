/*
 * Certificates for tests, good and bad ones, made by OpenSSL in memory.
 */
#ifndef TESTS_UNIT_CERTIFICATES_H
#define TESTS_UNIT_CERTIFICATES_H

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"

enum { DAY = 86400 };

struct certificate {
    X509 *x;
    EVP_PKEY *key;
};

struct wish {
    const char *cn;
    const char *san;                  /* "DNS:a.test,IP:127.0.0.1", or NULL */
    const struct certificate *issuer; /* NULL: signed by itself */
    EVP_PKEY *key;                    /* NULL: a P-256 key of its own */
    int rsa_bits;                     /* an RSA key instead */
    bool ca, sha1;
    const char *eku, *feature;
    long from, to;        /* seconds from now; both 0: a day around now */
    GENERAL_NAMES *names; /* instead of san; freed */
};

static void add_extension(X509 *x, const struct certificate *issuer, int nid, const char *value) {
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer ? issuer->x : x, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert(e);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
}

static EVP_PKEY *wished_key(const struct wish *w) {
    if (w->key) {
        EVP_PKEY_up_ref(w->key);
        return w->key;
    }
    return w->rsa_bits ? EVP_RSA_gen((unsigned)w->rsa_bits) : EVP_EC_gen("P-256");
}

static struct certificate certificate_make(const struct wish *w) {
    static long serial = 1;
    struct certificate c = {X509_new(), wished_key(w)};
    X509_NAME *name = X509_get_subject_name(c.x);
    bool given = w->from || w->to;
    X509_set_version(c.x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x), serial++);
    X509_gmtime_adj(X509_getm_notBefore(c.x), given ? w->from : -DAY);
    X509_gmtime_adj(X509_getm_notAfter(c.x), given ? w->to : DAY);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)w->cn, -1, -1, 0);
    X509_set_issuer_name(c.x, w->issuer ? X509_get_subject_name(w->issuer->x) : name);
    X509_set_pubkey(c.x, c.key);
    add_extension(c.x, w->issuer, NID_basic_constraints,
                  w->ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    add_extension(c.x, w->issuer, NID_key_usage,
                  w->ca ? "critical,keyCertSign,cRLSign,digitalSignature"
                        : "critical,digitalSignature");
    add_extension(c.x, w->issuer, NID_subject_key_identifier, "hash");
    if (w->issuer)
        add_extension(c.x, w->issuer, NID_authority_key_identifier, "keyid");
    if (w->san)
        add_extension(c.x, w->issuer, NID_subject_alt_name, w->san);
    if (w->names) {
        X509_add1_ext_i2d(c.x, NID_subject_alt_name, w->names, 0, 0);
        GENERAL_NAMES_free(w->names);
    }
    if (w->eku)
        add_extension(c.x, w->issuer, NID_ext_key_usage, w->eku);
    if (w->feature)
        add_extension(c.x, w->issuer, NID_tlsfeature, w->feature);
    int signed_n =
        X509_sign(c.x, w->issuer ? w->issuer->key : c.key, w->sha1 ? EVP_sha1() : EVP_sha256());
    assert(signed_n > 0);
    (void)signed_n;
    return c;
}

static void certificate_free(struct certificate *c) {
    X509_free(c->x);
    EVP_PKEY_free(c->key);
}

static inline void put_pem(struct buf *out, const struct certificate *c) {
    BIO *bio = BIO_new(BIO_s_mem());
    char *p;
    PEM_write_bio_X509(bio, c->x);
    long n = BIO_get_mem_data(bio, &p);
    buf_put(out, view_of(p, (size_t)n));
    BIO_free(bio);
}

/* Its private key, as PKCS #8. */
static inline void put_key(struct buf *out, const struct certificate *c) {
    BIO *bio = BIO_new(BIO_s_mem());
    char *p;
    PEM_write_bio_PKCS8PrivateKey(bio, c->key, NULL, NULL, 0, NULL, NULL);
    long n = BIO_get_mem_data(bio, &p);
    buf_put(out, view_of(p, (size_t)n));
    BIO_free(bio);
}

static inline void put_der(struct buf *out, const struct certificate *c) {
    uint8_t *p = NULL;
    int n = i2d_X509(c->x, &p);
    buf_put(out, view_of(p, (size_t)n));
    OPENSSL_free(p);
}

#endif

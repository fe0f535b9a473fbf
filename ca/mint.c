#include "ca/mint.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COMMON_NAME_MAX = 64 /* ub-common-name */, NAME_BYTES_MAX = 253 };

#define YEAR_10000 UINT64_C(253402300800)

struct mint {
    EVP_PKEY *key;
    X509 *cert;
    struct mint_facts facts;
};

struct mint_form {
    const struct mint *mint;
    X509 *leaf;
};

/* ---- pieces of a certificate ---- */

static bool is_p256(const EVP_PKEY *key) {
    char group[32];
    size_t n = 0;
    return key && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
           EVP_PKEY_get_group_name(key, group, sizeof group, &n) == 1 &&
           strcmp(group, "prime256v1") == 0;
}

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value) {
    X509V3_CTX v3;
    X509V3_set_ctx_nodb(&v3);
    X509V3_set_ctx(&v3, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &v3, nid, value);
    bool done = e && X509_add_ext(x, e, -1) == 1;
    X509_EXTENSION_free(e);
    return done;
}

/* Positive, at most 16 bytes of value (RFC 5280 4.1.2.2). */
static bool set_serial(X509 *x, const uint8_t serial[MINT_SERIAL_SIZE]) {
    BIGNUM *n = BN_bin2bn(serial, MINT_SERIAL_SIZE, NULL);
    bool done = n && !BN_is_zero(n) && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)) != NULL;
    BN_free(n);
    return done;
}

static bool set_validity(X509 *x, struct mint_validity v) {
    return v.not_before < v.not_after && v.not_after < YEAR_10000 &&
           ASN1_TIME_set(X509_getm_notBefore(x), (time_t)v.not_before) &&
           ASN1_TIME_set(X509_getm_notAfter(x), (time_t)v.not_after);
}

/* The subject is one CN, or empty when that is too long. */
static bool set_subject(X509 *x, struct view cn) {
    X509_NAME *name = X509_NAME_new();
    bool done = name && (cn.n > COMMON_NAME_MAX ||
                         X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC, cn.p,
                                                    (int)cn.n, -1, 0) == 1);
    done = done && X509_set_subject_name(x, name) == 1;
    X509_NAME_free(name);
    return done;
}

static int put_der(X509 *x, struct buf *out) {
    int n = i2d_X509(x, NULL);
    uint8_t *p = n > 0 ? buf_reserve(out, (size_t)n) : NULL;
    if (!p)
        return n > 0 ? ERR_MEMORY : ERR_CRYPTO;
    i2d_X509(x, &p);
    buf_commit(out, (size_t)n);
    return 0;
}

static int put_pem(BIO *bio, struct buf *out) {
    char *p = NULL;
    long n = BIO_get_mem_data(bio, &p);
    buf_put(out, view_of(p, n > 0 ? (size_t)n : 0));
    return n > 0 && buf_ok(out) ? 0 : ERR_MEMORY;
}

static BIO *bio_of(struct view pem) {
    return pem.n > 0 && pem.n <= MINT_PEM_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
}

static EVP_PKEY *read_key(struct view pem) {
    BIO *bio = bio_of(pem);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"") : NULL;
    BIO_free(bio);
    return key;
}

static X509 *read_certificate(struct view pem) {
    BIO *bio = bio_of(pem);
    X509 *x = bio ? PEM_read_bio_X509(bio, NULL, NULL, (void *)"") : NULL;
    BIO_free(bio);
    return x;
}

/* ---- making a CA ---- */

int mint_key(struct buf *pem) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    BIO *bio = BIO_new(BIO_s_secmem());
    int result =
        key && bio && PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1
            ? put_pem(bio, pem)
            : ERR_CRYPTO;
    BIO_free(bio);
    EVP_PKEY_free(key);
    return result;
}

static bool fill_root(X509 *x, EVP_PKEY *key, const char *common_name, struct mint_validity v,
                      const uint8_t *serial) {
    struct view cn = view_str(common_name);
    return is_p256(key) && cn.n > 0 && cn.n <= COMMON_NAME_MAX && X509_set_version(x, 2) == 1 &&
           set_serial(x, serial) && set_validity(x, v) && set_subject(x, cn) &&
           X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 && X509_set_pubkey(x, key) == 1 &&
           add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
           add_extension(x, x, NID_subject_key_identifier, "hash") &&
           X509_sign(x, key, EVP_sha256()) > 0;
}

int mint_root(struct view key_pem, const char *common_name, struct mint_validity validity,
              const uint8_t serial[MINT_SERIAL_SIZE], struct buf *pem) {
    EVP_PKEY *key = read_key(key_pem);
    X509 *x = X509_new();
    BIO *bio = BIO_new(BIO_s_mem());
    int result = key && x && bio && fill_root(x, key, common_name, validity, serial) &&
                         PEM_write_bio_X509(bio, x) == 1
                     ? put_pem(bio, pem)
                     : ERR_CRYPTO;
    BIO_free(bio);
    X509_free(x);
    EVP_PKEY_free(key);
    return result;
}

/* ---- describing ---- */

static bool read_time(const ASN1_TIME *t, uint64_t *out) {
    struct tm tm;
    if (ASN1_TIME_to_tm(t, &tm) != 1)
        return false;
    time_t seconds = timegm(&tm);
    *out = seconds > 0 ? (uint64_t)seconds : 0;
    return true;
}

static bool read_subject(X509 *x, char *out, size_t size) {
    BIO *bio = BIO_new(BIO_s_mem());
    char *p = NULL;
    bool done = bio && X509_NAME_print_ex(bio, X509_get_subject_name(x), 0, XN_FLAG_RFC2253) >= 0;
    long n = done ? BIO_get_mem_data(bio, &p) : 0;
    if (done)
        snprintf(out, size, "%.*s", (int)n, p ? p : "");
    BIO_free(bio);
    return done;
}

static int describe(X509 *x, struct mint_facts *out) {
    unsigned n = 0;
    *out = (struct mint_facts){0};
    return read_time(X509_get0_notBefore(x), &out->validity.not_before) &&
                   read_time(X509_get0_notAfter(x), &out->validity.not_after) &&
                   read_subject(x, out->subject, sizeof out->subject) &&
                   X509_digest(x, EVP_sha256(), out->fingerprint, &n) == 1 && n == DIGEST_SIZE
               ? 0
               : ERR_CRYPTO;
}

int mint_describe(struct view pem, struct mint_facts *out) {
    X509 *x = read_certificate(pem);
    int result = x ? describe(x, out) : ERR_CRYPTO;
    X509_free(x);
    return result;
}

/* ---- signing leaves ---- */

bool mint_lock_memory(void) {
    return CRYPTO_secure_malloc_init(64 * 1024, 32) == 1;
}

static bool is_ca(X509 *x) {
    return X509_check_ca(x) == 1 && (X509_get_key_usage(x) & KU_KEY_CERT_SIGN) &&
           X509_get0_subject_key_id(x) != NULL;
}

int mint_new(struct view key_pem, struct view cert_pem, struct mint **out) {
    struct mint *m = calloc(1, sizeof *m);
    int result = m ? 0 : ERR_MEMORY;
    if (m) {
        m->key = read_key(key_pem);
        m->cert = read_certificate(cert_pem);
        if (!is_p256(m->key) || !m->cert || !is_ca(m->cert))
            result = ERR_CRYPTO;
        else if (X509_check_private_key(m->cert, m->key) != 1)
            result = ERR_DENIED;
        else
            result = describe(m->cert, &m->facts);
    }
    if (result != 0) {
        mint_free(m);
        return result;
    }
    *out = m;
    return 0;
}

void mint_free(struct mint *m) {
    if (!m)
        return;
    EVP_PKEY_free(m->key);
    X509_free(m->cert);
    free(m);
}

const struct mint_facts *mint_facts(const struct mint *m) {
    return &m->facts;
}

static bool fill_form(X509 *x, X509 *ca, EVP_PKEY *key) {
    return X509_set_version(x, 2) == 1 && X509_set_issuer_name(x, X509_get_subject_name(ca)) == 1 &&
           X509_set_pubkey(x, key) == 1 &&
           add_extension(x, ca, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(x, ca, NID_key_usage, "critical,digitalSignature") &&
           add_extension(x, ca, NID_ext_key_usage, "serverAuth") &&
           add_extension(x, ca, NID_subject_key_identifier, "hash") &&
           add_extension(x, ca, NID_authority_key_identifier, "keyid:always");
}

int mint_form_new(const struct mint *m, struct view spki, struct mint_form **out) {
    const uint8_t *p = spki.p;
    EVP_PKEY *key = spki.n > 0 && spki.n <= 1024 ? d2i_PUBKEY(NULL, &p, (long)spki.n) : NULL;
    struct mint_form *f = calloc(1, sizeof *f);
    bool good = f && is_p256(key) && p == spki.p + spki.n;
    if (good) {
        f->mint = m;
        f->leaf = X509_new();
        good = f->leaf && fill_form(f->leaf, m->cert, key);
    }
    EVP_PKEY_free(key);
    if (!good) {
        mint_form_free(f);
        return ERR_CRYPTO;
    }
    *out = f;
    return 0;
}

void mint_form_free(struct mint_form *f) {
    if (!f)
        return;
    X509_free(f->leaf);
    free(f);
}

/* Whatever asks: nothing but these bytes ever gets into a certificate. */
static bool name_is_good(struct view name) {
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_' && c != '.')
            return false;
    }
    return name.n > 0 && name.n <= NAME_BYTES_MAX;
}

static GENERAL_NAME *general_name(int type, struct view bytes) {
    GENERAL_NAME *g = GENERAL_NAME_new();
    ASN1_STRING *s = type == GEN_DNS ? ASN1_IA5STRING_new() : ASN1_OCTET_STRING_new();
    if (!g || !s || ASN1_STRING_set(s, bytes.p, (int)bytes.n) != 1) {
        GENERAL_NAME_free(g);
        ASN1_STRING_free(s);
        return NULL;
    }
    GENERAL_NAME_set0_value(g, type, s);
    return g;
}

/* Replaces the form's alternative name. */
static bool set_name(X509 *x, const struct authority *a, bool critical) {
    bool address = a->kind == HOST_ADDRESS;
    size_t size = a->address.family == 4 ? 4 : 16;
    struct view bytes = address ? view_of(a->address.bytes, size) : view_str(a->host);
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    GENERAL_NAME *g = general_name(address ? GEN_IPADD : GEN_DNS, bytes);
    bool done = names && g && sk_GENERAL_NAME_push(names, g) > 0;
    if (!done)
        GENERAL_NAME_free(g);
    done = done &&
           X509_add1_ext_i2d(x, NID_subject_alt_name, names, critical, X509V3_ADD_REPLACE) == 1;
    GENERAL_NAMES_free(names);
    return done;
}

int mint_leaf(struct mint_form *f, const struct authority *a, struct mint_validity validity,
              const uint8_t serial[MINT_SERIAL_SIZE], struct buf *der, uint64_t *ends) {
    static const uint8_t zeros[MINT_SERIAL_SIZE];
    struct view host = view_str(a->host);
    if (validity.not_after > f->mint->facts.validity.not_after)
        validity.not_after = f->mint->facts.validity.not_after;
    if (validity.not_before >= validity.not_after || memcmp(serial, zeros, sizeof zeros) == 0 ||
        (a->kind == HOST_NAME && !name_is_good(host)))
        return ERR_BAD;
    if (!set_serial(f->leaf, serial) || !set_validity(f->leaf, validity) ||
        !set_subject(f->leaf, host) || !set_name(f->leaf, a, host.n > COMMON_NAME_MAX) ||
        X509_sign(f->leaf, f->mint->key, EVP_sha256()) <= 0)
        return ERR_CRYPTO;
    if (ends)
        *ends = validity.not_after;
    return put_der(f->leaf, der);
}

#include "cli/java_roots.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/asn1t.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>

#define TRUSTED_KEY_USAGE "2.16.840.1.113894.746875.1.1"

struct java_roots {
    STACK_OF(PKCS12_SAFEBAG) * bags;
    int n;
};

struct java_roots *java_roots_new(void) {
    struct java_roots *j = calloc(1, sizeof *j);
    if (j && !(j->bags = sk_PKCS12_SAFEBAG_new_null())) {
        free(j);
        return NULL;
    }
    return j;
}

void java_roots_free(struct java_roots *j) {
    if (j)
        sk_PKCS12_SAFEBAG_pop_free(j->bags, PKCS12_SAFEBAG_free);
    free(j);
}

/*
 * A certificate (RFC 5280, section 4.1) whose public key is left as it is: an X509 would decode it, which takes most of
 * the time of reading a system's roots, and each launch of a sandbox reads them.
 */
typedef struct root_body root_body; /* OpenSSL's macros want a type's name */
struct root_body {
    ASN1_ENCODING bytes; /* so that it is written as it was read */
    ASN1_INTEGER *version, *serial;
    X509_ALGOR *algorithm;
    X509_NAME *issuer;
    X509_VAL *validity;
    X509_NAME *subject;
    ASN1_STRING *key;
    ASN1_BIT_STRING *issuer_id, *subject_id;
    STACK_OF(X509_EXTENSION) * extensions;
};

struct root {
    struct root_body *body;
    X509_ALGOR *algorithm;
    ASN1_BIT_STRING *signature;
};

/* clang-format off */
ASN1_SEQUENCE_enc(root_body, bytes, 0) = {
    ASN1_EXP_OPT(struct root_body, version, ASN1_INTEGER, 0),
    ASN1_SIMPLE(struct root_body, serial, ASN1_INTEGER),
    ASN1_SIMPLE(struct root_body, algorithm, X509_ALGOR),
    ASN1_SIMPLE(struct root_body, issuer, X509_NAME),
    ASN1_SIMPLE(struct root_body, validity, X509_VAL),
    ASN1_SIMPLE(struct root_body, subject, X509_NAME),
    ASN1_SIMPLE(struct root_body, key, ASN1_SEQUENCE),
    ASN1_IMP_OPT(struct root_body, issuer_id, ASN1_BIT_STRING, 1),
    ASN1_IMP_OPT(struct root_body, subject_id, ASN1_BIT_STRING, 2),
    ASN1_EXP_SEQUENCE_OF_OPT(struct root_body, extensions, X509_EXTENSION, 3),
} static_ASN1_SEQUENCE_END_cb(root_body, root_body)

ASN1_SEQUENCE(root) = {
    ASN1_SIMPLE(struct root, body, root_body),
    ASN1_SIMPLE(struct root, algorithm, X509_ALGOR),
    ASN1_SIMPLE(struct root, signature, ASN1_BIT_STRING),
} static_ASN1_SEQUENCE_END_name(struct root, root)
/* clang-format on */

/* Java keeps one of several entries of the same name, so each gets its number. */
static bool mark(PKCS12_SAFEBAG *bag, int number) {
    char alias[16];
    int n = snprintf(alias, sizeof alias, "root-%d", number);
    return PKCS12_add_friendlyname_utf8(bag, alias, n) == 1 &&
           PKCS12_add1_attr_by_txt(bag, TRUSTED_KEY_USAGE, V_ASN1_OBJECT,
                                   (unsigned char *)OBJ_nid2obj(NID_anyExtendedKeyUsage), -1) == 1;
}

static bool add_root(struct java_roots *j, ASN1_VALUE *root) {
    PKCS12_SAFEBAG *bag =
        PKCS12_item_pack_safebag(root, ASN1_ITEM_rptr(root), NID_x509Certificate, NID_certBag);
    if (bag && mark(bag, j->n + 1) && sk_PKCS12_SAFEBAG_push(j->bags, bag) > 0) {
        j->n++;
        return true;
    }
    PKCS12_SAFEBAG_free(bag);
    return false;
}

/* The next certificate; one that is broken is passed over, so that those behind it are not lost. NULL: none. */
static ASN1_VALUE *next_root(BIO *in) {
    ASN1_VALUE *root = NULL;
    do {
        unsigned char *der = NULL;
        long n = 0;
        ERR_clear_error();
        if (PEM_bytes_read_bio(&der, &n, NULL, PEM_STRING_X509, in, NULL, NULL) == 1) {
            const unsigned char *at = der;
            root = ASN1_item_d2i(NULL, &at, n, ASN1_ITEM_rptr(root));
            OPENSSL_free(der);
        }
    } while (!root && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE);
    ERR_clear_error();
    return root;
}

int java_roots_add(struct java_roots *j, struct view pem) {
    if (pem.n == 0)
        return 0;
    BIO *in = pem.n <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    bool ok = in != NULL;
    ASN1_VALUE *root;
    while (ok && (root = next_root(in))) {
        ok = add_root(j, root);
        ASN1_item_free(root, ASN1_ITEM_rptr(root));
    }
    BIO_free(in);
    return ok ? 0 : ERR_CRYPTO;
}

static int put_store(PKCS12 *store, struct buf *out) {
    unsigned char *der = NULL;
    int n = store ? i2d_PKCS12(store, &der) : -1;
    if (n <= 0)
        return ERR_CRYPTO;
    buf_put(out, view_of(der, (size_t)n));
    OPENSSL_free(der);
    return buf_ok(out) ? 0 : ERR_LIMIT;
}

int java_roots_write(struct java_roots *j, struct buf *out) {
    STACK_OF(PKCS7) *safes = NULL;
    if (j->n == 0)
        return ERR_BAD;
    int result = PKCS12_add_safe(&safes, j->bags, -1, 0, NULL) == 1 ? 0 : ERR_CRYPTO;
    PKCS12 *store = result == 0 ? PKCS12_add_safes(safes, 0) : NULL;
    if (result == 0)
        result = put_store(store, out);
    PKCS12_free(store);
    sk_PKCS7_pop_free(safes, PKCS7_free);
    return result;
}

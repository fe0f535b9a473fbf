#include "cli/java_roots.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>

#define TRUSTED_KEY_USAGE "2.16.840.1.113894.746875.1.1"

struct java_roots {
    STACK_OF(PKCS12_SAFEBAG) * bags; /* NULL: none yet */
    int n;
};

struct java_roots *java_roots_new(void) {
    return calloc(1, sizeof(struct java_roots));
}

void java_roots_free(struct java_roots *j) {
    if (j)
        sk_PKCS12_SAFEBAG_pop_free(j->bags, PKCS12_SAFEBAG_free);
    free(j);
}

/* Java keeps one of several entries of the same name, so each gets its number. */
static bool add_root(STACK_OF(PKCS12_SAFEBAG) * *bags, X509 *root, int number) {
    char alias[16];
    int n = snprintf(alias, sizeof alias, "root-%d", number);
    if (X509_alias_set1(root, (unsigned char *)alias, n) != 1)
        return false;
    PKCS12_SAFEBAG *bag = PKCS12_add_cert(bags, root);
    return bag &&
           PKCS12_add1_attr_by_txt(bag, TRUSTED_KEY_USAGE, V_ASN1_OBJECT,
                                   (unsigned char *)OBJ_nid2obj(NID_anyExtendedKeyUsage), -1) == 1;
}

/* The next certificate; one that is broken is passed over, so that those behind it are not lost. NULL: none. */
static X509 *next_root(BIO *in) {
    X509 *root;
    do {
        ERR_clear_error();
        root = PEM_read_bio_X509(in, NULL, NULL, NULL);
    } while (!root && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE);
    ERR_clear_error();
    return root;
}

int java_roots_add(struct java_roots *j, struct view pem) {
    BIO *in = pem.n <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    bool ok = in != NULL;
    X509 *root;
    while (ok && (root = next_root(in))) {
        ok = add_root(&j->bags, root, ++j->n);
        X509_free(root);
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

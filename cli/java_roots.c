#include "cli/java_roots.h"

#include <limits.h>
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>

#define TRUSTED_KEY_USAGE "2.16.840.1.113894.746875.1.1"

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

static int read_roots(struct view pem, STACK_OF(PKCS12_SAFEBAG) * *bags) {
    BIO *in = pem.n <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    bool ok = in != NULL;
    X509 *root;
    for (int i = 1; ok && (root = next_root(in)); i++) {
        ok = add_root(bags, root, i);
        X509_free(root);
    }
    BIO_free(in);
    return !ok ? ERR_CRYPTO : sk_PKCS12_SAFEBAG_num(*bags) > 0 ? 0 : ERR_BAD;
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

int java_roots(struct view pem, struct buf *out) {
    STACK_OF(PKCS12_SAFEBAG) *bags = NULL;
    STACK_OF(PKCS7) *safes = NULL;
    int result = read_roots(pem, &bags);
    if (result == 0 && PKCS12_add_safe(&safes, bags, -1, 0, NULL) != 1)
        result = ERR_CRYPTO;
    PKCS12 *store = result == 0 ? PKCS12_add_safes(safes, 0) : NULL;
    if (result == 0)
        result = put_store(store, out);
    PKCS12_free(store);
    sk_PKCS7_pop_free(safes, PKCS7_free);
    sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
    return result;
}

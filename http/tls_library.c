#include "http/tls_library.h"

#include "base/openssl_memory.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/provider.h>
#include <stdbool.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static OSSL_PROVIDER *whole; /* the default provider, in the default context */

/* ---- what is left ---- */

enum { NAMES_MAX = 20, LEFT_MAX = 32 };

#define OF_CERTIFICATES                                                                            \
    "RSA", "RSA-PSS", "EC", "ED25519", "ED448", "ML-DSA-44", "ML-DSA-65", "ML-DSA-87"

/* Of these operations only the algorithms that are named here; some are known from OpenSSL 3.5 on. */
static struct operation {
    int id;
    const char *properties[2];         /* texts that an algorithm's have; NULL: whatever they are */
    const char *names[NAMES_MAX + 1];  /* of an algorithm, the first one */
    OSSL_ALGORITHM left[LEFT_MAX + 1]; /* the last one is empty */
} operations[] = {
    {OSSL_OP_DECODER, {"input=der", "structure=SubjectPublicKeyInfo"}, {OF_CERTIFICATES}, {{0}}},
    {OSSL_OP_KEYMGMT,
     {NULL},
     {OF_CERTIFICATES, "X25519", "X448", "DH", "HMAC", "ML-KEM-512", "ML-KEM-768", "ML-KEM-1024",
      "X25519MLKEM768", "X448MLKEM1024", "SecP256r1MLKEM768", "SecP384r1MLKEM1024"},
     {{0}}},
    {OSSL_OP_CIPHER,
     {NULL},
     {"AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305", "AES-128-CBC", "AES-256-CBC",
      "AES-128-CCM", "AES-256-CCM"},
     {{0}}},
};

static bool has_name(const char *names, const char *const *wanted) {
    size_t n = strcspn(names, ":");
    for (; *wanted; wanted++)
        if (strlen(*wanted) == n && memcmp(names, *wanted, n) == 0)
            return true;
    return false;
}

static bool is_wanted(const struct operation *o, const OSSL_ALGORITHM *a) {
    for (size_t i = 0; i < COUNT(o->properties); i++)
        if (o->properties[i] && !strstr(a->property_definition, o->properties[i]))
            return false;
    return has_name(a->algorithm_names, o->names);
}

static void choose(struct operation *o) {
    int no_store;
    size_t n = 0;
    const OSSL_ALGORITHM *a = OSSL_PROVIDER_query_operation(whole, o->id, &no_store);
    for (; a && a->algorithm_names && n < LEFT_MAX; a++)
        if (is_wanted(o, a))
            o->left[n++] = *a;
}

/* ---- the provider ---- */

static const OSSL_ALGORITHM *query(void *context, int operation, int *no_store) {
    (void)context;
    *no_store = 0;
    for (size_t i = 0; i < COUNT(operations); i++)
        if (operations[i].id == operation)
            return operations[i].left;
    return OSSL_PROVIDER_query_operation(whole, operation, no_store);
}

static int capabilities(void *context, const char *kind, OSSL_CALLBACK *tell, void *arg) {
    (void)context;
    return OSSL_PROVIDER_get_capabilities(whole, kind, tell, arg);
}

/* The algorithms are the default provider's own, and get its context. */
static int start(const OSSL_CORE_HANDLE *core, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out,
                 void **context) {
    static const OSSL_DISPATCH functions[] = {
        {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
        {OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))capabilities},
        {0, NULL},
    };
    (void)core;
    (void)in;
    *out = functions;
    *context = OSSL_PROVIDER_get0_provider_ctx(whole);
    return 1;
}

OSSL_LIB_CTX *tls_library(void) {
    static OSSL_LIB_CTX *made;
    if (made)
        return made;
    if (!whole)
        whole = OSSL_PROVIDER_load(NULL, "default");
    OSSL_LIB_CTX *context = whole ? OSSL_LIB_CTX_new() : NULL;
    if (!context)
        return NULL;
    for (size_t i = 0; i < COUNT(operations); i++)
        choose(&operations[i]);
    if (OSSL_PROVIDER_add_builtin(context, "exeat", start) && OSSL_PROVIDER_load(context, "exeat"))
        made = context;
    else
        OSSL_LIB_CTX_free(context);
    return made;
}

/* A key that could not be decoded for want of memory would be none as long as the certificate is there. */
X509 *tls_library_certificate(const unsigned char **p, long n) {
    unsigned long refused = openssl_memory_refused();
    X509 *x = X509_new_ex(tls_library(), NULL);
    if (x && d2i_X509(&x, p, n) && openssl_memory_refused() == refused)
        return x;
    X509_free(x);
    return NULL;
}

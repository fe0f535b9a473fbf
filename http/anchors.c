#include "http/anchors.h"

#include "base/openssl_memory.h"
#include "http/tls_library.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

struct anchor {
    X509_NAME *subject;
    uint8_t *der;
    long n;
    X509 *certificate; /* once it was needed */
};

struct anchors {
    struct anchor *at;
    size_t n, room;
};

/* ---- reading ---- */

/* Enters (or passes over) the element at *p, which must have this tag. False when it has not. */
static bool element(const unsigned char **p, const unsigned char *end, int tag, int class,
                    bool enter) {
    long n;
    int its_tag, its_class;
    const unsigned char *at = *p;
    int flags = ASN1_get_object(&at, &n, &its_tag, &its_class, end - at);
    if ((flags & 0x80) || (flags & 1) || its_tag != tag || its_class != class || n > end - at)
        return false;
    *p = enter ? at : at + n;
    return true;
}

static bool sequence(const unsigned char **p, const unsigned char *end, bool enter) {
    return element(p, end, V_ASN1_SEQUENCE, V_ASN1_UNIVERSAL, enter);
}

/* The subject of a certificate (RFC 5280 4.1) without reading the rest. */
static X509_NAME *read_subject(const uint8_t *der, long n) {
    const unsigned char *p = der, *end = der + n;
    if (!sequence(&p, end, true) || !sequence(&p, end, true))
        return NULL;
    (void)element(&p, end, 0, V_ASN1_CONTEXT_SPECIFIC, false);        /* version, from 2 on */
    if (!element(&p, end, V_ASN1_INTEGER, V_ASN1_UNIVERSAL, false) || /* serial number */
        !sequence(&p, end, false) ||                                  /* signature algorithm */
        !sequence(&p, end, false) ||                                  /* issuer */
        !sequence(&p, end, false))                                    /* validity */
        return NULL;
    return d2i_X509_NAME(NULL, &p, end - p);
}

static bool make_room(struct anchors *a) {
    if (a->n < a->room)
        return true;
    size_t room = a->room ? a->room * 2 : 64;
    struct anchor *at = reallocarray(a->at, room, sizeof *at);
    if (!at)
        return false;
    a->at = at;
    a->room = room;
    return true;
}

/* Takes der over. One that cannot be read is no anchor. */
static int keep(struct anchors *a, uint8_t *der, long n) {
    struct anchor new = {.subject = read_subject(der, n), .der = der, .n = n};
    if (new.subject && make_room(a)) {
        a->at[a->n++] = new;
        return 0;
    }
    int result = new.subject ? ERR_MEMORY : 0;
    X509_NAME_free(new.subject);
    OPENSSL_free(der);
    return result;
}

static int read_all(struct anchors *a, struct view pem) {
    BIO *bio = pem.n > 0 && pem.n <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    int result = bio ? 0 : ERR_BAD;
    uint8_t *der;
    long n;
    while (result == 0 && PEM_bytes_read_bio(&der, &n, NULL, PEM_STRING_X509, bio, NULL, NULL))
        result = keep(a, der, n);
    BIO_free(bio);
    ERR_clear_error();
    return result == 0 && a->n == 0 ? ERR_BAD : result;
}

static void anchors_free(struct anchors *a) {
    for (size_t i = 0; i < a->n; i++) {
        X509_NAME_free(a->at[i].subject);
        X509_free(a->at[i].certificate);
        OPENSSL_free(a->at[i].der);
    }
    free(a->at);
    free(a);
}

/* ---- the store's questions ---- */

/*
 * Its extensions are looked at here: those that OpenSSL could not read for want of memory it would take for wrong as long as the
 * certificate is there.
 */
static X509 *read_certificate(const struct anchor *a) {
    const unsigned char *p = a->der;
    unsigned long refused = openssl_memory_refused();
    X509 *x = tls_library_certificate(&p, a->n);
    if (x)
        (void)X509_check_purpose(x, -1, 0);
    if (openssl_memory_refused() == refused)
        return x;
    X509_free(x);
    return NULL;
}

static X509 *certificate_of(struct anchor *a, X509_STORE *store) {
    if (a->certificate)
        return a->certificate;
    X509 *x = read_certificate(a);
    if (x && !X509_STORE_add_cert(store, x)) {
        X509_free(x);
        x = NULL;
    }
    return a->certificate = x;
}

/*
 * All anchors of that name go into the store, where OpenSSL looks for further
 * ones itself; one of them is the answer. The reference that set1 takes is one
 * too many, since the caller takes its own.
 */
static int by_subject(X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name,
                      X509_OBJECT *out) {
    struct anchors *a = X509_LOOKUP_get_method_data(lookup);
    X509_STORE *store = X509_LOOKUP_get_store(lookup);
    X509 *answer = NULL;
    if (type != X509_LU_X509)
        return 0;
    for (size_t i = 0; i < a->n; i++) {
        if (X509_NAME_cmp(a->at[i].subject, name) != 0)
            continue;
        X509 *x = certificate_of(&a->at[i], store);
        answer = answer ? answer : x;
    }
    if (!answer || !X509_OBJECT_set1_X509(out, answer))
        return 0;
    X509_free(answer);
    return 1;
}

static void on_free(X509_LOOKUP *lookup) {
    struct anchors *a = X509_LOOKUP_get_method_data(lookup);
    if (a)
        anchors_free(a);
}

static X509_LOOKUP_METHOD *method(void) {
    static X509_LOOKUP_METHOD *made;
    if (made)
        return made;
    X509_LOOKUP_METHOD *m = X509_LOOKUP_meth_new("anchors");
    if (m && X509_LOOKUP_meth_set_get_by_subject(m, by_subject) &&
        X509_LOOKUP_meth_set_free(m, on_free))
        made = m;
    else
        X509_LOOKUP_meth_free(m);
    return made;
}

int anchors_add(X509_STORE *store, struct view pem) {
    struct anchors *a = calloc(1, sizeof *a);
    if (!a)
        return ERR_MEMORY;
    int result = read_all(a, pem);
    X509_LOOKUP *lookup = result == 0 && method() ? X509_STORE_add_lookup(store, method()) : NULL;
    if (lookup) {
        X509_LOOKUP_set_method_data(lookup, a);
        return 0;
    }
    anchors_free(a);
    return result ? result : ERR_MEMORY;
}

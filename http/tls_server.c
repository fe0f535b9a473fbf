#include "http/tls_stream.h"

#include "base/digest.h"
#include "base/openssl_memory.h"
#include "http/tls_library.h"

#include <limits.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHAIN_MAX = 8,
    TICKET_SECONDS = 3600,
};

struct tls_server {
    SSL_CTX *ctx;
    EVP_PKEY *key;
    uint8_t *public_key; /* SubjectPublicKeyInfo, by OpenSSL's allocator */
    size_t public_key_n;
};

struct tls_leaf {
    X509 *leaf;
    STACK_OF(X509) * chain;
};

/* ---- the lane's settings ---- */

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                           const unsigned char *in, unsigned in_n, void *ctx) {
    struct view rest = view_of(in, in_n);
    (void)ssl;
    (void)ctx;
    while (rest.n > 0) {
        struct view name = view_slice(rest, 1, 1 + (size_t)rest.p[0]);
        if (view_equal(name, VIEW("http/1.1"))) {
            *out = name.p;
            *out_n = (unsigned char)name.n;
            return SSL_TLSEXT_ERR_OK;
        }
        rest = view_skip(rest, 1 + name.n);
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *server_context(void) {
    SSL_CTX *ctx = stream_context(TLS_server_method());
    if (!ctx)
        return NULL;
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    /* Tickets only, one a connection, under a key that the context made and keeps to itself. */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_timeout(ctx, TICKET_SECONDS);
    if (SSL_CTX_set_num_tickets(ctx, 1) &&
        SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20"))
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

struct tls_server *tls_server_new(void) {
    unsigned long refused = openssl_memory_refused();
    struct tls_server *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->ctx = server_context();
    s->key = s->ctx ? EVP_PKEY_Q_keygen(tls_library(), NULL, "EC", "P-256") : NULL;
    int n = s->key ? i2d_PUBKEY(s->key, &s->public_key) : -1;
    stream_forget_errors();
    if (n <= 0 || openssl_memory_refused() != refused) {
        tls_server_free(s);
        return NULL;
    }
    s->public_key_n = (size_t)n;
    return s;
}

void tls_server_free(struct tls_server *s) {
    if (!s)
        return;
    SSL_CTX_free(s->ctx);
    EVP_PKEY_free(s->key);
    OPENSSL_free(s->public_key);
    free(s);
}

struct view tls_server_public_key(const struct tls_server *s) {
    return view_of(s->public_key, s->public_key_n);
}

/* ---- leaves ---- */

/* The certificate at the front of *der, which is taken off. */
static X509 *take_certificate(struct view *der) {
    const unsigned char *p = der->p;
    if (der->n == 0 || der->n > INT_MAX)
        return NULL;
    X509 *x = tls_library_certificate(&p, (long)der->n);
    if (x)
        *der = view_skip(*der, (size_t)(p - der->p));
    return x;
}

static bool take_chain(struct tls_leaf *l, struct view der) {
    while (der.n > 0) {
        X509 *x = take_certificate(&der);
        if (!x || sk_X509_num(l->chain) == CHAIN_MAX || !sk_X509_push(l->chain, x)) {
            X509_free(x);
            return false;
        }
    }
    return true;
}

struct tls_leaf *tls_leaf_new(struct view leaf, struct view chain) {
    struct tls_leaf *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->leaf = take_certificate(&leaf);
    l->chain = sk_X509_new_null();
    bool ok = l->leaf && leaf.n == 0 && l->chain && take_chain(l, chain);
    stream_forget_errors();
    if (ok)
        return l;
    tls_leaf_free(l);
    return NULL;
}

void tls_leaf_free(struct tls_leaf *l) {
    if (!l)
        return;
    X509_free(l->leaf);
    sk_X509_pop_free(l->chain, X509_free);
    free(l);
}

/* ---- connections ---- */

/* A ticket holds the context of the session it was made in, and resumes in no other. */
static bool bind_tickets(SSL *ssl, const char *name) {
    uint8_t id[DIGEST_SIZE];
    digest_sha256(view_str(name), id);
    return SSL_set_session_id_context(ssl, id, sizeof id);
}

struct tls *tls_accept(struct tls_server *s, int fd, const struct tls_leaf *leaf, const char *name,
                       struct view first) {
    unsigned long refused = openssl_memory_refused();
    struct tls *t = stream_new(s->ctx, fd, first);
    if (!t)
        return NULL;
    SSL_set_accept_state(t->ssl);
    /* As in tls_connect: not all of them say when they had no memory. */
    bool ok = bind_tickets(t->ssl, name) &&
              SSL_use_cert_and_key(t->ssl, leaf->leaf, s->key, leaf->chain, 1) &&
              openssl_memory_refused() == refused;
    stream_forget_errors();
    if (ok)
        return t;
    tls_free(t);
    return NULL;
}

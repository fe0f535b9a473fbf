/*
 * TLS over socket pairs: our client and our server as two ends, and a peer of bare OpenSSL that does
 * what ours never would. Certificates are made here: a root that the client trusts, an authority
 * below it that signs leaves, and a root that nobody knows.
 */
#ifndef TESTS_UNIT_TLS_ENDS_H
#define TESTS_UNIT_TLS_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/tls.h"
#include "tests/unit/certificates.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define NAME "api.allowed.test"
#define NO_ADDRESS ((struct view){NULL, 0})

enum { TURNS = 100000, MAX_CHAIN = 4 };

static struct certificate root, middle, unknown_root;
static struct buf anchors;
static struct tls_client *client;
static struct tls_server *server;
static struct tls_leaf *leaf;

/* ---- two ends ---- */

static void make_pair(int fd[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
}

static void close_pair(int fd[2]) {
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

static bool is_wait(enum tls_result r) {
    return r == TLS_WANT_READ || r == TLS_WANT_WRITE;
}

/* Handshakes of both until neither waits; false when one failed. */
__attribute__((unused)) static bool shake(struct tls *a, struct tls *b) {
    enum tls_result ra = TLS_WANT_READ, rb = TLS_WANT_READ;
    for (int i = 0; i < TURNS && (is_wait(ra) || is_wait(rb)); i++) {
        if (is_wait(ra))
            ra = tls_handshake(a);
        if (is_wait(rb))
            rb = tls_handshake(b);
        if (ra == TLS_FAILED || rb == TLS_FAILED || ra == TLS_CUT || rb == TLS_CUT)
            break;
    }
    return ra == TLS_DONE && rb == TLS_DONE;
}

/* Our client and server, connected. */
struct ends {
    int fd[2];
    struct tls *c, *s;
};

__attribute__((unused)) static void open_ends(struct ends *e, const char *name,
                                              struct tls_session *session) {
    make_pair(e->fd);
    e->c = tls_connect(client, e->fd[0], name, NO_ADDRESS, NULL, session);
    e->s = tls_accept(server, e->fd[1], leaf, name, NO_ADDRESS);
    assert_non_null(e->c);
    assert_non_null(e->s);
}

__attribute__((unused)) static void close_ends(struct ends *e) {
    tls_free(e->c);
    tls_free(e->s);
    close_pair(e->fd);
}

/* Moves one byte from the server, which also brings the client its ticket. */
__attribute__((unused)) static void say_hello(struct ends *e) {
    uint8_t byte;
    size_t n;
    assert_int_equal(tls_write(e->s, VIEW("x"), &n), TLS_DONE);
    assert_int_equal(tls_read(e->c, &byte, 1, &n), TLS_DONE);
    assert_int_equal(byte, 'x');
}

/* ---- a peer made of bare OpenSSL ---- */

struct peer {
    SSL_CTX *ctx;
    SSL *ssl;
};

static void peer_free(struct peer *p) {
    SSL_free(p->ssl);
    SSL_CTX_free(p->ctx);
}

static void peer_new(struct peer *p, const SSL_METHOD *method, int fd) {
    p->ctx = SSL_CTX_new(method);
    SSL_CTX_set_security_level(p->ctx, 0);
    SSL_CTX_set_min_proto_version(p->ctx, TLS1_VERSION);
    p->ssl = NULL;
    if (fd >= 0) {
        p->ssl = SSL_new(p->ctx);
        SSL_set_fd(p->ssl, fd);
    }
}

static void peer_start(struct peer *p, int fd) {
    p->ssl = SSL_new(p->ctx);
    SSL_set_fd(p->ssl, fd);
}

/* 1 done, 0 waits, -1 failed */
static int peer_shake(struct peer *p) {
    ERR_clear_error();
    int r = SSL_do_handshake(p->ssl);
    if (r == 1)
        return 1;
    int e = SSL_get_error(p->ssl, r);
    return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

__attribute__((unused)) static enum tls_result shake_with_peer(struct tls *t, struct peer *p) {
    enum tls_result r = TLS_WANT_READ;
    int other = 0;
    for (int i = 0; i < TURNS && (is_wait(r) || other == 0); i++) {
        if (other == 0)
            other = peer_shake(p);
        if (is_wait(r))
            r = tls_handshake(t);
        if (r == TLS_FAILED || r == TLS_CUT)
            break;
        if (other < 0 && is_wait(r))
            r = tls_handshake(t);
        if (other < 0)
            break;
    }
    return r;
}

__attribute__((unused)) static void server_identity(struct peer *p) {
    struct certificate c =
        certificate_make(&(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &middle});
    SSL_CTX_use_certificate(p->ctx, c.x);
    SSL_CTX_use_PrivateKey(p->ctx, c.key);
    SSL_CTX_add1_chain_cert(p->ctx, middle.x);
    certificate_free(&c);
}

/* ---- set-up ---- */

/* A leaf for our server, and the authority that our client trusts, which signed it. */
static void put_leaf(struct buf *der, struct buf *chain, long seconds) {
    struct view spki = tls_server_public_key(server);
    const uint8_t *p = spki.p;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &p, (long)spki.n);
    struct wish w = {.cn = "x",
                     .san = "DNS:" NAME ",DNS:b.test",
                     .issuer = &middle,
                     .key = key,
                     .from = -60,
                     .to = seconds};
    struct certificate c = certificate_make(&w);
    put_der(der, &c);
    put_der(chain, &middle);
    certificate_free(&c);
    EVP_PKEY_free(key);
}

static struct tls_leaf *our_leaf(long seconds) {
    struct buf der, chain;
    buf_init(&der, 65536);
    buf_init(&chain, 65536);
    put_leaf(&der, &chain, seconds);
    struct tls_leaf *l = tls_leaf_new(buf_view(&der), buf_view(&chain));
    assert_non_null(l);
    buf_free(&der);
    buf_free(&chain);
    return l;
}

static int ends_setup(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    if (tls_start() != 0)
        return -1;
    root = certificate_make(&(struct wish){.cn = "root", .ca = true});
    middle = certificate_make(&(struct wish){.cn = "middle", .issuer = &root, .ca = true});
    unknown_root = certificate_make(&(struct wish){.cn = "unknown", .ca = true});
    buf_init(&anchors, 1 << 20);
    buf_put(&anchors, VIEW("# a comment\n"));
    put_pem(&anchors, &root);
    client = tls_client_new(buf_view(&anchors), MAX_CHAIN);
    server = tls_server_new();
    if (!client || !server)
        return -1;
    leaf = our_leaf(DAY);
    return 0;
}

static int ends_teardown(void **state) {
    (void)state;
    tls_leaf_free(leaf);
    tls_server_free(server);
    tls_client_free(client);
    certificate_free(&root);
    certificate_free(&middle);
    certificate_free(&unknown_root);
    buf_free(&anchors);
    return 0;
}

#endif

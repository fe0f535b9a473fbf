/*
 * TLS over socket pairs: our client against our server, and each against a
 * peer that does what it should not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/ssl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http/tls.h"
#include "tests/unit/certificates.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define NAME "api.allowed.test"
#define NO_ADDRESS ((struct view){NULL, 0})

enum { TURNS = 100000, MAX_CHAIN = 4 };

static int setup(void **state);
static struct tls_leaf *our_leaf(long seconds);

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
static bool shake(struct tls *a, struct tls *b) {
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

static void open_ends(struct ends *e, const char *name, struct tls_session *session) {
    make_pair(e->fd);
    e->c = tls_connect(client, e->fd[0], name, NO_ADDRESS, session);
    e->s = tls_accept(server, e->fd[1], leaf, name, NO_ADDRESS);
    assert_non_null(e->c);
    assert_non_null(e->s);
}

static void close_ends(struct ends *e) {
    tls_free(e->c);
    tls_free(e->s);
    close_pair(e->fd);
}

/* Moves one byte from the server, which also brings the client its ticket. */
static void say_hello(struct ends *e) {
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

static enum tls_result shake_with_peer(struct tls *t, struct peer *p) {
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

/* ---- upstream certificates (TU-01 to TU-04, TU-06) ---- */

/* What a server with this leaf and these certificates above it makes of our client. */
static const char *verdict_at(const struct certificate *c, struct certificate *const *above,
                              size_t n, const char *name, struct view address) {
    static char text[200];
    int fd[2];
    struct peer p;
    make_pair(fd);
    peer_new(&p, TLS_server_method(), -1);
    assert_int_equal(SSL_CTX_use_certificate(p.ctx, c->x), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(p.ctx, c->key), 1);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(SSL_CTX_add1_chain_cert(p.ctx, above[i]->x), 1);
    peer_start(&p, fd[1]);
    SSL_set_accept_state(p.ssl);
    struct tls *t = tls_connect(client, fd[0], name, address, NULL);
    assert_non_null(t);
    enum tls_result r = shake_with_peer(t, &p);
    snprintf(text, sizeof text, "%s",
             r == TLS_DONE     ? "good"
             : r == TLS_FAILED ? tls_error(t)
                               : "?");
    tls_free(t);
    peer_free(&p);
    close_pair(fd);
    return text;
}

static const char *verdict(const struct wish *w) {
    struct certificate c = certificate_make(w);
    struct certificate *above[] = {&middle};
    const char *text = verdict_at(&c, above, 1, NAME, NO_ADDRESS);
    certificate_free(&c);
    return text;
}

static void test_tu_01_to_03_and_06_every_flaw_of_a_leaf_is_named(void **state) {
    (void)state;
    const struct certificate *m = &middle, *u = &unknown_root;
    const struct {
        struct wish wish;
        const char *verdict;
    } cases[] = {
        {{.cn = "x", .san = "DNS:" NAME, .issuer = m}, "good"},
        {{.cn = "x", .san = "DNS:API.allowed.TEST", .issuer = m}, "good"},
        {{.cn = "x", .san = "DNS:*.allowed.test", .issuer = m}, "good"},
        {{.cn = "x", .san = "DNS:other.test,DNS:" NAME, .issuer = m, .eku = "serverAuth"}, "good"},
        {{.cn = "x", .san = "DNS:" NAME, .issuer = m, .rsa_bits = 2048}, "good"},
        {{.cn = "x", .san = "DNS:" NAME, .issuer = m, .from = -2 * DAY, .to = -DAY},
         "the upstream's certificate has expired"},
        {{.cn = "x", .san = "DNS:" NAME, .issuer = m, .from = DAY, .to = 2 * DAY},
         "the upstream's certificate is not yet valid"},
        {{.cn = "x", .san = "DNS:" NAME},
         "the upstream's certificate is self-signed and no trust anchor"},
        {{.cn = "x", .san = "DNS:" NAME, .issuer = u},
         "no chain to a trust anchor: the upstream's authority is unknown, or the upstream did not "
         "send the certificate in between"},
        {{.cn = "x", .san = "DNS:other.test", .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = NAME, .issuer = m}, "the upstream's certificate is for another host"},
        {{.cn = NAME, .san = "DNS:other.test", .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = NAME, .san = "IP:127.0.0.1", .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = NAME, .san = "email:a@" NAME, .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = "x", .san = "DNS:a*.allowed.test", .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = "x", .san = "DNS:*pi.allowed.test", .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = "x", .san = "DNS:*.test", .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = "x", .san = "DNS:api.*.test", .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = "x", .san = "DNS:*.api.allowed.test", .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = "x", .san = "DNS:.allowed.test", .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = "x", .san = "DNS:" NAME ".", .issuer = m},
         "the upstream's certificate is for another host"},
        {{.cn = "x", .san = "DNS:" NAME, .issuer = m, .eku = "clientAuth"},
         "the upstream's certificate is not for servers"},
        {{.cn = "x", .san = "DNS:" NAME, .issuer = m, .sha1 = true},
         "a signature in the upstream's chain is by a hash that is too weak"},
        {{.cn = "x", .san = "DNS:" NAME, .issuer = m, .rsa_bits = 1024},
         "the upstream's key is too weak"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *text = verdict(&cases[i].wish);
        if (strcmp(text, cases[i].verdict) != 0)
            fail_msg("case %zu: %s, not %s", i, text, cases[i].verdict);
    }
}

static void test_tu_04_a_nul_in_a_name_ends_nothing(void **state) {
    (void)state;
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();
    ASN1_STRING_set(text, NAME "\0.evil.test", sizeof NAME "\0.evil.test" - 1);
    GENERAL_NAME_set0_value(name, GEN_DNS, text);
    struct wish w = {.cn = NAME, .issuer = &middle, .names = sk_GENERAL_NAME_new_null()};
    sk_GENERAL_NAME_push(w.names, name);
    assert_string_not_equal(verdict(&w), "good");
}

static void test_tu_01_an_expired_certificate_above_the_leaf_is_refused(void **state) {
    (void)state;
    struct certificate old = certificate_make(&(struct wish){
        .cn = "old middle", .issuer = &root, .ca = true, .from = -2 * DAY, .to = -DAY});
    struct certificate c =
        certificate_make(&(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &old});
    struct certificate *above[] = {&old};
    assert_string_equal(verdict_at(&c, above, 1, NAME, NO_ADDRESS),
                        "a certificate above the upstream's has expired");
    certificate_free(&c);
    certificate_free(&old);
}

static void test_a_leaf_cannot_sign_another(void **state) {
    (void)state;
    struct certificate no_ca =
        certificate_make(&(struct wish){.cn = "no ca", .san = "DNS:evil.test", .issuer = &root});
    struct certificate c =
        certificate_make(&(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &no_ca});
    struct certificate *above[] = {&no_ca};
    assert_string_equal(verdict_at(&c, above, 1, NAME, NO_ADDRESS),
                        "the upstream's certificate was issued by what is no authority");
    certificate_free(&c);
    certificate_free(&no_ca);
}

static void test_tu_10_more_certificates_than_the_limit_are_refused(void **state) {
    (void)state;
    struct certificate c =
        certificate_make(&(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &middle});
    struct certificate *above[] = {&middle, &root, &unknown_root, &unknown_root};
    assert_string_equal(verdict_at(&c, above, MAX_CHAIN - 1, NAME, NO_ADDRESS), "good");
    assert_string_equal(verdict_at(&c, above, MAX_CHAIN, NAME, NO_ADDRESS),
                        "the upstream sent too many certificates");
    certificate_free(&c);
}

static void test_an_address_needs_a_certificate_for_the_address(void **state) {
    (void)state;
    static const struct {
        const char *san;
        struct view address;
        const char *name, *verdict;
    } cases[] = {
        {"IP:127.0.0.1", VIEW("\x7f\0\0\1"), "127.0.0.1", "good"},
        {"IP:127.0.0.2", VIEW("\x7f\0\0\1"), "127.0.0.1",
         "the upstream's certificate is for another host"},
        {"DNS:127.0.0.1", VIEW("\x7f\0\0\1"), "127.0.0.1",
         "the upstream's certificate is for another host"},
        {"IP:::1", VIEW("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"), "::1", "good"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct certificate c = certificate_make(
            &(struct wish){.cn = "127.0.0.1", .san = cases[i].san, .issuer = &middle});
        struct certificate *above[] = {&middle};
        assert_string_equal(verdict_at(&c, above, 1, cases[i].name, cases[i].address),
                            cases[i].verdict);
        certificate_free(&c);
    }
}

static void test_a_name_that_openssl_reads_as_a_pattern_is_never_connected(void **state) {
    (void)state;
    assert_null(tls_connect(client, 0, ".allowed.test", NO_ADDRESS, NULL));
    assert_null(tls_connect(client, 0, "", NO_ADDRESS, NULL));
}

static void test_anchors_that_cannot_be_read_make_no_client(void **state) {
    (void)state;
    assert_null(tls_client_new(NO_ADDRESS, 4));
    assert_null(tls_client_new(VIEW("no certificate"), 4));
    assert_null(
        tls_client_new(VIEW("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 4));
}

static void test_anchors_with_one_name_and_several_keys_are_all_tried(void **state) {
    (void)state;
    struct certificate other = certificate_make(&(struct wish){.cn = "root", .ca = true});
    struct certificate c =
        certificate_make(&(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &root});
    struct tls_client *before = client;
    for (int order = 0; order < 2; order++) {
        struct buf pem;
        buf_init(&pem, 1 << 20);
        put_pem(&pem, order ? &root : &other);
        put_pem(&pem, order ? &other : &root);
        put_pem(&pem, &other);
        client = tls_client_new(buf_view(&pem), MAX_CHAIN);
        assert_non_null(client);
        for (int again = 0; again < 2; again++)
            assert_string_equal(verdict_at(&c, NULL, 0, NAME, NO_ADDRESS), "good");
        tls_client_free(client);
        buf_free(&pem);
    }
    client = before;
    certificate_free(&c);
    certificate_free(&other);
}

/* ---- revocation (TU-05) ---- */

static struct {
    uint8_t *p;
    int n;
} stapled;

static int give_staple(SSL *ssl, void *arg) {
    (void)arg;
    if (!stapled.p)
        return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, OPENSSL_memdup(stapled.p, (size_t)stapled.n), stapled.n);
    return SSL_TLSEXT_ERR_OK;
}

/* What `signer` says of c; since: seconds from now. */
static void make_staple(const struct certificate *c, const struct certificate *signer, int status,
                        long since) {
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), c->x, middle.x);
    ASN1_TIME *from = X509_gmtime_adj(NULL, since), *to = X509_gmtime_adj(NULL, since + DAY);
    OCSP_basic_add1_status(basic, id, status, 0, status == V_OCSP_CERTSTATUS_REVOKED ? from : NULL,
                           from, to);
    assert_int_equal(OCSP_basic_sign(basic, signer->x, signer->key, EVP_sha256(), NULL, 0), 1);
    OCSP_RESPONSE *response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
    stapled.p = NULL;
    stapled.n = i2d_OCSP_RESPONSE(response, &stapled.p);
    ASN1_TIME_free(from);
    ASN1_TIME_free(to);
    OCSP_CERTID_free(id);
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
}

static const char *verdict_stapled(const struct certificate *c, int version) {
    static char text[200];
    int fd[2];
    struct peer p;
    make_pair(fd);
    peer_new(&p, TLS_server_method(), -1);
    SSL_CTX_set_max_proto_version(p.ctx, version);
    SSL_CTX_use_certificate(p.ctx, c->x);
    SSL_CTX_use_PrivateKey(p.ctx, c->key);
    SSL_CTX_add1_chain_cert(p.ctx, middle.x);
    SSL_CTX_set_tlsext_status_cb(p.ctx, give_staple);
    peer_start(&p, fd[1]);
    SSL_set_accept_state(p.ssl);
    struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL);
    snprintf(text, sizeof text, "%s", shake_with_peer(t, &p) == TLS_DONE ? "good" : tls_error(t));
    tls_free(t);
    peer_free(&p);
    close_pair(fd);
    OPENSSL_free(stapled.p);
    stapled.p = NULL;
    return text;
}

static void test_tu_05_what_is_stapled_counts(void **state) {
    (void)state;
    const char *revoked = "the upstream's certificate is revoked";
    const char *missing =
        "the upstream's certificate must come with a good OCSP answer, and does not";
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct certificate plain =
        certificate_make(&(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &middle});
    struct certificate must = certificate_make(&(struct wish){
        .cn = "x", .san = "DNS:" NAME, .issuer = &middle, .feature = "status_request"});
    for (size_t i = 0; i < COUNT(versions); i++) {
        int v = versions[i];
        assert_string_equal(verdict_stapled(&plain, v), "good");
        assert_string_equal(verdict_stapled(&must, v), missing);
        make_staple(&plain, &middle, V_OCSP_CERTSTATUS_GOOD, -60);
        assert_string_equal(verdict_stapled(&plain, v), "good");
        make_staple(&must, &middle, V_OCSP_CERTSTATUS_GOOD, -60);
        assert_string_equal(verdict_stapled(&must, v), "good");
        make_staple(&plain, &middle, V_OCSP_CERTSTATUS_REVOKED, -60);
        assert_string_equal(verdict_stapled(&plain, v), revoked);
        make_staple(&plain, &middle, V_OCSP_CERTSTATUS_REVOKED, -10 * DAY);
        assert_string_equal(verdict_stapled(&plain, v), revoked);
        make_staple(&must, &middle, V_OCSP_CERTSTATUS_GOOD, -10 * DAY);
        assert_string_equal(verdict_stapled(&must, v), missing);
        make_staple(&must, &middle, V_OCSP_CERTSTATUS_UNKNOWN, -60);
        assert_string_equal(verdict_stapled(&must, v), missing);
        make_staple(&must, &unknown_root, V_OCSP_CERTSTATUS_GOOD, -60);
        assert_string_equal(verdict_stapled(&must, v), missing);
        make_staple(&must, &must, V_OCSP_CERTSTATUS_GOOD, -60);
        assert_string_equal(verdict_stapled(&must, v), missing);
        make_staple(&plain, &middle, V_OCSP_CERTSTATUS_GOOD, -60); /* of another certificate */
        assert_string_equal(verdict_stapled(&must, v), missing);
    }
    certificate_free(&plain);
    certificate_free(&must);
}

/* ---- upstream protocols (TU-06 to TU-08, TU-11) ---- */

static void server_identity(struct peer *p) {
    struct certificate c =
        certificate_make(&(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &middle});
    SSL_CTX_use_certificate(p->ctx, c.x);
    SSL_CTX_use_PrivateKey(p->ctx, c.key);
    SSL_CTX_add1_chain_cert(p->ctx, middle.x);
    certificate_free(&c);
}

static void test_tu_06_nothing_below_tls_1_2_is_spoken(void **state) {
    (void)state;
    static const struct {
        int version;
        const char *ciphers;
        enum tls_result result;
    } cases[] = {
        {TLS1_1_VERSION, "ALL:eNULL:@SECLEVEL=0", TLS_FAILED},
        {TLS1_VERSION, "ALL:eNULL:@SECLEVEL=0", TLS_FAILED},
        {TLS1_2_VERSION, "eNULL:@SECLEVEL=0", TLS_FAILED},
        {TLS1_2_VERSION, "ADH:AECDH:@SECLEVEL=0", TLS_FAILED},
        {TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", TLS_DONE},
        {TLS1_3_VERSION, "ALL", TLS_DONE},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int fd[2];
        struct peer p;
        make_pair(fd);
        peer_new(&p, TLS_server_method(), -1);
        SSL_CTX_set_max_proto_version(p.ctx, cases[i].version);
        assert_int_equal(SSL_CTX_set_cipher_list(p.ctx, cases[i].ciphers), 1);
        server_identity(&p);
        peer_start(&p, fd[1]);
        SSL_set_accept_state(p.ssl);
        struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL);
        if (shake_with_peer(t, &p) != cases[i].result)
            fail_msg("case %zu: %s", i, tls_error(t));
        if (cases[i].result == TLS_DONE)
            assert_string_equal(tls_version(t),
                                cases[i].version == TLS1_3_VERSION ? "TLSv1.3" : "TLSv1.2");
        tls_free(t);
        peer_free(&p);
        close_pair(fd);
    }
}

static int choose(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in,
                  unsigned in_n, void *arg) {
    (void)ssl;
    (void)in;
    (void)in_n;
    *out = arg;
    *n = (unsigned char)strlen(arg);
    return SSL_TLSEXT_ERR_OK;
}

static void test_tu_08_only_what_we_offered_may_be_chosen(void **state) {
    (void)state;
    static const struct {
        char protocol[16];
        enum tls_result result;
    } cases[] = {{"http/1.1", TLS_DONE},
                 {"h2", TLS_FAILED},
                 {"http/1.0", TLS_FAILED},
                 {"spdy/3", TLS_FAILED},
                 {"http/1.11", TLS_FAILED}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        int fd[2];
        struct peer p;
        make_pair(fd);
        peer_new(&p, TLS_server_method(), -1);
        SSL_CTX_set_alpn_select_cb(p.ctx, choose, (void *)(uintptr_t)cases[i].protocol);
        server_identity(&p);
        peer_start(&p, fd[1]);
        SSL_set_accept_state(p.ssl);
        struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL);
        assert_int_equal(shake_with_peer(t, &p), cases[i].result);
        tls_free(t);
        peer_free(&p);
        close_pair(fd);
    }
}

static void test_tu_07_and_11_a_peer_that_speaks_something_else_fails(void **state) {
    (void)state;
    static const char *const said[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "220 mail ESMTP\r\n",
                                       "\x15\x03\x01\x00\x02\x02\x28", "\x16\x03\x03\x00\x01\x02"};
    for (size_t i = 0; i < COUNT(said); i++) {
        int fd[2];
        size_t n;
        make_pair(fd);
        struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL);
        assert_int_equal(tls_handshake(t), TLS_WANT_READ);
        size_t size = i < 2 ? strlen(said[i]) : 7 - (i - 2);
        assert_int_equal(write(fd[1], said[i], size), size);
        enum tls_result r = tls_handshake(t);
        if (r == TLS_WANT_READ) {
            shutdown(fd[1], SHUT_WR);
            r = tls_handshake(t);
        }
        assert_true(r == TLS_FAILED || (r == TLS_CUT && i == 3));
        assert_null(strstr(tls_error(t), "mail"));
        assert_int_equal(tls_handshake(t), r); /* it stays so, and nothing is written */
        assert_int_equal(tls_write(t, VIEW("secret"), &n), r);
        assert_int_equal(n, 0);
        tls_free(t);
        close_pair(fd);
    }
}

static void test_a_peer_that_leaves_during_the_handshake_cuts_it(void **state) {
    (void)state;
    struct ends e;
    open_ends(&e, NAME, NULL);
    assert_int_equal(tls_handshake(e.c), TLS_WANT_READ);
    close(e.fd[1]);
    e.fd[1] = -1;
    assert_int_equal(tls_handshake(e.c), TLS_CUT);
    close_ends(&e);
}

/* ---- our server ---- */

static void test_our_ends_speak_tls_1_3_with_each_other(void **state) {
    (void)state;
    struct ends e;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    assert_string_equal(tls_version(e.c), "TLSv1.3");
    assert_false(tls_resumed(e.c));
    assert_false(tls_resumed(e.s));
    say_hello(&e);
    close_ends(&e);
}

static void test_ct_05_a_hello_read_before_may_be_cut_anywhere(void **state) {
    (void)state;
    size_t size = 1;
    for (size_t n = 0; n <= size; n++) {
        uint8_t first[4096];
        struct ends e;
        make_pair(e.fd);
        e.c = tls_connect(client, e.fd[0], NAME, NO_ADDRESS, NULL);
        assert_int_equal(tls_handshake(e.c), TLS_WANT_READ);
        size = (size_t)recv(e.fd[1], first, sizeof first, MSG_PEEK);
        if (n > 0)
            assert_int_equal(read(e.fd[1], first, n), n);
        e.s = tls_accept(server, e.fd[1], leaf, NAME, view_of(first, n));
        if (!shake(e.c, e.s))
            fail_msg("cut at %zu: %s, %s", n, tls_error(e.c), tls_error(e.s));
        say_hello(&e);
        close_ends(&e);
    }
    assert_true(size > 200);
}

static void test_tu_09_protocols_of_clients(void **state) {
    (void)state;
    static const struct {
        const char *offer;
        const char *chosen; /* NULL: refused */
    } cases[] = {
        {"", ""},
        {"\x08http/1.1", "http/1.1"},
        {"\x02h2\x08http/1.1", "http/1.1"},
        {"\x02h2", NULL},
        {"\x08http/1.0", NULL},
        {"\x03"
         "foo",
         NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int fd[2];
        struct peer p;
        make_pair(fd);
        peer_new(&p, TLS_client_method(), fd[0]);
        SSL_set_connect_state(p.ssl);
        if (cases[i].offer[0])
            SSL_set_alpn_protos(p.ssl, (const uint8_t *)cases[i].offer,
                                (unsigned)strlen(cases[i].offer));
        struct tls *t = tls_accept(server, fd[1], leaf, NAME, NO_ADDRESS);
        enum tls_result r = shake_with_peer(t, &p);
        assert_int_equal(r, cases[i].chosen ? TLS_DONE : TLS_FAILED);
        const unsigned char *name;
        unsigned n;
        SSL_get0_alpn_selected(p.ssl, &name, &n);
        assert_true(view_equal(view_of(name, n), view_str(cases[i].chosen)));
        if (!cases[i].chosen) {
            assert_int_equal(peer_shake(&p), -1);
            assert_int_equal(ERR_GET_REASON(ERR_peek_error()),
                             SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
        }
        tls_free(t);
        peer_free(&p);
        close_pair(fd);
    }
}

static void test_our_server_refuses_old_versions_and_renegotiation(void **state) {
    (void)state;
    static const int versions[] = {TLS1_1_VERSION, TLS1_2_VERSION};
    for (size_t i = 0; i < COUNT(versions); i++) {
        int fd[2];
        struct peer p;
        uint8_t byte;
        size_t n;
        make_pair(fd);
        peer_new(&p, TLS_client_method(), -1);
        SSL_CTX_set_max_proto_version(p.ctx, versions[i]);
        SSL_CTX_set_cipher_list(p.ctx, "ALL:@SECLEVEL=0");
        peer_start(&p, fd[0]);
        SSL_set_connect_state(p.ssl);
        struct tls *t = tls_accept(server, fd[1], leaf, NAME, NO_ADDRESS);
        enum tls_result r = shake_with_peer(t, &p);
        assert_int_equal(r, i == 0 ? TLS_FAILED : TLS_DONE);
        if (r == TLS_DONE) {
            SSL_renegotiate(p.ssl);
            assert_int_equal(peer_shake(&p), 0);
            assert_int_equal(tls_read(t, &byte, 1, &n), TLS_WANT_READ);
            assert_int_equal(peer_shake(&p), -1);
        }
        tls_free(t);
        peer_free(&p);
        close_pair(fd);
    }
}

static void test_a_leaf_is_der_and_for_our_key(void **state) {
    (void)state;
    struct buf der;
    buf_init(&der, 65536);
    put_der(&der, &root);
    struct view v = buf_view(&der);
    struct tls_leaf *foreign = tls_leaf_new(v, v);
    assert_non_null(foreign);
    assert_null(tls_accept(server, 0, foreign, NAME, NO_ADDRESS));
    tls_leaf_free(foreign);
    assert_null(tls_leaf_new(NO_ADDRESS, v));
    assert_null(tls_leaf_new(view_head(v, v.n - 1), NO_ADDRESS));
    assert_null(tls_leaf_new(v, view_head(v, v.n - 1)));
    assert_null(tls_leaf_new(VIEW("x"), NO_ADDRESS));
    for (int i = 0; i < 9; i++)
        put_der(&der, &root);
    v = buf_view(&der);
    assert_null(tls_leaf_new(v, NO_ADDRESS)); /* bytes behind the leaf */
    assert_null(tls_leaf_new(view_head(v, v.n / 10), v));
    buf_free(&der);
}

/* ---- sessions ---- */

static struct tls_session *session_from(const char *name, struct tls_session *offered,
                                        bool resumes) {
    struct ends e;
    open_ends(&e, name, offered);
    assert_true(shake(e.c, e.s));
    say_hello(&e);
    assert_int_equal(tls_resumed(e.c), resumes);
    assert_int_equal(tls_resumed(e.s), resumes);
    struct tls_session *s = tls_take_session(e.c);
    assert_non_null(s);
    assert_null(tls_take_session(e.c));
    close_ends(&e);
    return s;
}

static void test_sessions_resume_as_often_as_they_are_offered(void **state) {
    (void)state;
    struct tls_session *first = session_from(NAME, NULL, false);
    for (int i = 0; i < 3; i++) {
        struct tls_session *next = session_from(NAME, first, true);
        tls_session_free(next);
    }
    tls_session_free(first);
}

static uint64_t end_of(const struct tls_session *s) {
    uint64_t now = (uint64_t)time(NULL), at = now;
    while (tls_session_fresh(s, at) && at < now + 2 * 3600)
        at++;
    return at;
}

static void test_a_session_ends_an_hour_after_the_certificate_was_verified(void **state) {
    (void)state;
    uint64_t now = (uint64_t)time(NULL);
    struct tls_session *first = session_from(NAME, NULL, false);
    uint64_t end = end_of(first);
    assert_true(end >= now + 3600 && end <= now + 3602);
    sleep(1);
    struct tls_session *second = session_from(NAME, first, true);
    assert_int_equal(end_of(second), end);
    tls_session_free(first);
    tls_session_free(second);
}

static struct tls_leaf *our_leaf(long seconds) {
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
    struct buf der, chain;
    buf_init(&der, 65536);
    buf_init(&chain, 65536);
    put_der(&der, &c);
    put_der(&chain, &middle);
    struct tls_leaf *l = tls_leaf_new(buf_view(&der), buf_view(&chain));
    assert_non_null(l);
    buf_free(&der);
    buf_free(&chain);
    certificate_free(&c);
    EVP_PKEY_free(key);
    return l;
}

static void test_a_session_ends_with_the_certificate(void **state) {
    (void)state;
    struct tls_leaf *usual = leaf;
    uint64_t now = (uint64_t)time(NULL);
    leaf = our_leaf(600);
    struct tls_session *s = session_from(NAME, NULL, false);
    uint64_t end = end_of(s);
    assert_true(end >= now + 599 && end <= now + 602);
    tls_session_free(s);
    tls_leaf_free(leaf);
    leaf = usual;
}

/* Bytes of the hello that our client sends. */
static size_t hello_size(const char *name, struct tls_session *session) {
    uint8_t bytes[8192];
    int fd[2];
    make_pair(fd);
    struct tls *t = tls_connect(client, fd[0], name, NO_ADDRESS, session);
    assert_int_equal(tls_handshake(t), TLS_WANT_READ);
    ssize_t n = read(fd[1], bytes, sizeof bytes);
    tls_free(t);
    close_pair(fd);
    return n > 0 ? (size_t)n : 0;
}

static void test_a_session_of_one_name_is_not_offered_to_another(void **state) {
    (void)state;
    struct tls_session *first = session_from(NAME, NULL, false);
    assert_true(hello_size(NAME, first) > hello_size(NAME, NULL));
    assert_int_equal(hello_size("b.test", first), hello_size("b.test", NULL));
    struct tls_session *other = session_from("b.test", first, false);
    tls_session_free(first);
    tls_session_free(other);
}

static SSL_SESSION *last_session;

static int keep(SSL *ssl, SSL_SESSION *session) {
    (void)ssl;
    SSL_SESSION_free(last_session);
    last_session = SSL_SESSION_dup(session);
    return 0;
}

/* A client that offers any ticket anywhere; whether our server resumed. */
static bool resumes_at(const char *name, const char *sni, SSL_SESSION *session, int version) {
    int fd[2];
    struct peer p;
    uint8_t byte;
    size_t n;
    make_pair(fd);
    peer_new(&p, TLS_client_method(), -1);
    SSL_CTX_set_max_proto_version(p.ctx, version);
    SSL_CTX_set_session_cache_mode(p.ctx, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_sess_set_new_cb(p.ctx, keep);
    peer_start(&p, fd[0]);
    SSL_set_connect_state(p.ssl);
    SSL_set_tlsext_host_name(p.ssl, sni);
    if (session) {
        SSL_SESSION *copy = SSL_SESSION_dup(session);
        SSL_set_session(p.ssl, copy);
        SSL_SESSION_free(copy);
    }
    struct tls *t = tls_accept(server, fd[1], leaf, name, NO_ADDRESS);
    assert_int_equal(shake_with_peer(t, &p), TLS_DONE);
    assert_int_equal(tls_write(t, VIEW("x"), &n), TLS_DONE);
    assert_int_equal(SSL_read(p.ssl, &byte, 1), 1);
    bool resumed = tls_resumed(t);
    tls_free(t);
    peer_free(&p);
    close_pair(fd);
    return resumed;
}

static void test_a_ticket_of_one_name_does_not_resume_under_another(void **state) {
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < COUNT(versions); i++) {
        int v = versions[i];
        assert_false(resumes_at(NAME, NAME, NULL, v));
        SSL_SESSION *s = last_session;
        last_session = NULL;
        assert_non_null(s);
        assert_true(resumes_at(NAME, NAME, s, v));
        assert_false(resumes_at("b.test", NAME, s, v));
        assert_false(resumes_at("b.test", "b.test", s, v));
        assert_true(resumes_at(NAME, NAME, s, v));
        SSL_SESSION_free(s);
    }
    SSL_SESSION_free(last_session);
    last_session = NULL;
}

static void test_our_client_resumes_tls_1_2_as_well(void **state) {
    (void)state;
    struct tls_session *session = NULL;
    struct peer p;
    peer_new(&p, TLS_server_method(), -1);
    SSL_CTX_set_max_proto_version(p.ctx, TLS1_2_VERSION);
    server_identity(&p);
    for (int i = 0; i < 3; i++) {
        int fd[2];
        make_pair(fd);
        peer_start(&p, fd[1]);
        SSL_set_accept_state(p.ssl);
        struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, session);
        assert_int_equal(shake_with_peer(t, &p), TLS_DONE);
        assert_int_equal(tls_resumed(t), i > 0);
        if (i == 0)
            session = tls_take_session(t);
        assert_non_null(session);
        tls_free(t);
        SSL_free(p.ssl);
        p.ssl = NULL;
        close_pair(fd);
    }
    tls_session_free(session);
    peer_free(&p);
}

/* ---- the stream ---- */

static void test_half_of_a_connection_can_be_closed(void **state) {
    (void)state;
    struct ends e;
    uint8_t got[8];
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    tls_shutdown(e.c);
    assert_int_equal(tls_read(e.s, got, sizeof got, &n), TLS_EOF);
    assert_int_equal(tls_read(e.s, got, sizeof got, &n), TLS_EOF);
    assert_int_equal(tls_write(e.s, VIEW("late"), &n), TLS_DONE);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_DONE);
    assert_true(view_equal(view_of(got, n), VIEW("late")));
    tls_shutdown(e.s);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_EOF);
    close_ends(&e);
}

static void test_rs_07_a_cut_is_told_from_an_end(void **state) {
    (void)state;
    struct ends e;
    uint8_t got[8];
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    assert_int_equal(tls_write(e.s, VIEW("half"), &n), TLS_DONE);
    close(e.fd[1]);
    e.fd[1] = -1;
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_DONE);
    assert_int_equal(n, 4);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_CUT);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_CUT);
    assert_int_equal(tls_write(e.c, VIEW("x"), &n), TLS_CUT);
    close_ends(&e);
}

static void test_writing_to_a_peer_that_left_is_a_cut(void **state) {
    (void)state;
    struct ends e;
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    close(e.fd[1]);
    e.fd[1] = -1;
    assert_int_equal(tls_write(e.c, VIEW("x"), &n), TLS_CUT);
    close_ends(&e);
}

static void test_a_changed_byte_on_the_wire_fails(void **state) {
    (void)state;
    struct ends e;
    uint8_t wire[256], got[8];
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    say_hello(&e);
    assert_int_equal(tls_write(e.c, VIEW("hello"), &n), TLS_DONE);
    ssize_t size = read(e.fd[1], wire, sizeof wire);
    wire[size - 1] ^= 1;
    assert_int_equal(write(e.fd[0], wire, (size_t)size), size);
    assert_int_equal(tls_read(e.s, got, sizeof got, &n), TLS_FAILED);
    assert_int_equal(n, 0);
    close_ends(&e);
}

static void test_what_waits_inside_is_told(void **state) {
    (void)state;
    struct ends e;
    uint8_t got[4];
    size_t n;
    open_ends(&e, NAME, NULL);
    assert_true(shake(e.c, e.s));
    for (int i = 0; i < 3; i++)
        assert_int_equal(tls_write(e.s, VIEW("12345678"), &n), TLS_DONE);
    /* One read of the socket brings all three records. */
    for (int i = 0; i < 6; i++) {
        assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_DONE);
        assert_int_equal(n, 4);
        assert_int_equal(tls_pending(e.c), i < 5);
    }
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_WANT_READ);
    assert_false(tls_pending(e.c));
    /* Half a record inside is nothing to read. */
    uint8_t wire[256];
    assert_int_equal(tls_write(e.s, VIEW("12345678"), &n), TLS_DONE);
    ssize_t size = read(e.fd[0], wire, sizeof wire);
    assert_int_equal(write(e.fd[1], wire, 10), 10);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_WANT_READ);
    assert_false(tls_pending(e.c));
    assert_int_equal(write(e.fd[1], wire + 10, (size_t)size - 10), size - 10);
    assert_int_equal(tls_read(e.c, got, sizeof got, &n), TLS_DONE);
    assert_true(tls_pending(e.c));
    close_ends(&e);
}

/* One direction of a large transfer, in pieces of odd sizes. */
struct flow {
    struct tls *from, *to;
    size_t sent, got;
    size_t offered; /* how far a write went that was not taken whole */
    unsigned odd;
};

enum { FLOW_SIZE = 5 << 20 };

static uint8_t byte_at(size_t i) {
    return (uint8_t)(i * 7 + (i >> 11));
}

/* After a refusal the same bytes come again, and perhaps more. */
static void flow_send(struct flow *f, uint8_t *scratch) {
    size_t n, end = f->sent + 1 + f->odd % 60000;
    if (end < f->offered)
        end = f->offered;
    if (end > FLOW_SIZE)
        end = FLOW_SIZE;
    if (end == f->sent)
        return;
    for (size_t i = f->sent; i < end; i++)
        scratch[i - f->sent] = byte_at(i);
    enum tls_result r = tls_write(f->from, view_of(scratch, end - f->sent), &n);
    if (r == TLS_DONE ? n == 0 : r != TLS_WANT_WRITE || n > 0)
        fail_msg("write: %d, %zu, %s", r, n, tls_error(f->from));
    f->offered = end;
    f->sent += n;
}

static void flow_take(struct flow *f, uint8_t *scratch) {
    size_t n, want = 1 + f->odd % 40000;
    enum tls_result r = tls_read(f->to, scratch, want, &n);
    if (r == TLS_WANT_READ)
        return;
    assert_int_equal(r, TLS_DONE);
    for (size_t i = 0; i < n; i++)
        if (scratch[i] != byte_at(f->got + i))
            fail_msg("byte %zu", f->got + i);
    f->got += n;
}

static void test_large_transfers_go_both_ways_at_once(void **state) {
    (void)state;
    static uint8_t scratch[65536];
    struct ends e;
    open_ends(&e, NAME, NULL);
    int small = 8192;
    for (int i = 0; i < 2; i++)
        setsockopt(e.fd[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    assert_true(shake(e.c, e.s));
    struct flow up = {.from = e.c, .to = e.s}, down = {.from = e.s, .to = e.c};
    for (int i = 0; i < TURNS && (up.got < FLOW_SIZE || down.got < FLOW_SIZE); i++) {
        up.odd = (unsigned)i * 40503;
        down.odd = (unsigned)i * 60493;
        flow_send(&up, scratch);
        flow_send(&down, scratch);
        flow_take(&up, scratch);
        flow_take(&down, scratch);
    }
    assert_int_equal(up.got, FLOW_SIZE);
    assert_int_equal(down.got, FLOW_SIZE);
    close_ends(&e);
}

/* ---- the rights of a role ---- */

/* Runs in a process of its own, from the beginning: 0 when a handshake goes without these calls. */
static int be_narrow(void) {
    static const int forbidden[] = {SCMP_SYS(open),     SCMP_SYS(openat),  SCMP_SYS(newfstatat),
                                    SCMP_SYS(sendto),   SCMP_SYS(sendmsg), SCMP_SYS(recvmsg),
                                    SCMP_SYS(recvfrom), SCMP_SYS(connect)};
    struct ends e;
    if (tls_start() != 0)
        return 1;
    make_pair(e.fd);
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    for (size_t i = 0; i < COUNT(forbidden); i++)
        if (seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, forbidden[i], 0) != 0)
            return 2;
    if (seccomp_load(filter) != 0)
        return 3;
    if (setup(NULL) != 0)
        return 4;
    e.c = tls_connect(client, e.fd[0], NAME, NO_ADDRESS, NULL);
    e.s = tls_accept(server, e.fd[1], leaf, NAME, NO_ADDRESS);
    return shake(e.c, e.s) ? 0 : 5;
}

static void test_no_file_is_opened_once_tls_was_started(void **state) {
    (void)state;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "tls", "narrow", (char *)NULL);
        _exit(6);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- set-up ---- */

static int setup(void **state) {
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

static int teardown(void **state) {
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

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "narrow") == 0)
        _exit(be_narrow());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tu_01_to_03_and_06_every_flaw_of_a_leaf_is_named),
        cmocka_unit_test(test_tu_04_a_nul_in_a_name_ends_nothing),
        cmocka_unit_test(test_tu_01_an_expired_certificate_above_the_leaf_is_refused),
        cmocka_unit_test(test_a_leaf_cannot_sign_another),
        cmocka_unit_test(test_tu_10_more_certificates_than_the_limit_are_refused),
        cmocka_unit_test(test_an_address_needs_a_certificate_for_the_address),
        cmocka_unit_test(test_a_name_that_openssl_reads_as_a_pattern_is_never_connected),
        cmocka_unit_test(test_anchors_that_cannot_be_read_make_no_client),
        cmocka_unit_test(test_anchors_with_one_name_and_several_keys_are_all_tried),
        cmocka_unit_test(test_tu_05_what_is_stapled_counts),
        cmocka_unit_test(test_tu_06_nothing_below_tls_1_2_is_spoken),
        cmocka_unit_test(test_tu_08_only_what_we_offered_may_be_chosen),
        cmocka_unit_test(test_tu_07_and_11_a_peer_that_speaks_something_else_fails),
        cmocka_unit_test(test_a_peer_that_leaves_during_the_handshake_cuts_it),
        cmocka_unit_test(test_our_ends_speak_tls_1_3_with_each_other),
        cmocka_unit_test(test_ct_05_a_hello_read_before_may_be_cut_anywhere),
        cmocka_unit_test(test_tu_09_protocols_of_clients),
        cmocka_unit_test(test_our_server_refuses_old_versions_and_renegotiation),
        cmocka_unit_test(test_a_leaf_is_der_and_for_our_key),
        cmocka_unit_test(test_sessions_resume_as_often_as_they_are_offered),
        cmocka_unit_test(test_a_session_ends_an_hour_after_the_certificate_was_verified),
        cmocka_unit_test(test_a_session_ends_with_the_certificate),
        cmocka_unit_test(test_a_session_of_one_name_is_not_offered_to_another),
        cmocka_unit_test(test_a_ticket_of_one_name_does_not_resume_under_another),
        cmocka_unit_test(test_our_client_resumes_tls_1_2_as_well),
        cmocka_unit_test(test_half_of_a_connection_can_be_closed),
        cmocka_unit_test(test_rs_07_a_cut_is_told_from_an_end),
        cmocka_unit_test(test_writing_to_a_peer_that_left_is_a_cut),
        cmocka_unit_test(test_a_changed_byte_on_the_wire_fails),
        cmocka_unit_test(test_what_waits_inside_is_told),
        cmocka_unit_test(test_large_transfers_go_both_ways_at_once),
        cmocka_unit_test(test_no_file_is_opened_once_tls_was_started),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

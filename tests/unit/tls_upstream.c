/* TLS towards upstreams: which certificates, revocations and protocols our client takes. */
#include "tests/unit/tls_staple.h"

#include "base/client_key.h"
#include "base/openssl_memory.h"
#include "base/secret.h"

/* ---- upstream certificates (TU-01 to TU-04, TU-06) ---- */

static uint8_t pinned[TLS_PIN_SIZE];
static const uint8_t *pin; /* what verdict_at asks for */

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
    struct tls *t = tls_connect(client, fd[0], name, address, pin, NULL);
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

/* ---- pinned keys (RFC 7469 2.6) ---- */

static void pin_of(const struct certificate *c, uint8_t out[TLS_PIN_SIZE]) {
    uint8_t *der = NULL;
    int n = i2d_PUBKEY(c->key, &der);
    assert_true(n > 0);
    assert_int_equal(EVP_Digest(der, (size_t)n, out, NULL, EVP_sha256(), NULL), 1);
    OPENSSL_free(der);
}

static void test_a_pin_is_met_by_any_key_of_the_verified_chain_and_no_other(void **state) {
    (void)state;
    static const char *const none =
        "no key in the upstream's chain is the one that `upstream pin` names";
    struct certificate c =
        certificate_make(&(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &middle});
    struct certificate twin =
        certificate_make(&(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &middle});
    struct certificate *above[] = {&middle, &twin};
    const struct {
        const struct certificate *pinned;
        const char *verdict;
    } cases[] = {{&c, "good"},
                 {&middle, "good"},
                 {&root, "good"},
                 {&unknown_root, none},
                 {&twin, none} /* sent, but not of the chain */};
    for (size_t i = 0; i < COUNT(cases); i++) {
        pin_of(cases[i].pinned, pinned);
        pin = pinned;
        assert_string_equal(verdict_at(&c, above, 2, NAME, NO_ADDRESS), cases[i].verdict);
    }
    pin = NULL;
    certificate_free(&twin);
    certificate_free(&c);
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
    assert_null(tls_connect(client, 0, ".allowed.test", NO_ADDRESS, NULL, NULL));
    assert_null(tls_connect(client, 0, "", NO_ADDRESS, NULL, NULL));
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
    struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL, NULL);
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
        struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL, NULL);
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
        struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL, NULL);
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
        struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL, NULL);
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

static int accept_any(int good, X509_STORE_CTX *ctx) {
    (void)good;
    (void)ctx;
    return 1;
}

/* With an arena that others have filled. */
static int show_without_room(struct tls *t, struct view chain, struct view digits) {
    static void *taken[1 << 17];
    size_t n = 0;
    for (size_t size = 1 << 20; size >= 16; size /= 2)
        while (n < COUNT(taken) && (taken[n] = secret_alloc(size)))
            n++;
    int result = tls_show_certificate(t, chain, digits);
    while (n > 0)
        secret_free(taken[--n]);
    return result;
}

/* What the client makes of an upstream that demands a certificate and takes these signatures. */
static enum tls_result show_to(const char *signatures, int version, const char **error) {
    struct certificate own = certificate_make(&(struct wish){.cn = "us", .eku = "clientAuth"});
    struct buf chain;
    struct peer p;
    int fd[2];
    BIGNUM *number = NULL;
    uint8_t bytes[32];
    char digits[2 * sizeof bytes + 1];
    buf_init(&chain, 4096);
    put_der(&chain, &own);
    EVP_PKEY_get_bn_param(own.key, "priv", &number);
    BN_bn2binpad(number, bytes, sizeof bytes);
    hex_encode(view_of(bytes, sizeof bytes), digits);
    make_pair(fd);
    peer_new(&p, TLS_server_method(), -1);
    server_identity(&p);
    SSL_CTX_set_max_proto_version(p.ctx, version);
    SSL_CTX_set_verify(p.ctx, SSL_VERIFY_PEER, accept_any);
    SSL_CTX_set1_client_sigalgs_list(p.ctx, signatures);
    peer_start(&p, fd[1]);
    SSL_set_accept_state(p.ssl);
    struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL, NULL);
    tls_offer_certificate(t);
    enum tls_result r = shake_with_peer(t, &p);
    assert_int_equal(r, TLS_WANT_CERTIFICATE);
    assert_true(tls_was_asked(t));
    assert_int_equal(tls_handshake(t), TLS_WANT_CERTIFICATE);
    assert_int_equal(tls_show_certificate(t, buf_view(&chain), view_str(digits + 2)), ERR_BAD);
    assert_int_equal(show_without_room(t, buf_view(&chain), view_str(digits)), ERR_MEMORY);
    assert_int_equal(tls_show_certificate(t, buf_view(&chain), view_str(digits)), 0);
    r = shake_with_peer(t, &p);
    *error = r == TLS_FAILED ? tls_error(t) : "";
    tls_free(t);
    peer_free(&p);
    close_pair(fd);
    BN_free(number);
    buf_free(&chain);
    certificate_free(&own);
    return r;
}

static void
test_tu_06_an_upstream_that_takes_no_signature_of_our_key_is_not_spoken_to(void **state) {
    (void)state;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        const char *error;
        assert_int_equal(show_to("ECDSA+SHA256", version, &error), TLS_DONE);
        assert_int_equal(show_to("RSA-PSS+SHA256", version, &error), TLS_FAILED);
        assert_non_null(strstr(error, "takes no signature of a key like"));
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

/* ---- what an upstream said (P2) ---- */

/* Whether OpenSSL is given memory for its next records in which there is left of `said`. */
static bool is_left(const char *said) {
    enum { BLOCKS = 4, SIZE = 16 * 1024 };
    uint8_t *blocks[BLOCKS];
    bool left = false;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = OPENSSL_malloc(SIZE);
        assert_non_null(blocks[i]);
        left = left || memmem(blocks[i], SIZE, said, strlen(said));
    }
    for (size_t i = 0; i < BLOCKS; i++)
        OPENSSL_free(blocks[i]);
    return left;
}

/* Has the server send these bytes, and reads the first `most` of them, `piece` at a time. */
static void hear(struct ends *e, struct view said, size_t most, size_t piece) {
    static uint8_t got[65536];
    size_t n, done = 0;
    while (said.n > 0) {
        assert_int_equal(tls_write(e->s, said, &n), TLS_DONE);
        said = view_skip(said, n);
        enum tls_result r = TLS_DONE;
        while (r == TLS_DONE && done < most) {
            r = tls_read(e->c, got, most - done < piece ? most - done : piece, &n);
            done += n;
        }
        assert_true(r == TLS_DONE || r == TLS_WANT_READ);
    }
    assert_int_equal(done, most);
}

static void test_what_an_upstream_said_stays_in_no_memory_that_openssl_gave_back(void **state) {
    (void)state;
    static uint8_t said[40000];
    memset(said, 'S', sizeof said);
    const struct {
        size_t n[3], most[3],
            piece; /* of three times: bytes, those that are read, how many at once */
    } cases[] = {
        {{60}, {60}, 1000},
        {{60}, {60}, 7},
        {{60, 16384, 60}, {60, 16384, 60}, 20000},
        {{16384, 60, 500}, {16384, 60, 500}, 5000},
        {{40000, 60, 1}, {40000, 60, 1}, 16384},
        {{40000, 60}, {39000, 1060}, 3000},
        {{60}, {0}, 1000},
        {{16384}, {100}, 1000},
        {{40000}, {20000}, 1000},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ends e;
        open_ends(&e, NAME, NULL);
        assert_true(shake(e.c, e.s));
        bool unread = false;
        for (size_t k = 0; k < 3; k++) {
            hear(&e, view_of(said, cases[i].n[k]), cases[i].most[k], cases[i].piece);
            unread = unread || cases[i].most[k] < cases[i].n[k];
            if (!unread && is_left("SSSSSSSS"))
                fail_msg("case %zu: left after %zu", i, k);
        }
        /* Another connection is used in between. */
        size_t n;
        assert_int_equal(tls_write(e.s, VIEW("end"), &n), TLS_DONE);
        close_ends(&e);
        if (is_left("SSSSSSSS"))
            fail_msg("case %zu: left at the end", i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tu_01_to_03_and_06_every_flaw_of_a_leaf_is_named),
        cmocka_unit_test(test_tu_04_a_nul_in_a_name_ends_nothing),
        cmocka_unit_test(test_a_pin_is_met_by_any_key_of_the_verified_chain_and_no_other),
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
        cmocka_unit_test(
            test_tu_06_an_upstream_that_takes_no_signature_of_our_key_is_not_spoken_to),
        cmocka_unit_test(test_a_peer_that_leaves_during_the_handshake_cuts_it),
        cmocka_unit_test(test_what_an_upstream_said_stays_in_no_memory_that_openssl_gave_back),
    };
    if (openssl_memory_start() != 0 || secret_arena_open(1 << 20) != 0)
        return 1;
    return cmocka_run_group_tests(tests, ends_setup, ends_teardown);
}

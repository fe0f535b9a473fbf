/*
 * TLS when memory runs out: each allocation of a handshake fails, alone or with all that follow. Whatever the peer is, that is
 * told as what it is, and nobody is believed who would not be otherwise. Linked with --wrap for malloc and realloc.
 */
#include "tests/unit/tls_staple.h"

#include "base/openssl_memory.h"

/* ---- allocations that fail ---- */

enum { NEVER = -1, SWEEP_MAX = 20000 };

static long until_failure = NEVER; /* allocations that still succeed */
static bool only_one;

void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_realloc(void *p, size_t n);

static bool fails(void) {
    if (until_failure == NEVER)
        return false;
    if (until_failure > 0) {
        until_failure--;
        return false;
    }
    if (only_one)
        until_failure = NEVER;
    return true;
}

void *__wrap_malloc(size_t n) {
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_realloc(void *p, size_t n) {
    return fails() ? NULL : __real_realloc(p, n);
}

/* ---- a sweep over them ---- */

/* One step of t's handshake with *left allocations to succeed. */
static enum tls_result step(struct tls *t, long *left) {
    until_failure = *left;
    enum tls_result r = tls_handshake(t);
    *left = until_failure;
    until_failure = NEVER;
    return r;
}

/* The end of the handshake of t, whose allocation after `left` fails, with a peer that has all it wants. */
static enum tls_result shake_short(struct tls *t, struct peer *p, long left, bool *failed) {
    enum tls_result r = TLS_WANT_READ;
    long before = left;
    *failed = false;
    for (int i = 0, other = 0; i < TURNS && is_wait(r) && other >= 0; i++) {
        unsigned long refused = openssl_memory_refused();
        r = step(t, &left);
        *failed = *failed || openssl_memory_refused() != refused;
        if (other == 0 && is_wait(r))
            other = peer_shake(p);
        assert_true(left <= before);
    }
    return r;
}

struct sweep {
    int no_memory, other;    /* ends of the handshakes in which an allocation failed */
    enum tls_result at_last; /* of that in which none did */
};

/* The peer, as a server: its context is ready. */
static struct sweep sweep_client(const struct peer *ready, long stride) {
    struct sweep s = {0, 0, TLS_WANT_READ};
    bool failed = true;
    for (long n = 0; failed && n < SWEEP_MAX; n += stride) {
        struct peer p = *ready;
        int fd[2];
        make_pair(fd);
        peer_start(&p, fd[1]);
        SSL_set_accept_state(p.ssl);
        struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL, NULL);
        assert_non_null(t);
        enum tls_result r = shake_short(t, &p, n, &failed);
        if (!failed)
            s.at_last = r;
        s.no_memory += failed && r == TLS_NO_MEMORY;
        s.other += failed && r != TLS_NO_MEMORY;
        if (failed)
            assert_int_equal(tls_handshake(t), r);
        tls_free(t);
        SSL_free(p.ssl);
        close_pair(fd);
    }
    assert_false(failed);
    return s;
}

static void make_server(struct peer *p, const struct certificate *c, int version) {
    peer_new(p, TLS_server_method(), -1);
    SSL_CTX_set_max_proto_version(p->ctx, version);
    SSL_CTX_use_certificate(p->ctx, c->x);
    SSL_CTX_use_PrivateKey(p->ctx, c->key);
    SSL_CTX_add1_chain_cert(p->ctx, middle.x);
    SSL_CTX_set_tlsext_status_cb(p->ctx, give_staple);
}

static struct certificate good_certificate(void) {
    return certificate_make(&(struct wish){.cn = "x", .san = "DNS:" NAME, .issuer = &middle});
}

static void make_good_server(struct peer *p) {
    struct certificate c = good_certificate();
    make_server(p, &c, TLS1_3_VERSION);
    certificate_free(&c);
}

/* Of each `stride` allocations one fails. */
static struct sweep sweep_over(const struct certificate *c, int version, bool one, long stride) {
    struct peer p;
    make_server(&p, c, version);
    only_one = one;
    struct sweep s = sweep_client(&p, stride);
    peer_free(&p);
    return s;
}

/* One handshake with the peer, of which the allocation after `left` fails. */
static enum tls_result meet_short(const struct peer *ready, long left, bool *failed) {
    struct peer p = *ready;
    int fd[2];
    make_pair(fd);
    peer_start(&p, fd[1]);
    SSL_set_accept_state(p.ssl);
    struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL, NULL);
    assert_non_null(t);
    enum tls_result r = shake_short(t, &p, left, failed);
    tls_free(t);
    SSL_free(p.ssl);
    close_pair(fd);
    return r;
}

static void test_rx_a_connection_is_made_whole_or_not_at_all(void **state) {
    (void)state;
    unsigned long refused;
    long n = 0;
    only_one = true;
    do {
        int fd[2];
        make_pair(fd);
        refused = openssl_memory_refused();
        until_failure = n++;
        struct tls *t = tls_connect(client, fd[0], NAME, NO_ADDRESS, NULL, NULL);
        until_failure = NEVER;
        assert_int_equal(t == NULL, openssl_memory_refused() != refused);
        tls_free(t);
        close_pair(fd);
    } while (openssl_memory_refused() != refused);
    assert_true(n > 10);
}

/* ---- what must come of it ---- */

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static void test_rx_a_good_upstream_is_never_blamed_for_our_want_of_memory(void **state) {
    (void)state;
    struct certificate c = good_certificate();
    for (size_t i = 0; i < 2 * COUNT(versions); i++) {
        struct sweep s = sweep_over(&c, versions[i / 2], i % 2 == 0, 7);
        assert_int_equal(s.at_last, TLS_DONE);
        assert_int_equal(s.other, 0);
        assert_true(s.no_memory > 100);
    }
    certificate_free(&c);
}

static void test_rx_no_upstream_is_believed_for_our_want_of_memory(void **state) {
    (void)state;
    const struct wish wrong[] = {
        {.cn = "x", .san = "DNS:other.test", .issuer = &middle},
        {.cn = "x", .san = "DNS:" NAME, .issuer = &unknown_root},
        {.cn = "x", .san = "DNS:" NAME, .issuer = &middle, .from = -2 * DAY, .to = -DAY},
    };
    for (size_t i = 0; i < COUNT(wrong) * COUNT(versions); i++) {
        struct certificate c = certificate_make(&wrong[i / COUNT(versions)]);
        /* Three in a row of some 3,200 let a wrong name pass in TLS 1.2 before: there none is left out. */
        struct sweep s = sweep_over(&c, versions[i % COUNT(versions)], true, i == 0 ? 1 : 7);
        assert_int_equal(s.at_last, TLS_FAILED);
        assert_int_equal(s.other, 0);
        assert_true(s.no_memory > 20);
        certificate_free(&c);
    }
}

static void test_tu_05_a_revocation_is_not_passed_over_for_want_of_memory(void **state) {
    (void)state;
    struct certificate c = good_certificate();
    make_staple(&c, &middle, V_OCSP_CERTSTATUS_REVOKED, -60);
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct sweep s = sweep_over(&c, versions[i], true, 5);
        assert_int_equal(s.at_last, TLS_FAILED);
        assert_int_equal(s.other, 0);
    }
    OPENSSL_free(stapled.p);
    stapled.p = NULL;
    certificate_free(&c);
}

/* What OpenSSL could not read of a certificate that is kept it would not read again. */
static void test_rx_an_anchor_is_good_again_when_there_is_memory(void **state) {
    (void)state;
    struct tls_client *others = client;
    struct peer p;
    bool failed = true, none;
    make_good_server(&p);
    only_one = true;
    for (long n = 0; failed && n < SWEEP_MAX; n += 3) {
        client = tls_client_new(buf_view(&anchors), MAX_CHAIN);
        assert_non_null(client);
        meet_short(&p, n, &failed);
        assert_int_equal(meet_short(&p, NEVER, &none), TLS_DONE);
        tls_client_free(client);
    }
    assert_false(failed);
    client = others;
    peer_free(&p);
}

static void test_rx_a_client_has_all_that_it_offers_and_trusts_or_is_none(void **state) {
    (void)state;
    struct tls_client *others = client;
    struct peer p;
    bool none;
    unsigned long refused;
    long n = 0;
    make_good_server(&p);
    only_one = true;
    do {
        refused = openssl_memory_refused();
        until_failure = n++;
        client = tls_client_new(buf_view(&anchors), MAX_CHAIN);
        until_failure = NEVER;
        assert_int_equal(client == NULL, openssl_memory_refused() != refused);
        assert_true(!client || meet_short(&p, NEVER, &none) == TLS_DONE);
        tls_client_free(client);
    } while (openssl_memory_refused() != refused);
    assert_true(n > 100);
    client = others;
    peer_free(&p);
}

/* What a connection has fetched and has no memory to keep when another one reads, whose allocation after `left` fails. */
static enum tls_result read_after_another(long left) {
    struct ends a, b;
    uint8_t got[16];
    size_t n;
    open_ends(&a, NAME, NULL);
    open_ends(&b, NAME, NULL);
    assert_true(shake(a.c, a.s) && shake(b.c, b.s));
    assert_int_equal(tls_write(a.s, VIEW("one"), &n), TLS_DONE);
    assert_int_equal(tls_write(a.s, VIEW("two"), &n), TLS_DONE);
    assert_int_equal(tls_write(b.s, VIEW("red"), &n), TLS_DONE);
    assert_int_equal(tls_read(a.c, got, sizeof got, &n), TLS_DONE);
    until_failure = left;
    (void)tls_read(b.c, got, sizeof got, &n);
    until_failure = NEVER;
    enum tls_result r = tls_read(a.c, got, sizeof got, &n);
    assert_true(r != TLS_DONE || view_equal(view_of(got, n), VIEW("two")));
    close_ends(&a);
    close_ends(&b);
    return r;
}

static void test_rx_what_was_fetched_and_could_not_be_kept_is_our_want_of_memory(void **state) {
    (void)state;
    int lost = 0;
    only_one = true;
    for (long n = 0; n < 8; n++) {
        enum tls_result r = read_after_another(n);
        assert_true(r == TLS_DONE || r == TLS_NO_MEMORY);
        lost += r == TLS_NO_MEMORY;
    }
    assert_int_equal(lost, 1);
}

static bool serves(const struct tls_leaf *l) {
    struct ends e;
    make_pair(e.fd);
    e.c = tls_connect(client, e.fd[0], NAME, NO_ADDRESS, NULL, NULL);
    e.s = tls_accept(server, e.fd[1], l, NAME, NO_ADDRESS);
    bool served = e.s && shake(e.c, e.s);
    close_ends(&e);
    return served;
}

static void test_rx_a_leaf_is_read_whole_or_not_at_all(void **state) {
    (void)state;
    struct buf der, chain;
    unsigned long refused;
    long n = 0;
    buf_init(&der, 65536);
    buf_init(&chain, 65536);
    put_leaf(&der, &chain, DAY);
    only_one = true;
    do {
        refused = openssl_memory_refused();
        until_failure = n++;
        struct tls_leaf *l = tls_leaf_new(buf_view(&der), buf_view(&chain));
        until_failure = NEVER;
        assert_true(!l || serves(l));
        tls_leaf_free(l);
    } while (openssl_memory_refused() != refused || n == 1);
    assert_true(n > 100);
    buf_free(&der);
    buf_free(&chain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rx_a_connection_is_made_whole_or_not_at_all),
        cmocka_unit_test(test_rx_a_good_upstream_is_never_blamed_for_our_want_of_memory),
        cmocka_unit_test(test_rx_no_upstream_is_believed_for_our_want_of_memory),
        cmocka_unit_test(test_tu_05_a_revocation_is_not_passed_over_for_want_of_memory),
        cmocka_unit_test(test_rx_what_was_fetched_and_could_not_be_kept_is_our_want_of_memory),
        cmocka_unit_test(test_rx_an_anchor_is_good_again_when_there_is_memory),
        cmocka_unit_test(test_rx_a_client_has_all_that_it_offers_and_trusts_or_is_none),
        cmocka_unit_test(test_rx_a_leaf_is_read_whole_or_not_at_all),
    };
    if (openssl_memory_start() != 0)
        return 1;
    return cmocka_run_group_tests(tests, ends_setup, ends_teardown);
}

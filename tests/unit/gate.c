/* Tunnels: from CONNECT to requests inside TLS, with a real TLS client and leaves made here. */
#include "tests/unit/proxy_world.h"

#include "policy/reason.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define INSIDE(path) "GET " path " HTTP/1.1\r\nHost: api.test\r\n\r\n"

/* ---- egress' words for tunnels ---- */

static void egress_refuses(struct world *w, uint32_t id, uint16_t status, const char *body) {
    static struct answer_head h;
    struct buf head;
    h = (struct answer_head){.status = status, .minor = 1, .framing = FRAMING_LENGTH};
    h.length = strlen(body);
    assert_int_equal(fields_add(&h.fields, VIEW("x-from"), VIEW("upstream")), 0);
    buf_init(&head, 4096);
    answer_write(&h, &head);
    struct buf *b = channel_begin(w->egress, LANE_REFUSED, id, 1);
    buf_put_block(b, buf_view(&head));
    buf_put_block(b, view_str(body));
    channel_end(w->egress);
    buf_free(&head);
}

/* ---- leaves ---- */

static EVP_PKEY *ca_key;

static void put_extension(X509 *x, int nid, const char *value) {
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    assert_non_null(e);
    assert_int_equal(X509_add_ext(x, e, -1), 1);
    X509_EXTENSION_free(e);
}

static size_t make_leaf(struct view public_key, const char *name, uint8_t **der) {
    const unsigned char *at = public_key.p;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)public_key.n);
    X509 *x = X509_new();
    char san[300];
    assert_true(key && x);
    snprintf(san, sizeof san, "DNS:%s", name);
    assert_int_equal(X509_set_version(x, 2), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(x), 7), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    assert_int_equal(X509_set_pubkey(x, key), 1);
    put_extension(x, NID_subject_alt_name, san);
    assert_true(X509_sign(x, ca_key, EVP_sha256()) > 0);
    *der = NULL;
    int n = i2d_X509(x, der);
    assert_true(n > 0);
    X509_free(x);
    EVP_PKEY_free(key);
    return (size_t)n;
}

static void egress_gives_leaf(struct world *w, uint32_t id, const char *name, struct view der,
                              uint64_t not_after) {
    struct buf *b = channel_begin(w->egress, LANE_LEAF, id, 1);
    buf_put_block(b, view_str(name));
    buf_put_block(b, der);
    buf_put_block(b, (struct view){NULL, 0});
    buf_put_u64(b, not_after);
    channel_end(w->egress);
}

static uint64_t tomorrow(void) {
    return clock_wall() / SECOND + 86400;
}

/* ---- a TLS client ---- */

struct tls_end {
    struct world *world;
    SSL *ssl;
    int fd;
};

static SSL_CTX *client_ctx;

static struct tls_end tls_end_new(struct world *w, int fd, const char *sni) {
    struct tls_end t = {w, SSL_new(client_ctx), fd};
    assert_non_null(t.ssl);
    SSL_set_fd(t.ssl, fd);
    if (sni)
        assert_int_equal(SSL_set_tlsext_host_name(t.ssl, sni), 1);
    return t;
}

static void tls_end_free(struct tls_end *t) {
    SSL_free(t->ssl);
    close(t->fd);
}

/* Steps the handshake until it says something other than "wait", or egress has been told. */
static int tls_connects(struct tls_end *t) {
    for (int i = 0; i < TURNS; i++) {
        int n = SSL_connect(t->ssl);
        int why = SSL_get_error(t->ssl, n);
        if (n == 1 || (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE))
            return n == 1 ? SSL_ERROR_NONE : why;
        if (t->world->first)
            return why;
        world_turn(t->world);
    }
    return SSL_ERROR_WANT_READ;
}

static void tls_says(struct tls_end *t, const void *p, size_t n) {
    const uint8_t *at = p;
    for (int i = 0; n > 0 && i < TURNS; i++) {
        size_t put = 0;
        if (SSL_write_ex(t->ssl, at, n < 16384 ? n : 16384, &put) == 1) {
            at += put;
            n -= put;
        } else {
            assert_int_equal(SSL_get_error(t->ssl, 0), SSL_ERROR_WANT_WRITE);
            world_turn(t->world);
        }
    }
    assert_int_equal(n, 0);
}

static void tls_reads(struct tls_end *t, const char *text) {
    size_t want = strlen(text), have = 0;
    char *got = calloc(1, want + 1);
    assert_non_null(got);
    for (int i = 0; have < want && i < TURNS; i++) {
        size_t n = 0;
        if (SSL_read_ex(t->ssl, got + have, want - have, &n) == 1) {
            have += n;
        } else {
            assert_int_equal(SSL_get_error(t->ssl, 0), SSL_ERROR_WANT_READ);
            world_turn(t->world);
        }
    }
    assert_string_equal(got, text);
    free(got);
}

/* How the stream ends, with nothing before it: SSL_ERROR_ZERO_RETURN after close_notify. */
static int tls_reads_end(struct tls_end *t) {
    for (int i = 0; i < TURNS; i++) {
        char byte;
        size_t n = 0;
        assert_int_equal(SSL_read_ex(t->ssl, &byte, 1, &n), 0);
        int why = SSL_get_error(t->ssl, 0);
        if (why != SSL_ERROR_WANT_READ)
            return why;
        world_turn(t->world);
    }
    fail_msg("the connection stays open");
    return -1;
}

/* A whole intercepted connection for api.test. */
static struct tls_end dial_tls(struct world *w, uint32_t *tunnel) {
    uint8_t *der;
    size_t n = make_leaf(tls_server_public_key(w->server), "api.test", &der);
    int fd = dial_tunnel(w, tunnel);
    struct tls_end t = tls_end_new(w, fd, "api.test");
    tls_connects(&t);
    egress_hears(w, LANE_HELLO);
    egress_gives_leaf(w, *tunnel, "api.test", view_of(der, n), tomorrow());
    assert_int_equal(tls_connects(&t), SSL_ERROR_NONE);
    OPENSSL_free(der);
    return t;
}

/* ---- opening ---- */

static void a_connect_is_told_with_all_that_is_judged(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, CONNECT "User-Agent: u/1\r\nProxy-Authorization: Basic AAA\r\nX: y\r\n\r\n");
    struct reader r = reader_of(heard_view(egress_hears(w, LANE_OPEN)));
    assert_view(read_block(&r, 100), "api.test:443");
    assert_view(read_block(&r, 100), "Basic AAA");
    assert_int_equal(read_u8(&r), 1);
    assert_view(read_block(&r, 100), "user-agent: u/1\nx: y");
    assert_view(read_block(&r, 100), "127.0.0.1:4711");
    assert_int_equal(read_u8(&r), LANE_WAY_CONNECT);
    assert_int_equal(read_u8(&r), 0);
    assert_true(view_is_empty(read_block(&r, 100)));
    assert_true(read_done(&r));
    client_reads_nothing(w, fd);
    close(fd);
    egress_hears(w, LANE_CLOSE);
}

static void a_refused_connect_is_answered_and_closed(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_say(w, fd, CONNECT "\r\n");
    egress_refuses(w, egress_hears(w, LANE_OPEN)->id, 403, "not here");
    client_reads(w, fd,
                 ANSWER("403 Forbidden", "Content-Length: 8\r\nConnection: close\r\n\r\nnot here"));
    assert_int_equal(client_reads_end(w, fd), 0);
    close(fd);
    egress_hears_nothing(w);
    assert_int_equal(w->proxy->n_clients, 0);
}

/* ---- the first bytes ---- */

static void ct_01_what_is_neither_tls_nor_http_is_closed(void **state) {
    static const char *const banners[] = {"\x00\x00\x00\x01",
                                          "\x17\x03\x03\x00\x01x",
                                          "-x",
                                          "\r\n",
                                          "{\"id\":1}",
                                          "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof banners / sizeof *banners; i++) {
        uint32_t id;
        int fd = dial_tunnel(w, &id);
        client_write(w, fd, banners[i], *banners[i] ? strlen(banners[i]) : 4);
        assert_int_equal(egress_hears_reason(w, LANE_FAILED), REASON_PROTOCOL_NOT_ALLOWED);
        assert_int_equal(egress_hears(w, LANE_CLOSE)->id, id);
        client_reads_end(w, fd);
        close(fd);
    }
}

static void ct_01_ssh_is_refused_in_words_that_it_prints(void **state) {
    struct world *w = *state;
    uint32_t id;
    int fd = dial_tunnel(w, &id);
    client_say(w, fd, "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
    assert_int_equal(egress_hears_reason(w, LANE_FAILED), REASON_PROTOCOL_NOT_ALLOWED);
    client_reads(w, fd, "SSH-2.0-exeat\r\n");
    close(fd);
    assert_int_equal(egress_hears(w, LANE_CLOSE)->id, id);
}

/* ---- transparent ---- */

#define MEANT "203.0.113.9:443"

static uint32_t egress_hears_meant(struct world *w, const char *name, bool tls) {
    struct heard *h = egress_hears(w, LANE_OPEN);
    struct reader r = reader_of(heard_view(h));
    assert_true(view_equal(read_block(&r, 300), view_str(name)));
    read_block(&r, 0);
    read_u8(&r);
    read_block(&r, 0);
    assert_view(read_block(&r, 100), "127.0.0.1:4711");
    assert_int_equal(read_u8(&r), LANE_WAY_TRANSPARENT);
    assert_int_equal(read_u8(&r), tls);
    assert_view(read_block(&r, 100), MEANT);
    assert_true(read_done(&r));
    return h->id;
}

static void a_transparent_request_is_told_by_its_host_and_then_read_again(void **state) {
    struct world *w = *state;
    int fd = client_dial_at(w, WAY_TRANSPARENT, MEANT);
    client_say(w, fd, "GET / HT");
    egress_hears_nothing(w);
    client_say(w, fd, "TP/1.1\r\nHost: api.test\r\n\r\n");
    uint32_t id = egress_hears_meant(w, "api.test", false);
    client_reads_nothing(w, fd);
    egress_opens(w, id);
    struct reader r = reader_of(heard_view(egress_hears(w, LANE_REQUEST)));
    assert_int_equal(read_u32(&r), id);
    close(fd);
}

static void a_transparent_client_is_refused_in_its_own_protocol(void **state) {
    static const struct {
        const char *first, *name, *answer;
    } cases[] = {{"GET / HTTP/1.0\r\n\r\n", "",
                  ANSWER("403 Forbidden", "Content-Length: 2\r\nConnection: close\r\n\r\nno")},
                 {"SSH-2.0-x\r\n", "", "SSH-2.0-exeat\r\n"},
                 {"*1\r\n", "", ""}};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = client_dial_at(w, WAY_TRANSPARENT, MEANT);
        client_say(w, fd, cases[i].first);
        egress_refuses(w, egress_hears_meant(w, cases[i].name, false), 403, "no");
        client_reads(w, fd, cases[i].answer);
        close(fd);
        egress_hears_nothing(w);
    }
}

static void a_transparent_attempt_without_a_byte_is_told_once(void **state) {
    struct world *w = *state;
    int fd = client_dial_at(w, WAY_TRANSPARENT, MEANT);
    close(fd);
    uint32_t id = egress_hears_meant(w, "", false);
    assert_int_equal(egress_hears(w, LANE_CLOSE)->id, id);
    egress_opens(w, id);
    egress_hears_nothing(w);
    assert_int_equal(w->proxy->n_clients, 0);
}

/* ---- SOCKS ---- */

static void socks_is_told_as_connect_is(void **state) {
    struct world *w = *state;
    int fd = client_dial(w);
    client_write(w, fd,
                 "\x05\x01\x02\x01\x01u\x01p\x05\x01\x00\x03\x08"
                 "api.test\x01\xbb",
                 23);
    struct heard *h = egress_hears(w, LANE_OPEN);
    struct reader r = reader_of(heard_view(h));
    assert_view(read_block(&r, 100), "api.test:443");
    assert_view(read_block(&r, 100), "Basic dTpw");
    assert_int_equal(read_u8(&r), 1);
    read_block(&r, 0);
    assert_view(read_block(&r, 100), "127.0.0.1:4711");
    assert_int_equal(read_u8(&r), LANE_WAY_SOCKS);
    client_reads(w, fd, "\x05\x02\x01");
    egress_refuses(w, h->id, 403, "no");
    uint8_t reply[11];
    for (size_t i = 0, n = 0; i < TURNS && n < sizeof reply; i++) {
        ssize_t got = read(fd, reply + n, sizeof reply - n);
        n += got > 0 ? (size_t)got : 0;
        world_turn(w);
    }
    assert_memory_equal(reply, "\x00\x05\x02\x00\x01\0\0\0\0\0\0", 11);
    close(fd);
}

static void ct_02_plain_http_inside_is_told_as_such(void **state) {
    struct world *w = *state;
    uint32_t id;
    int fd = dial_tunnel(w, &id);
    client_say(w, fd, "G");
    world_settle(w);
    client_say(w, fd, "ET /in HTTP/1.1\r\nHost: api.test\r\nProxy-Authorization: Basic A\r\n\r\n");
    struct told_request *t = egress_hears_request(w);
    assert_int_equal(t->tunnel, id);
    assert_int_equal(t->tls, 0);
    assert_int_equal(t->n_tokens, 1);
    assert_int_equal(t->token.n, 0);
    assert_int_equal(t->head.form, FORM_ORIGIN);
    assert_view(t->head.target, "/in");
    egress_hears(w, LANE_END);
    egress_answers_all(w, t->id, false, 200, "in");
    client_reads(w, fd, ANSWER("200 OK", "Content-Length: 2\r\n\r\nin"));
    close(fd);
    egress_hears(w, LANE_CLOSE);
}

static void ct_03_connect_inside_a_tunnel_is_405(void **state) {
    struct world *w = *state;
    uint32_t id;
    int fd = dial_tunnel(w, &id);
    client_say(w, fd, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n");
    struct told_malformed m = egress_hears_malformed(w);
    assert_int_equal(m.status, 405);
    assert_int_equal(m.reason, REASON_METHOD_REFUSED);
    assert_int_equal(m.tunnel, id);
    egress_answers_all(w, m.id, true, 405, "no");
    client_reads(
        w, fd,
        ANSWER("405 Method Not Allowed", "Content-Length: 2\r\nConnection: close\r\n\r\nno"));
    close(fd);
    egress_hears(w, LANE_CLOSE);
    struct tls_end t = dial_tls(w, &id);
    tls_says(&t, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", 56);
    assert_int_equal(egress_hears_malformed(w).reason, REASON_METHOD_REFUSED);
    tls_end_free(&t);
}

static void rx_03_a_silent_tunnel_is_closed(void **state) {
    static const char *const beginnings[] = {"", "GE", "\x16\x03\x01\x02\x00\x01"};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        uint32_t id;
        int fd = dial_tunnel(w, &id);
        client_write(w, fd, beginnings[i], i == 2 ? 6 : strlen(beginnings[i]));
        world_later(w, 18);
        egress_hears_nothing(w);
        world_later(w, 21);
        assert_int_equal(egress_hears_reason(w, LANE_FAILED), REASON_REQUEST_TIMEOUT);
        egress_hears(w, LANE_CLOSE);
        client_reads_end(w, fd);
        close(fd);
    }
}

/* ---- ClientHellos made by hand ---- */

/* A hello with these extension bytes behind `padding` bytes of padding, in records of at most `piece` bytes. */
static void make_hello(struct buf *out, struct view extension, size_t padding, size_t piece) {
    struct buf b;
    buf_init(&b, 65536);
    buf_put(&b, view_of("\x03\x03", 2));
    for (int i = 0; i < 32; i++)
        buf_put_u8(&b, 7);
    buf_put(&b, view_of("\x00\x00\x02\x13\x01\x01\x00", 7));
    buf_put_u16(&b, (uint16_t)(extension.n + (padding ? padding + 4 : 0)));
    if (padding) {
        buf_put_u16(&b, 21);
        buf_put_u16(&b, (uint16_t)padding);
        for (size_t i = 0; i < padding; i++)
            buf_put_u8(&b, 0);
    }
    buf_put(&b, extension);
    struct buf whole;
    buf_init(&whole, 65536);
    buf_put_u32(&whole, (uint32_t)(1u << 24 | buf_len(&b)));
    buf_put(&whole, buf_view(&b));
    for (struct view rest = buf_view(&whole); rest.n > 0; rest = view_skip(rest, piece)) {
        struct view v = view_head(rest, piece);
        buf_put(out, view_of("\x16\x03\x01", 3));
        buf_put_u16(out, (uint16_t)v.n);
        buf_put(out, v);
    }
    assert_true(buf_ok(out));
    buf_free(&b);
    buf_free(&whole);
}

#define SNI_API                                                                                    \
    VIEW("\0\0\0\x0d\0\x0b\0\0\x08"                                                                \
         "api.test")

static void expect_hello(struct world *w, uint32_t id, bool has_sni, const char *sni) {
    struct heard *h = egress_hears(w, LANE_HELLO);
    struct reader r = reader_of(heard_view(h));
    assert_int_equal(h->id, id);
    assert_int_equal(read_u8(&r), has_sni);
    assert_true(view_equal(read_block(&r, 256), view_str(sni)));
    assert_int_equal(read_u8(&r), 0);
    assert_true(read_done(&r));
}

static void ti_05_without_sni_egress_is_told_so(void **state) {
    struct world *w = *state;
    struct buf hello;
    uint32_t id;
    int fd = dial_tunnel(w, &id);
    buf_init(&hello, 65536);
    make_hello(&hello, (struct view){NULL, 0}, 0, 16384);
    client_write(w, fd, buf_view(&hello).p, buf_len(&hello));
    expect_hello(w, id, false, "");
    buf_free(&hello);
    close(fd);
}

static void ti_06_an_ill_formed_sni_gets_an_alert(void **state) {
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {
        {"\0\0\0\x12\0\x10\0\0\x05"
         "a.tes"
         "\0\0\x05"
         "b.tes",
         22},                          /* two names */
        {"\0\0\0\x02\0\0", 6},         /* an empty list */
        {"\0\0\0\x05\0\x03\0\0\0", 9}, /* an empty name */
        {"\0\0\0\x08\0\x06\x07\0\x03"
         "abc",
         12}, /* an unknown name type */
        {"\0\0\0\x08\0\x06\0\0\x03"
         "a\0b",
         12}, /* a NUL */
        {"\0\0\0\x08\0\x06\0\0\xff"
         "abc",
         12}, /* a length that lies */
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf hello;
        uint32_t id;
        uint8_t alert[7];
        int fd = dial_tunnel(w, &id);
        buf_init(&hello, 65536);
        make_hello(&hello, view_of(cases[i].bytes, cases[i].n), 0, 16384);
        client_write(w, fd, buf_view(&hello).p, buf_len(&hello));
        assert_int_equal(egress_hears_reason(w, LANE_FAILED), REASON_MALFORMED_HELLO);
        client_read_bytes(w, fd, alert, sizeof alert);
        assert_memory_equal(alert, "\x15\x03\x03\x00\x02\x02\x32", 7);
        client_reads_end(w, fd);
        buf_free(&hello);
        close(fd);
        egress_hears(w, LANE_CLOSE);
    }
}

static void ti_07_a_long_hello_in_any_pieces_is_read(void **state) {
    static const struct {
        size_t padding, record, write;
    } cases[] = {
        {0, 16384, 1}, {1500, 16384, 536}, {3000, 700, 1448}, {16000, 4000, 16384}, {200, 8, 64}};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf hello;
        uint32_t id;
        int fd = dial_tunnel(w, &id);
        buf_init(&hello, 65536);
        make_hello(&hello, SNI_API, cases[i].padding, cases[i].record);
        for (struct view rest = buf_view(&hello); rest.n > 0;
             rest = view_skip(rest, cases[i].write)) {
            struct view v = view_head(rest, cases[i].write);
            assert_null(w->first);
            client_write(w, fd, v.p, v.n);
            world_turn(w);
        }
        expect_hello(w, id, true, "api.test");
        channel_send(w->egress, LANE_ALERT, id, 1, view_of("\x50", 1));
        world_settle(w);
        buf_free(&hello);
        close(fd);
        egress_hears(w, LANE_CLOSE);
    }
}

static void ti_07_a_hello_beyond_the_limit_is_refused(void **state) {
    struct world *w = *state;
    struct buf hello;
    uint32_t id;
    int fd = dial_tunnel(w, &id);
    buf_init(&hello, 65536);
    make_hello(&hello, SNI_API, 40000, 16384);
    client_write(w, fd, buf_view(&hello).p, buf_len(&hello));
    assert_int_equal(egress_hears_reason(w, LANE_FAILED), REASON_MALFORMED_HELLO);
    buf_free(&hello);
    close(fd);
}

/* ---- TLS ---- */

static void requests_inside_tls_are_told_and_answered(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_tls(w, &tunnel);
    for (int i = 0; i < 3; i++) {
        tls_says(&t, INSIDE("/secret"), strlen(INSIDE("/secret")));
        struct told_request *r = egress_hears_request(w);
        assert_int_equal(r->tunnel, tunnel);
        assert_int_equal(r->tls, 1);
        assert_view(r->head.target, "/secret");
        uint32_t id = r->id;
        egress_hears(w, LANE_END);
        egress_answers_all(w, id, false, 200, "inside");
        tls_reads(&t, ANSWER("200 OK", "Content-Length: 6\r\n\r\ninside"));
    }
    SSL_shutdown(t.ssl);
    assert_int_equal(egress_hears(w, LANE_CLOSE)->id, tunnel);
    tls_end_free(&t);
}

static void sm_16_pipelining_inside_tls_keeps_its_order(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_tls(w, &tunnel);
    tls_says(&t, INSIDE("/1") INSIDE("/2"), strlen(INSIDE("/1") INSIDE("/2")));
    assert_view(egress_hears_request(w)->head.target, "/1");
    egress_hears(w, LANE_END);
    /* More in further records, which may already be inside TLS. */
    tls_says(&t, INSIDE("/3"), strlen(INSIDE("/3")));
    tls_says(&t, INSIDE("/4"), strlen(INSIDE("/4")));
    egress_hears_nothing(w);
    for (uint32_t id = 1; id <= 4; id++) {
        egress_answers_all(w, id, false, 200, "x");
        tls_reads(&t, ANSWER("200 OK", "Content-Length: 1\r\n\r\nx"));
        if (id == 4)
            break;
        struct told_request *r = egress_hears_request(w);
        assert_int_equal(r->id, id + 1);
        assert_int_equal(r->head.target.p[1], '1' + (int)id);
        egress_hears(w, LANE_END);
    }
    tls_end_free(&t);
}

static void ct_05_a_hello_behind_connect_in_one_packet_works(void **state) {
    struct world *w = *state;
    uint8_t *der, bytes[8192];
    size_t n = make_leaf(tls_server_public_key(w->server), "api.test", &der);
    /* The client's hello is taken out of a memory BIO and sent together with CONNECT. */
    SSL *ssl = SSL_new(client_ctx);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    SSL_set_tlsext_host_name(ssl, "api.test");
    assert_int_equal(SSL_connect(ssl), -1);
    size_t head = strlen(CONNECT "\r\n");
    memcpy(bytes, CONNECT "\r\n", head);
    int hello = BIO_read(out, bytes + head, (int)(sizeof bytes - head));
    assert_true(hello > 0);
    int fd = client_dial(w);
    client_write(w, fd, bytes, head + (size_t)hello);
    uint32_t tunnel = egress_hears(w, LANE_OPEN)->id;
    egress_hears_nothing(w);
    egress_opens(w, tunnel);
    client_reads(w, fd, ESTABLISHED);
    egress_hears(w, LANE_HELLO);
    egress_gives_leaf(w, tunnel, "api.test", view_of(der, n), tomorrow());
    for (int i = 0; i < TURNS && !SSL_is_init_finished(ssl); i++) {
        ssize_t got = read(fd, bytes, sizeof bytes);
        if (got > 0)
            BIO_write(in, bytes, (int)got);
        SSL_do_handshake(ssl);
        int put = BIO_read(out, bytes, sizeof bytes);
        if (put > 0)
            client_write(w, fd, bytes, (size_t)put);
        world_turn(w);
    }
    assert_true(SSL_is_init_finished(ssl));
    /* The first request may come in the client's last flight as well. */
    assert_int_equal(SSL_write(ssl, INSIDE("/early"), (int)strlen(INSIDE("/early"))),
                     (int)strlen(INSIDE("/early")));
    int put = BIO_read(out, bytes, sizeof bytes);
    client_write(w, fd, bytes, (size_t)put);
    assert_view(egress_hears_request(w)->head.target, "/early");
    SSL_free(ssl);
    OPENSSL_free(der);
    close(fd);
}

static void a_request_in_the_flight_of_finished_is_not_lost(void **state) {
    struct world *w = *state;
    uint8_t *der;
    uint32_t tunnel;
    size_t n = make_leaf(tls_server_public_key(w->server), "api.test", &der);
    int fd = dial_tunnel(w, &tunnel);
    struct tls_end t = tls_end_new(w, fd, "api.test");
    tls_connects(&t);
    egress_hears(w, LANE_HELLO);
    egress_gives_leaf(w, tunnel, "api.test", view_of(der, n), tomorrow());
    world_settle(w);
    /* Finished and the request are written before proxy gets to read again. */
    assert_int_equal(SSL_connect(t.ssl), 1);
    tls_says(&t, INSIDE("/at-once"), strlen(INSIDE("/at-once")));
    assert_view(egress_hears_request(w)->head.target, "/at-once");
    tls_end_free(&t);
    OPENSSL_free(der);
}

static void a_megabyte_each_way_inside_tls_is_what_was_sent(void **state) {
    enum { TOTAL = 1 << 20, PIECE = 16 * 1024 };
    struct world *w = *state;
    uint32_t tunnel;
    w->limits.v[LIMIT_WINDOW] = 32 * 1024;
    proxy_limit(w->proxy, &w->limits);
    struct tls_end t = dial_tls(w, &tunnel);
    uint8_t *bytes = malloc(TOTAL);
    assert_non_null(bytes);
    for (size_t i = 0; i < TOTAL; i++)
        bytes[i] = (uint8_t)(i * 7 >> 2);
    static const char head[] =
        "PUT /up HTTP/1.1\r\nHost: api.test\r\nContent-Length: 1048576\r\n\r\n";
    tls_says(&t, head, sizeof head - 1);
    uint32_t id = egress_hears_request(w)->id;
    size_t put = 0, got = 0;
    for (bool whole = false; !whole;) {
        size_t n = 0;
        if (put < TOTAL && SSL_write_ex(t.ssl, bytes + put, PIECE, &n) == 1)
            put += n;
        world_settle(w);
        for (struct heard *h = world_pop(w); h; h = world_pop(w)) {
            whole = whole || h->type == LANE_END;
            assert_memory_equal(h->bytes, bytes + got, h->n);
            got += h->n;
            if (h->n)
                egress_says_number(w, LANE_BODY_CREDIT, id, (uint32_t)h->n);
            free(h);
        }
    }
    assert_int_equal(got, TOTAL);
    egress_answers(w, id, false, 200, FRAMING_LENGTH, TOTAL);
    tls_reads(&t, ANSWER("200 OK", "Content-Length: 1048576\r\n\r\n"));
    size_t credit = 32 * 1024, told = 0;
    uint8_t back[PIECE];
    got = 0;
    for (int i = 0; i < TURNS && got < TOTAL; i++) {
        for (; told < TOTAL && credit >= PIECE / 2; told += PIECE / 2, credit -= PIECE / 2)
            channel_send(w->egress, LANE_ANSWER_BODY, id, 1, view_of(bytes + told, PIECE / 2));
        world_turn(w);
        for (struct heard *h = world_pop(w); h; h = world_pop(w)) {
            struct reader r = reader_of(heard_view(h));
            credit += read_u32(&r);
            free(h);
        }
        size_t n = 0;
        if (SSL_read_ex(t.ssl, back, sizeof back, &n) == 1) {
            assert_memory_equal(back, bytes + got, n);
            got += n;
        }
    }
    assert_int_equal(got, TOTAL);
    egress_says(w, LANE_ANSWER_END, id);
    free(bytes);
    tls_says(&t, INSIDE("/next"), strlen(INSIDE("/next")));
    egress_hears_request(w);
    tls_end_free(&t);
}

static void an_orderly_end_has_close_notify_and_a_cut_has_not(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_tls(w, &tunnel);
    tls_says(&t, INSIDE("/"), strlen(INSIDE("/")));
    uint32_t id = egress_hears_request(w)->id;
    egress_hears(w, LANE_END);
    egress_answers_all(w, id, true, 403, "no");
    tls_reads(&t, ANSWER("403 Forbidden", "Content-Length: 2\r\nConnection: close\r\n\r\nno"));
    assert_int_equal(tls_reads_end(&t), SSL_ERROR_ZERO_RETURN);
    tls_end_free(&t);
    egress_hears(w, LANE_CLOSE);
    /* RS-07 */
    t = dial_tls(w, &tunnel);
    tls_says(&t, INSIDE("/"), strlen(INSIDE("/")));
    id = egress_hears_request(w)->id;
    egress_hears(w, LANE_END);
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    egress_says_body(w, id, "part");
    egress_says(w, LANE_ANSWER_CUT, id);
    tls_reads(&t, ANSWER("200 OK", "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"));
    assert_int_not_equal(tls_reads_end(&t), SSL_ERROR_ZERO_RETURN);
    tls_end_free(&t);
}

static void a_half_close_by_close_notify_still_gets_its_answer(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_tls(w, &tunnel);
    tls_says(&t, INSIDE("/"), strlen(INSIDE("/")));
    SSL_shutdown(t.ssl);
    uint32_t id = egress_hears_request(w)->id;
    egress_hears(w, LANE_END);
    egress_hears_nothing(w);
    egress_answers_all(w, id, false, 200, "still");
    tls_reads(&t, ANSWER("200 OK", "Content-Length: 5\r\n\r\nstill"));
    tls_end_free(&t);
}

static void a_tls_client_that_just_closes_is_gone(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_tls(w, &tunnel);
    tls_says(&t, INSIDE("/"), strlen(INSIDE("/")));
    egress_hears_request(w);
    egress_hears(w, LANE_END);
    tls_end_free(&t);
    assert_int_equal(egress_hears_reason(w, LANE_GONE), REASON_CLIENT_CLOSED);
    egress_hears(w, LANE_CLOSE);
}

/* ---- leaves and refusals before TLS ---- */

static void an_alert_of_egress_reaches_the_client(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    int fd = dial_tunnel(w, &tunnel);
    struct tls_end t = tls_end_new(w, fd, "evil.test");
    tls_connects(&t);
    struct reader r = reader_of(heard_view(egress_hears(w, LANE_HELLO)));
    assert_int_equal(read_u8(&r), 1);
    assert_view(read_block(&r, 256), "evil.test");
    uint8_t alert = 112;
    channel_send(w->egress, LANE_ALERT, tunnel, 1, view_of(&alert, 1));
    assert_int_equal(tls_connects(&t), SSL_ERROR_SSL);
    assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_TLSV1_UNRECOGNIZED_NAME);
    ERR_clear_error();
    tls_end_free(&t);
    egress_hears(w, LANE_CLOSE);
}

static void a_client_that_does_not_trust_the_leaf_is_recorded(void **state) {
    struct world *w = *state;
    uint8_t *der;
    uint32_t tunnel;
    size_t n = make_leaf(tls_server_public_key(w->server), "api.test", &der);
    int fd = dial_tunnel(w, &tunnel);
    struct tls_end t = tls_end_new(w, fd, "api.test");
    SSL_set_verify(t.ssl, SSL_VERIFY_PEER, NULL);
    tls_connects(&t);
    egress_hears(w, LANE_HELLO);
    egress_gives_leaf(w, tunnel, "api.test", view_of(der, n), tomorrow());
    assert_int_equal(tls_connects(&t), SSL_ERROR_SSL);
    ERR_clear_error();
    assert_int_equal(egress_hears_reason(w, LANE_FAILED), REASON_CLIENT_TLS);
    egress_hears(w, LANE_CLOSE);
    tls_end_free(&t);
    OPENSSL_free(der);
}

static void an_empty_leaf_means_the_one_that_was_sent_before(void **state) {
    struct world *w = *state;
    uint8_t *der;
    uint32_t tunnel;
    uint64_t until = tomorrow();
    size_t n = make_leaf(tls_server_public_key(w->server), "api.test", &der);
    for (int i = 0; i < 3; i++) {
        int fd = dial_tunnel(w, &tunnel);
        struct tls_end t = tls_end_new(w, fd, "api.test");
        tls_connects(&t);
        egress_hears(w, LANE_HELLO);
        egress_gives_leaf(w, tunnel, "api.test", i ? (struct view){NULL, 0} : view_of(der, n),
                          i < 2 ? until : until + 1);
        int result = tls_connects(&t);
        if (i < 2) {
            assert_int_equal(result, SSL_ERROR_NONE);
        } else {
            /* Another end of validity: not the same leaf, so there is none. */
            assert_int_not_equal(result, SSL_ERROR_NONE);
            assert_int_equal(egress_hears_reason(w, LANE_FAILED), REASON_CLIENT_TLS);
        }
        ERR_clear_error();
        tls_end_free(&t);
        egress_hears(w, LANE_CLOSE);
    }
    OPENSSL_free(der);
}

static void a_leaf_that_cannot_be_used_closes(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    int fd = dial_tunnel(w, &tunnel);
    struct tls_end t = tls_end_new(w, fd, "api.test");
    tls_connects(&t);
    egress_hears(w, LANE_HELLO);
    egress_gives_leaf(w, tunnel, "api.test", VIEW("not a certificate"), tomorrow());
    assert_int_equal(egress_hears_reason(w, LANE_FAILED), REASON_CLIENT_TLS);
    assert_int_equal(tls_connects(&t), SSL_ERROR_SSL);
    ERR_clear_error();
    tls_end_free(&t);
}

static void a_cut_tunnel_is_closed_at_once(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_tls(w, &tunnel);
    tls_says(&t, INSIDE("/"), strlen(INSIDE("/")));
    uint32_t id = egress_hears_request(w)->id;
    egress_hears(w, LANE_END);
    egress_answers(w, id, false, 200, FRAMING_CHUNKED, 0);
    tls_reads(&t, ANSWER("200 OK", "Transfer-Encoding: chunked\r\n\r\n"));
    egress_says(w, LANE_CUT, tunnel);
    assert_int_not_equal(tls_reads_end(&t), SSL_ERROR_ZERO_RETURN);
    egress_hears(w, LANE_GONE);
    egress_hears(w, LANE_CLOSE);
    tls_end_free(&t);
}

int main(void) {
    log_open("test", LOG_FATAL);
    ca_key = EVP_EC_gen("P-256");
    client_ctx = SSL_CTX_new(TLS_client_method());
    if (!ca_key || !client_ctx)
        return 1;
    const struct CMUnitTest tests[] = {
        WITH_WORLD(a_connect_is_told_with_all_that_is_judged),
        WITH_WORLD(a_refused_connect_is_answered_and_closed),
        WITH_WORLD(ct_01_what_is_neither_tls_nor_http_is_closed),
        WITH_WORLD(ct_01_ssh_is_refused_in_words_that_it_prints),
        WITH_WORLD(a_transparent_request_is_told_by_its_host_and_then_read_again),
        WITH_WORLD(a_transparent_client_is_refused_in_its_own_protocol),
        WITH_WORLD(a_transparent_attempt_without_a_byte_is_told_once),
        WITH_WORLD(socks_is_told_as_connect_is),
        WITH_WORLD(ct_02_plain_http_inside_is_told_as_such),
        WITH_WORLD(ct_03_connect_inside_a_tunnel_is_405),
        WITH_WORLD(rx_03_a_silent_tunnel_is_closed),
        WITH_WORLD(ti_05_without_sni_egress_is_told_so),
        WITH_WORLD(ti_06_an_ill_formed_sni_gets_an_alert),
        WITH_WORLD(ti_07_a_long_hello_in_any_pieces_is_read),
        WITH_WORLD(ti_07_a_hello_beyond_the_limit_is_refused),
        WITH_WORLD(requests_inside_tls_are_told_and_answered),
        WITH_WORLD(sm_16_pipelining_inside_tls_keeps_its_order),
        WITH_WORLD(ct_05_a_hello_behind_connect_in_one_packet_works),
        WITH_WORLD(a_request_in_the_flight_of_finished_is_not_lost),
        WITH_WORLD(a_megabyte_each_way_inside_tls_is_what_was_sent),
        WITH_WORLD(an_orderly_end_has_close_notify_and_a_cut_has_not),
        WITH_WORLD(a_half_close_by_close_notify_still_gets_its_answer),
        WITH_WORLD(a_tls_client_that_just_closes_is_gone),
        WITH_WORLD(an_alert_of_egress_reaches_the_client),
        WITH_WORLD(a_client_that_does_not_trust_the_leaf_is_recorded),
        WITH_WORLD(an_empty_leaf_means_the_one_that_was_sent_before),
        WITH_WORLD(a_leaf_that_cannot_be_used_closes),
        WITH_WORLD(a_cut_tunnel_is_closed_at_once),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    SSL_CTX_free(client_ctx);
    EVP_PKEY_free(ca_key);
    return failed;
}

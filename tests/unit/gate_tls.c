/* Requests inside TLS inside a tunnel, with a real TLS client and leaves made here. */
#include "tests/unit/proxy_world.h"

#include "policy/reason.h"
#include "tests/unit/certificates.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#define INSIDE(path) "GET " path " HTTP/1.1\r\nHost: api.test\r\n\r\n"

/* ---- leaves ---- */

static struct certificate authority;

static void egress_gives_leaf(struct world *w, uint32_t id, struct view der, uint64_t not_after) {
    struct buf *b = channel_begin(w->egress, LANE_LEAF, id, 1);
    buf_put_block(b, VIEW("api.test"));
    buf_put_block(b, der);
    buf_put_block(b, (struct view){NULL, 0});
    buf_put_u64(b, not_after);
    channel_end(w->egress);
}

static void egress_mints_leaf(struct world *w, uint32_t id, uint64_t not_after) {
    struct view public_key = tls_server_public_key(w->server);
    const unsigned char *at = public_key.p;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)public_key.n);
    assert_non_null(key);
    struct certificate leaf = certificate_make(
        &(struct wish){.cn = "api.test", .san = "DNS:api.test", .issuer = &authority, .key = key});
    struct buf der;
    buf_init(&der, 4096);
    put_der(&der, &leaf);
    egress_gives_leaf(w, id, buf_view(&der), not_after);
    buf_free(&der);
    certificate_free(&leaf);
    EVP_PKEY_free(key);
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

static void tls_says(struct tls_end *t, const char *text) {
    size_t n = strlen(text);
    for (int i = 0; n > 0 && i < TURNS; i++) {
        size_t put = 0;
        if (SSL_write_ex(t->ssl, text, n, &put) == 1) {
            text += put;
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

/* A tunnel up to a ClientHello for api.test, of which egress has heard. */
static struct tls_end dial_hello(struct world *w, uint32_t *tunnel) {
    int fd = dial_tunnel(w, tunnel);
    struct tls_end t = tls_end_new(w, fd, "api.test");
    tls_connects(&t);
    egress_hears(w, LANE_HELLO);
    return t;
}

/* A whole intercepted connection for api.test. */
static struct tls_end dial_tls(struct world *w, uint32_t *tunnel) {
    struct tls_end t = dial_hello(w, tunnel);
    egress_mints_leaf(w, *tunnel, tomorrow());
    assert_int_equal(tls_connects(&t), SSL_ERROR_NONE);
    return t;
}

/* Asks for / and gives the exchange's id, once egress was told all of it. */
static uint32_t tls_asks(struct tls_end *t) {
    tls_says(t, INSIDE("/"));
    uint32_t id = egress_hears_request(t->world)->id;
    assert_int_equal(egress_hears(t->world, LANE_END)->id, id);
    return id;
}

/* ---- requests ---- */

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
    tls_says(&t, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n");
    assert_int_equal(egress_hears_malformed(w).reason, REASON_METHOD_REFUSED);
    tls_end_free(&t);
}

static void requests_inside_tls_are_told_and_answered(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_tls(w, &tunnel);
    for (int i = 0; i < 3; i++) {
        tls_says(&t, INSIDE("/secret"));
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
    tls_says(&t, INSIDE("/1") INSIDE("/2"));
    assert_view(egress_hears_request(w)->head.target, "/1");
    egress_hears(w, LANE_END);
    /* More in further records, which may already be inside TLS. */
    tls_says(&t, INSIDE("/3"));
    tls_says(&t, INSIDE("/4"));
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
    uint8_t bytes[8192];
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
    egress_mints_leaf(w, tunnel, tomorrow());
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
    close(fd);
}

static void a_request_in_the_flight_of_finished_is_not_lost(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_hello(w, &tunnel);
    egress_mints_leaf(w, tunnel, tomorrow());
    world_settle(w);
    /* Finished and the request are written before proxy gets to read again. */
    assert_int_equal(SSL_connect(t.ssl), 1);
    tls_says(&t, INSIDE("/at-once"));
    assert_view(egress_hears_request(w)->head.target, "/at-once");
    tls_end_free(&t);
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
    tls_says(&t, "PUT /up HTTP/1.1\r\nHost: api.test\r\nContent-Length: 1048576\r\n\r\n");
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
    tls_says(&t, INSIDE("/next"));
    egress_hears_request(w);
    tls_end_free(&t);
}

static void an_orderly_end_has_close_notify_and_a_cut_has_not(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_tls(w, &tunnel);
    uint32_t id = tls_asks(&t);
    egress_answers_all(w, id, true, 403, "no");
    tls_reads(&t, ANSWER("403 Forbidden", "Content-Length: 2\r\nConnection: close\r\n\r\nno"));
    assert_int_equal(tls_reads_end(&t), SSL_ERROR_ZERO_RETURN);
    tls_end_free(&t);
    egress_hears(w, LANE_CLOSE);
    /* RS-07 */
    t = dial_tls(w, &tunnel);
    id = tls_asks(&t);
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
    tls_says(&t, INSIDE("/"));
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
    tls_asks(&t);
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
    uint32_t tunnel;
    struct tls_end t = dial_hello(w, &tunnel);
    SSL_set_verify(t.ssl, SSL_VERIFY_PEER, NULL);
    egress_mints_leaf(w, tunnel, tomorrow());
    assert_int_equal(tls_connects(&t), SSL_ERROR_SSL);
    ERR_clear_error();
    assert_int_equal(egress_hears_reason(w, LANE_FAILED), REASON_CLIENT_TLS);
    egress_hears(w, LANE_CLOSE);
    tls_end_free(&t);
}

static void an_empty_leaf_means_the_one_that_was_sent_before(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    uint64_t until = tomorrow();
    for (int i = 0; i < 3; i++) {
        struct tls_end t = dial_hello(w, &tunnel);
        if (i == 0)
            egress_mints_leaf(w, tunnel, until);
        else
            egress_gives_leaf(w, tunnel, (struct view){NULL, 0}, i < 2 ? until : until + 1);
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
}

static void a_leaf_that_cannot_be_used_closes(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_hello(w, &tunnel);
    egress_gives_leaf(w, tunnel, VIEW("not a certificate"), tomorrow());
    assert_int_equal(egress_hears_reason(w, LANE_FAILED), REASON_CLIENT_TLS);
    assert_int_equal(tls_connects(&t), SSL_ERROR_SSL);
    ERR_clear_error();
    tls_end_free(&t);
}

static void a_cut_tunnel_is_closed_at_once(void **state) {
    struct world *w = *state;
    uint32_t tunnel;
    struct tls_end t = dial_tls(w, &tunnel);
    uint32_t id = tls_asks(&t);
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
    authority = certificate_make(&(struct wish){.cn = "authority", .ca = true});
    client_ctx = SSL_CTX_new(TLS_client_method());
    if (!client_ctx)
        return 1;
    const struct CMUnitTest tests[] = {
        WITH_WORLD(ct_03_connect_inside_a_tunnel_is_405),
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
    certificate_free(&authority);
    return failed;
}

/* Tunnels: from CONNECT and the other ways in to the first bytes inside. */
#include "tests/unit/proxy_world.h"

#include "policy/reason.h"

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
    assert_int_equal(read_u8(&r), false);
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

static uint32_t egress_hears_meant_for(struct world *w, const char *meant, const char *name,
                                       bool tls) {
    struct heard *h = egress_hears(w, LANE_OPEN);
    struct reader r = reader_of(heard_view(h));
    assert_true(view_equal(read_block(&r, 300), view_str(name)));
    read_block(&r, 0);
    read_u8(&r);
    read_block(&r, 0);
    read_u8(&r);
    assert_view(read_block(&r, 100), "127.0.0.1:4711");
    assert_int_equal(read_u8(&r), LANE_WAY_TRANSPARENT);
    assert_int_equal(read_u8(&r), tls);
    assert_true(view_equal(read_block(&r, 100), view_str(meant)));
    assert_true(read_done(&r));
    return h->id;
}

static uint32_t egress_hears_meant(struct world *w, const char *name, bool tls) {
    return egress_hears_meant_for(w, MEANT, name, tls);
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

/* Longer than the moment that a client may be silent where servers may speak first. */
static void let_silence_pass(void) {
    const struct timespec moment = {0, 80 * 1000000};
    nanosleep(&moment, NULL);
}

#define MAIL "203.0.113.9:25"

static void who_waits_for_the_server_to_speak_is_judged_by_the_address_alone(void **state) {
    struct world *w = *state;
    int fd = client_dial_at(w, WAY_TRANSPARENT, MAIL);
    let_silence_pass();
    egress_refuses(w, egress_hears_meant_for(w, MAIL, "", false), 403, "no");
    assert_int_equal(client_reads_end(w, fd), 0);
    close(fd);
    egress_hears_nothing(w);
}

static void who_was_silent_and_may_go_there_is_heard_as_others_are(void **state) {
    struct world *w = *state;
    int fd = client_dial_at(w, WAY_TRANSPARENT, MAIL);
    let_silence_pass();
    uint32_t id = egress_hears_meant_for(w, MAIL, "", false);
    egress_opens(w, id);
    client_say(w, fd, "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n");
    struct reader r = reader_of(heard_view(egress_hears(w, LANE_REQUEST)));
    assert_int_equal(read_u32(&r), id);
    close(fd);
}

static void a_slow_client_may_be_silent_where_clients_speak_first(void **state) {
    static const char *const meant[] = {MEANT, "203.0.113.9:80", "[2001:db8::9]:22"};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) {
        int fd = client_dial_at(w, WAY_TRANSPARENT, meant[i]);
        let_silence_pass();
        egress_hears_nothing(w);
        client_say(w, fd, "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n");
        egress_refuses(w, egress_hears_meant_for(w, meant[i], "api.test", false), 403, "no");
        client_reads(w, fd, "HTTP/1.1 403");
        close(fd);
    }
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
    read_u8(&r);
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

int main(void) {
    log_open("test", LOG_FATAL);
    const struct CMUnitTest tests[] = {
        WITH_WORLD(a_connect_is_told_with_all_that_is_judged),
        WITH_WORLD(a_refused_connect_is_answered_and_closed),
        WITH_WORLD(ct_01_what_is_neither_tls_nor_http_is_closed),
        WITH_WORLD(ct_01_ssh_is_refused_in_words_that_it_prints),
        WITH_WORLD(a_transparent_request_is_told_by_its_host_and_then_read_again),
        WITH_WORLD(a_transparent_client_is_refused_in_its_own_protocol),
        WITH_WORLD(a_transparent_attempt_without_a_byte_is_told_once),
        WITH_WORLD(who_waits_for_the_server_to_speak_is_judged_by_the_address_alone),
        WITH_WORLD(who_was_silent_and_may_go_there_is_heard_as_others_are),
        WITH_WORLD(a_slow_client_may_be_silent_where_clients_speak_first),
        WITH_WORLD(socks_is_told_as_connect_is),
        WITH_WORLD(ct_02_plain_http_inside_is_told_as_such),
        WITH_WORLD(rx_03_a_silent_tunnel_is_closed),
        WITH_WORLD(ti_05_without_sni_egress_is_told_so),
        WITH_WORLD(ti_06_an_ill_formed_sni_gets_an_alert),
        WITH_WORLD(ti_07_a_long_hello_in_any_pieces_is_read),
        WITH_WORLD(ti_07_a_hello_beyond_the_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

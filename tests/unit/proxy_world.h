/*
 * A proxy in a bottle: proxy's own code over socket pairs, and a scripted egress at the other end
 * of its lane. Each test says line by line what the client sends, what egress hears and says, and
 * what the client reads. Nothing waits for a delay: each expectation runs the loop until it is met,
 * TURNS times at most.
 */
#ifndef TESTS_UNIT_PROXY_WORLD_H
#define TESTS_UNIT_PROXY_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "egress/lane_messages.h"
#include "proxy/proxy.h"
#include "proxy/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TURNS = 20000 };
#define SECOND UINT64_C(1000000000)

/* A request's line and Host, without the blank line; a whole head. */
#define GET(path) "GET http://api.test" path " HTTP/1.1\r\nHost: api.test\r\n"
#define POST(fields) "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\n" fields "\r\n\r\n"
/* One that waits for 100; an answer as egress_answers has it. */
#define EXPECTING POST("Content-Length: 4\r\nExpect: 100-continue")
#define ANSWER(status, rest) "HTTP/1.1 " status "\r\nx-from: upstream\r\n" rest

struct heard {
    struct heard *next;
    uint16_t type;
    uint32_t id;
    size_t n;
    uint8_t bytes[];
};

struct world {
    struct loop *loop;
    struct tls_server *server;
    struct proxy *proxy;
    struct channel *egress;
    struct limits limits;
    struct heard *first, **last;
    bool egress_lost;
};

static int world_hear(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    struct heard *h = malloc(sizeof *h + m->body.n);
    (void)ch;
    assert_non_null(h);
    *h = (struct heard){.type = m->type, .id = m->id, .n = m->body.n};
    if (m->body.n)
        memcpy(h->bytes, m->body.p, m->body.n);
    *w->last = h;
    w->last = &h->next;
    return 0;
}

static void world_lost(void *ctx, struct channel *ch, int why) {
    struct world *w = ctx;
    (void)ch;
    (void)why;
    w->egress_lost = true;
}

static const struct channel_rule world_rules[] = {
    {LANE_OPEN, 0, LANE_HEAD_MAX, world_hear, "open"},
    {LANE_HELLO, 0, LANE_TEXT_MAX, world_hear, "hello"},
    {LANE_FAILED, 0, LANE_TEXT_MAX, world_hear, "failed"},
    {LANE_CLOSE, 0, 0, world_hear, "close"},
    {LANE_REQUEST, 0, LANE_HEAD_MAX, world_hear, "request"},
    {LANE_BODY, 0, LANE_BODY_MAX, world_hear, "body"},
    {LANE_END, 0, LANE_HEAD_MAX, world_hear, "end"},
    {LANE_GONE, 0, LANE_TEXT_MAX + 6, world_hear, "gone"},
    {LANE_CREDIT, 0, 4, world_hear, "credit"},
    {LANE_MALFORMED, 0, 2 * LANE_TEXT_MAX, world_hear, "malformed"},
    {LANE_RAW, 0, LANE_BODY_MAX, world_hear, "raw"},
    {LANE_RAW_END, 0, 0, world_hear, "raw end"},
    {LANE_RAW_CREDIT, 0, 4, world_hear, "raw credit"},
    {LANE_LOOKUP, 0, LANE_TEXT_MAX, world_hear, "lookup"},
};

/* ---- making and ending ---- */

static void world_start(struct world *w, const struct proxy_listener *listeners, size_t n) {
    int fds[2];
    assert_int_equal(channel_pair(fds), 0);
    w->proxy = proxy_new(w->loop, w->server, fds[0], listeners, n, &w->limits);
    w->egress = channel_new(w->loop, fds[1], world_rules, sizeof world_rules / sizeof *world_rules,
                            0, world_lost, w);
    assert_true(w->proxy && w->egress);
}

static struct world *world_new(void) {
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->last = &w->first;
    w->loop = loop_new();
    w->server = tls_server_new();
    assert_true(w->loop && w->server);
    limits_default(&w->limits);
    return w;
}

static struct heard *world_pop(struct world *w) {
    struct heard *h = w->first;
    if (!h)
        return NULL;
    w->first = h->next;
    if (!w->first)
        w->last = &w->first;
    return h;
}

static void world_free(struct world *w) {
    for (struct heard *h = world_pop(w); h; h = world_pop(w))
        free(h);
    proxy_free(w->proxy);
    channel_free(w->egress);
    tls_server_free(w->server);
    loop_free(w->loop);
    free(w);
}

/* For tests that need nothing special: WITH_WORLD. */
__attribute__((unused)) static int world_setup(void **state) {
    struct world *w = world_new();
    world_start(w, NULL, 0);
    *state = w;
    return 0;
}

__attribute__((unused)) static int world_teardown(void **state) {
    world_free(*state);
    return 0;
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

/* ---- running ---- */

static void world_tick(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    (void)ctx;
}

/* One turn, without waiting: both ends of everything are in this process. */
static void world_turn(struct world *w) {
    const struct timeval tick = {0, 0};
    event_base_once(loop_base(w->loop), -1, EV_TIMEOUT, world_tick, NULL, &tick);
    assert_int_equal(loop_turn(w->loop), 0);
}

static void world_settle(struct world *w) {
    for (int i = 0; i < 10; i++)
        world_turn(w);
}

/* What is swept when so much time has gone by. */
__attribute__((unused)) static void world_later(struct world *w, uint64_t seconds) {
    world_settle(w);
    proxy_sweep(w->proxy, loop_now(w->loop) + seconds * SECOND);
    world_settle(w);
}

/* ---- the client's side ---- */

__attribute__((unused)) static int client_dial_at(struct world *w, enum way_in way,
                                                  const char *meant) {
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    proxy_take(w->proxy, fds[0], way, "127.0.0.1:4711", meant);
    return fds[1];
}

__attribute__((unused)) static int relay_dial(struct world *w) {
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    proxy_take_relayed(w->proxy, fds[0], "127.0.0.1:4711");
    return fds[1];
}

static int client_dial(struct world *w) {
    return client_dial_at(w, WAY_EXPLICIT, "");
}

static void client_write(struct world *w, int fd, const void *p, size_t n) {
    const uint8_t *at = p;
    for (int i = 0; n > 0 && i < TURNS; i++) {
        ssize_t put = write(fd, at, n);
        if (put > 0) {
            at += put;
            n -= (size_t)put;
        } else {
            assert_true(errno == EAGAIN);
            world_turn(w);
        }
    }
    assert_int_equal(n, 0);
}

static void client_say(struct world *w, int fd, const char *text) {
    client_write(w, fd, text, strlen(text));
}

/* Reads exactly n bytes. */
static void client_read_bytes(struct world *w, int fd, uint8_t *p, size_t n) {
    for (int i = 0; n > 0 && i < TURNS; i++) {
        ssize_t got = read(fd, p, n);
        if (got > 0) {
            p += got;
            n -= (size_t)got;
        } else {
            assert_true(got < 0 && errno == EAGAIN);
            world_turn(w);
        }
    }
    assert_int_equal(n, 0);
}

static void client_reads(struct world *w, int fd, const char *text) {
    char *got = calloc(1, strlen(text) + 1);
    assert_non_null(got);
    client_read_bytes(w, fd, (uint8_t *)got, strlen(text));
    assert_string_equal(got, text);
    free(got);
}

/* Nothing more comes, and the connection is open. */
__attribute__((unused)) static void client_reads_nothing(struct world *w, int fd) {
    uint8_t byte;
    world_settle(w);
    ssize_t got = read(fd, &byte, 1);
    assert_true(got < 0 && errno == EAGAIN);
}

/* The end of the connection and nothing before it: 0, or the errno (ECONNRESET). */
__attribute__((unused)) static int client_reads_end(struct world *w, int fd) {
    uint8_t byte;
    for (int i = 0; i < TURNS; i++) {
        ssize_t got = read(fd, &byte, 1);
        if (got == 0)
            return 0;
        assert_true(got < 0);
        if (errno != EAGAIN)
            return errno;
        world_turn(w);
    }
    fail_msg("the connection stays open");
    return -1;
}

/* ---- egress' side ---- */

/* The next message must be of this type. Valid until the next call with the same world. */
static struct heard *egress_hears(struct world *w, uint16_t type) {
    static struct heard *kept;
    for (int i = 0; !w->first && i < TURNS; i++)
        world_turn(w);
    assert_non_null(w->first);
    free(kept);
    kept = world_pop(w);
    assert_int_equal(kept->type, type);
    return kept;
}

static void egress_hears_nothing(struct world *w) {
    world_settle(w);
    assert_null(w->first);
}

static struct view heard_view(const struct heard *h) {
    return view_of(h->bytes, h->n);
}

static void egress_says(struct world *w, uint16_t type, uint32_t id) {
    channel_send(w->egress, type, id, 1, (struct view){NULL, 0});
}

__attribute__((unused)) static void egress_says_number(struct world *w, uint16_t type, uint32_t id,
                                                       uint32_t n) {
    buf_put_u32(channel_begin(w->egress, type, id, 1), n);
    channel_end(w->egress);
}

static void egress_answers(struct world *w, uint32_t id, bool end, uint16_t status,
                           enum framing framing, uint64_t length) {
    static struct answer_head h;
    h = (struct answer_head){
        .status = status, .minor = 1, .framing = framing, .length = length, .keep_alive = true};
    assert_int_equal(fields_add(&h.fields, VIEW("x-from"), VIEW("upstream")), 0);
    struct buf *b = channel_begin(w->egress, LANE_ANSWER, id, 1);
    buf_put_u8(b, end);
    answer_write(&h, b);
    channel_end(w->egress);
}

static void egress_says_body(struct world *w, uint32_t id, const char *text) {
    channel_send(w->egress, LANE_ANSWER_BODY, id, 1, view_str(text));
}

/* A whole answer with a length. */
__attribute__((unused)) static void egress_answers_all(struct world *w, uint32_t id, bool end,
                                                       uint16_t status, const char *body) {
    egress_answers(w, id, end, status, FRAMING_LENGTH, strlen(body));
    if (*body)
        egress_says_body(w, id, body);
    egress_says(w, LANE_ANSWER_END, id);
}

struct told_request {
    uint32_t id, tunnel;
    uint8_t tls, n_tokens;
    struct view token, peer;
    struct request_head head;
};

/* Views hold until the next egress_hears. */
static struct told_request *egress_hears_request(struct world *w) {
    static struct told_request t;
    struct heard *h = egress_hears(w, LANE_REQUEST);
    struct reader r = reader_of(heard_view(h));
    t.id = h->id;
    t.tunnel = read_u32(&r);
    t.tls = read_u8(&r);
    t.n_tokens = read_u8(&r);
    t.token = read_block(&r, LANE_TEXT_MAX);
    t.peer = read_block(&r, 128);
    assert_int_equal(request_read(&r, &t.head), 0);
    assert_true(read_done(&r));
    return &t;
}

/* Reason of the next LANE_GONE or LANE_FAILED. */
__attribute__((unused)) static enum reason egress_hears_reason(struct world *w, uint16_t type) {
    struct reader r = reader_of(heard_view(egress_hears(w, type)));
    return (enum reason)read_u16(&r);
}

/* Asks for text and gives the exchange's id, once egress was told all of it. */
__attribute__((unused)) static uint32_t client_asks(struct world *w, int fd, const char *text) {
    client_say(w, fd, text);
    uint32_t id = egress_hears_request(w)->id;
    assert_int_equal(egress_hears(w, LANE_END)->id, id);
    return id;
}

struct told_malformed {
    uint32_t id, tunnel;
    uint16_t status, reason;
    uint8_t way;
    struct view detail, bytes, meant;
};

__attribute__((unused)) static struct told_malformed egress_hears_malformed(struct world *w) {
    struct heard *h = egress_hears(w, LANE_MALFORMED);
    struct reader r = reader_of(heard_view(h));
    struct told_malformed t = {.id = h->id};
    t.tunnel = read_u32(&r);
    t.status = read_u16(&r);
    t.reason = read_u16(&r);
    t.detail = read_block(&r, LANE_TEXT_MAX);
    t.bytes = read_block(&r, 512);
    assert_true(view_equal(read_block(&r, 128), VIEW("127.0.0.1:4711")));
    t.way = read_u8(&r);
    t.meant = read_block(&r, LANE_ADDRESS_MAX);
    assert_true(read_done(&r));
    return t;
}

/* ---- tunnels ---- */

#define CONNECT "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n"
#define ESTABLISHED "HTTP/1.1 200 Connection Established\r\n\r\n"

__attribute__((unused)) static void egress_opens(struct world *w, uint32_t id) {
    struct buf *b = channel_begin(w->egress, LANE_OPENED, id, 1);
    buf_put_block(b, VIEW("api.test"));
    buf_put_u16(b, 443);
    channel_end(w->egress);
}

/* A connection on which CONNECT was sent and allowed; its tunnel's id. */
__attribute__((unused)) static int dial_tunnel(struct world *w, uint32_t *id) {
    int fd = client_dial(w);
    client_say(w, fd, CONNECT "\r\n");
    *id = egress_hears(w, LANE_OPEN)->id;
    egress_opens(w, *id);
    client_reads(w, fd, ESTABLISHED);
    return fd;
}

#define assert_view(v, literal)                                                                    \
    do {                                                                                           \
        struct view assert_v = (v);                                                                \
        assert_int_equal(assert_v.n, sizeof(literal) - 1);                                         \
        assert_memory_equal(assert_v.p, literal, sizeof(literal) - 1);                             \
    } while (0)

#endif

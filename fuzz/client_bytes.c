/*
 * Arbitrary bytes of a client against the whole proxy, with an egress that allows everything. The
 * first byte says by which way and in which pieces they come. Whatever they are, nothing may be left behind.
 */
#include "base/log.h"
#include "egress/lane_messages.h"
#include "http/message.h"
#include "proxy/proxy.h"
#include "proxy/state.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop *loop;
static struct tls_server *server;
static struct event *tick;

static void on_tick(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    (void)ctx;
}

static int answer(struct channel *ch, uint32_t id, uint16_t status) {
    static struct answer_head h;
    h = (struct answer_head){.status = status, .minor = 1, .framing = FRAMING_CHUNKED};
    struct buf *b = channel_begin(ch, LANE_ANSWER, id, 1);
    buf_put_u8(b, status != 200);
    answer_write(&h, b);
    channel_end(ch);
    channel_send(ch, LANE_ANSWER_BODY, id, 1, VIEW("answer"));
    channel_send(ch, LANE_ANSWER_END, id, 1, (struct view){NULL, 0});
    return 0;
}

static int take_open(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    struct buf *b = channel_begin(ch, LANE_OPENED, m->id, 1);
    buf_put_block(b, VIEW("api.test"));
    buf_put_u16(b, 443);
    channel_end(ch);
    return 0;
}

static int take_hello(void *ctx, struct channel *ch, struct message *m) {
    uint8_t alert = 112;
    (void)ctx;
    channel_send(ch, LANE_ALERT, m->id, 1, view_of(&alert, 1));
    return 0;
}

/* What proxy tells must be a record that egress can read. */
static int take_request(void *ctx, struct channel *ch, struct message *m) {
    static struct request_head h;
    struct reader r = reader_of(m->body);
    (void)ctx;
    (void)ch;
    read_bytes(&r, 6);
    read_block(&r, LANE_TEXT_MAX);
    read_block(&r, 128);
    if (request_read(&r, &h) != 0 || !read_done(&r))
        abort();
    return 0;
}

static int take_body(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    buf_put_u32(channel_begin(ch, LANE_BODY_CREDIT, m->id, 1), (uint32_t)m->body.n);
    channel_end(ch);
    return 0;
}

static int take_end(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    return answer(ch, m->id, 200);
}

static int take_malformed(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    return answer(ch, m->id, 400);
}

/* One address for whatever is asked. */
static int take_lookup(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    struct buf *b = channel_begin(ch, LANE_FOUND, m->id, 1);
    buf_put_u8(b, 0);
    buf_put_u32(b, 60);
    buf_put_u8(b, 1);
    buf_put_u8(b, 4);
    buf_put_u32(b, 0xc6120001);
    buf_put_block(b, VIEW("text"));
    channel_end(ch);
    return 0;
}

static int ignore(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    (void)ch;
    (void)m;
    return 0;
}

static const struct channel_rule rules[] = {
    {LANE_OPEN, 0, LANE_HEAD_MAX, take_open, "open"},
    {LANE_HELLO, 0, LANE_TEXT_MAX, take_hello, "hello"},
    {LANE_FAILED, 0, LANE_TEXT_MAX, ignore, "failed"},
    {LANE_CLOSE, 0, 0, ignore, "close"},
    {LANE_REQUEST, 0, LANE_HEAD_MAX, take_request, "request"},
    {LANE_BODY, 0, LANE_BODY_MAX, take_body, "body"},
    {LANE_END, 0, LANE_HEAD_MAX, take_end, "end"},
    {LANE_GONE, 0, LANE_TEXT_MAX, ignore, "gone"},
    {LANE_CREDIT, 0, 4, ignore, "credit"},
    {LANE_MALFORMED, 0, 2 * LANE_TEXT_MAX, take_malformed, "malformed"},
    {LANE_LOOKUP, 0, 2 * LANE_TEXT_MAX, take_lookup, "lookup"},
};

static void on_closed(void *ctx, struct channel *ch, int why) {
    (void)ctx;
    (void)ch;
    (void)why;
    abort(); /* proxy must never say what egress would not take */
}

static void turns(int n) {
    const struct timeval now = {0, 0};
    while (n-- > 0) {
        event_add(tick, &now);
        if (loop_turn(loop) != 0)
            abort();
    }
}

enum { RELAYED = 3 /* of ways: by a relay, to an explicit listener */ };

static void send_bytes(struct proxy *p, uint8_t way, struct view v, size_t piece) {
    static const enum way_in ways[] = {WAY_EXPLICIT, WAY_TRANSPARENT, WAY_DNS_TCP};
    int fds[2];
    char sink[4096];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
        abort();
    if (way == RELAYED)
        proxy_take_relayed(p, fds[0], "127.0.0.1:1");
    else
        proxy_take(p, fds[0], ways[way], "127.0.0.1:1", way == 0 ? "" : "192.0.2.1:443");
    for (; v.n > 0; v = view_skip(v, piece)) {
        struct view now = view_head(v, piece);
        if (write(fds[1], now.p, now.n) < 0)
            break;
        turns(2);
        while (read(fds[1], sink, sizeof sink) > 0)
            continue;
    }
    turns(4);
    close(fds[1]);
    turns(4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct limits limits;
    int lane[2];
    if (size == 0)
        return 0;
    if (!loop) {
        log_open("fuzz", LOG_FATAL);
        loop = loop_new();
        server = tls_server_new();
        tick = event_new(loop_base(loop), -1, 0, on_tick, NULL);
    }
    limits_default(&limits);
    limits.v[LIMIT_WINDOW] = 32 * 1024;
    if (channel_pair(lane) != 0)
        abort();
    struct proxy *p = proxy_new(loop, server, lane[0], NULL, 0, &limits);
    struct channel *egress =
        channel_new(loop, lane[1], rules, sizeof rules / sizeof *rules, 0, on_closed, NULL);
    if (!p || !egress)
        abort();
    size_t piece = data[0] & 63 ? data[0] & 63 : 4096;
    send_bytes(p, data[0] >> 6, view_of(data + 1, size - 1), piece);
    proxy_sweep(p, loop_now(loop) + UINT64_C(700000) * 1000000000);
    turns(2);
    if (p->n_clients > 0) {
        proxy_sweep(p, loop_now(loop) + UINT64_C(700000) * 1000000000);
        turns(2);
    }
    if (p->n_clients > 0 || p->relays.n > 0 || p->tunnels.n > 0)
        abort();
    channel_free(egress);
    proxy_free(p);
    return 0;
}

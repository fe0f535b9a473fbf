/*
 * Arbitrary bytes of a client against the whole proxy, with an egress that allows everything. The
 * first byte says by which way and in which pieces they come: to a listener as they are, inside of TLS, or as packets of the
 * lane's courier, each with two bytes of length before it. Whatever they are, nothing may be left behind.
 */
#include "base/log.h"
#include "ca/mint.h"
#include "egress/lane_messages.h"
#include "http/message.h"
#include "http/tls.h"
#include "proxy/courier.h"
#include "proxy/proxy.h"
#include "proxy/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PIECE = 63, /* of the first byte: how long the pieces are, or one of these */
    BY_COURIER = 63,
    BY_TLS = 62,
    PIECE_MAX = 4096
};
#define NAME "api.test"

static struct loop *loop;
static struct tls_server *server;
static struct tls_client *client;
static struct buf leaf;
static uint64_t leaf_ends;
static struct event *tick;

static const enum way_in carried[] = {WAY_DNS_UDP, WAY_UNREACHABLE, WAY_LOGGED};
enum { CARRIED = sizeof carried / sizeof *carried };

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

/* Who says no name gets an alert. */
static int take_hello(void *ctx, struct channel *ch, struct message *m) {
    struct reader r = reader_of(m->body);
    uint8_t alert = 112;
    (void)ctx;
    if (read_u8(&r) == 0) {
        channel_send(ch, LANE_ALERT, m->id, 1, view_of(&alert, 1));
        return 0;
    }
    struct buf *b = channel_begin(ch, LANE_LEAF, m->id, 1);
    buf_put_block(b, VIEW(NAME));
    buf_put_block(b, buf_view(&leaf));
    buf_put_block(b, VIEW(""));
    buf_put_u64(b, leaf_ends);
    channel_end(ch);
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
    {LANE_DATAGRAM, 0, LANE_TEXT_MAX, ignore, "datagram"},
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

/* What an honest client does until TLS is there, and then these bytes. */
static void send_in_tls(struct proxy *p, struct view v) {
    static const char connect[] = "CONNECT " NAME ":443 HTTP/1.1\r\nHost: " NAME ":443\r\n\r\n";
    int fds[2];
    char sink[4096];
    size_t n = 0;
    enum tls_result result = TLS_WANT_READ;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
        abort();
    proxy_take(p, fds[0], WAY_EXPLICIT, "127.0.0.1:1", "");
    if (write(fds[1], connect, sizeof connect - 1) < 0)
        abort();
    turns(3);
    if (read(fds[1], sink, sizeof sink) <= 0)
        abort();
    struct tls *t = tls_connect(client, fds[1], NAME, (struct view){NULL, 0}, NULL, NULL);
    for (int i = 0; i < 10 && result != TLS_DONE; i++) {
        result = tls_handshake(t);
        turns(2);
    }
    if (result != TLS_DONE)
        abort();
    for (; v.n > 0 && tls_write(t, v, &n) == TLS_DONE; v = view_skip(v, n))
        turns(3);
    turns(2);
    while (tls_read(t, (uint8_t *)sink, sizeof sink, &n) == TLS_DONE)
        continue;
    tls_free(t);
    close(fds[1]);
    turns(4);
}

/* An answer goes back to who asked, and to nobody else. */
static void send_packets(int courier, struct view v) {
    uint8_t answer[COURIER_PACKET_MAX];
    struct reader r = reader_of(v);
    while (!r.bad && r.rest.n > 0) {
        struct view packet = read_bytes(&r, read_u16(&r));
        if (packet.n == 0 || packet.n > COURIER_PACKET_MAX)
            return;
        (void)!write(courier, packet.p, packet.n);
        turns(3);
        for (ssize_t n; (n = read(courier, answer, sizeof answer)) > 0;)
            if (n < 4 || memcmp(answer, packet.p, 4) != 0)
                abort();
    }
}

static void make_leaf(void) {
    static const uint8_t serial[MINT_SERIAL_SIZE] = {1};
    uint64_t now = clock_wall() / 1000000000;
    struct mint_validity validity = {now - 3600, now + 90 * UINT64_C(86400)};
    struct buf key, root;
    struct mint *m;
    struct mint_form *form;
    struct authority a;
    buf_init(&key, MINT_PEM_MAX);
    buf_init(&root, MINT_PEM_MAX);
    buf_init(&leaf, MINT_PEM_MAX);
    if (mint_key(&key) != 0 || mint_root(buf_view(&key), "fuzz", validity, serial, &root) != 0 ||
        mint_new(buf_view(&key), buf_view(&root), &m) != 0 ||
        mint_form_new(m, tls_server_public_key(server), &form) != 0 ||
        authority_parse_host(VIEW(NAME), 443, &a, NULL) != 0 ||
        mint_leaf(form, &a, validity, serial, &leaf, &leaf_ends) != 0)
        abort();
    client = tls_client_new(buf_view(&root), 4);
    mint_form_free(form);
    mint_free(m);
    buf_free(&key);
    buf_free(&root);
}

static void start(void) {
    log_open("fuzz", LOG_FATAL);
    loop = loop_new();
    if (tls_start() != 0)
        abort();
    server = tls_server_new();
    make_leaf();
    tick = event_new(loop_base(loop), -1, 0, on_tick, NULL);
}

static void send_all(struct proxy *p, const int couriers[CARRIED], uint8_t how, struct view v) {
    uint8_t way = how >> 6, piece = how & PIECE;
    if (piece == BY_COURIER)
        send_packets(couriers[way % CARRIED], v);
    else if (piece == BY_TLS)
        send_in_tls(p, v);
    else
        send_bytes(p, way, v, piece ? piece : PIECE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct limits limits;
    struct proxy_listener listeners[CARRIED] = {{0}};
    int lane[2], couriers[CARRIED];
    if (size == 0)
        return 0;
    if (!loop)
        start();
    limits_default(&limits);
    limits.v[LIMIT_WINDOW] = 32 * 1024;
    if (channel_pair(lane) != 0)
        abort();
    for (size_t i = 0; i < CARRIED; i++) {
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds) != 0)
            abort();
        listeners[i] = (struct proxy_listener){.fd = fds[0], .way = carried[i]};
        couriers[i] = fds[1];
    }
    struct proxy *p = proxy_new(loop, server, lane[0], listeners, CARRIED, &limits);
    struct channel *egress =
        channel_new(loop, lane[1], rules, sizeof rules / sizeof *rules, 0, on_closed, NULL);
    if (!p || !egress)
        abort();
    send_all(p, couriers, data[0], view_of(data + 1, size - 1));
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
    for (size_t i = 0; i < CARRIED; i++) {
        close(listeners[i].fd);
        close(couriers[i]);
    }
    return 0;
}

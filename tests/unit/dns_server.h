/*
 * A DNS server for tests, UDP and TCP on one loopback port, in the test's own
 * loop. A script decides what each question is answered with; questions are counted.
 */
#ifndef TESTS_UNIT_DNS_SERVER_H
#define TESTS_UNIT_DNS_SERVER_H

#include "base/bytes.h"
#include "base/loop.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { Q_A = 1, Q_CNAME = 5, Q_AAAA = 28, Q_HTTPS = 65 };
enum { RCODE_OK = 0, RCODE_SERVFAIL = 2, RCODE_NXDOMAIN = 3, RCODE_REFUSED = 5, FLAG_TC = 0x0200 };

struct dns_server;

struct dns_query {
    uint16_t id, type;
    char name[256];
    bool tcp;
    unsigned nth; /* of this type, from 1 */
    struct view question;
};

/* Appends the whole answer, or nothing: silence. */
typedef void dns_script(struct dns_server *s, const struct dns_query *q, struct buf *out);

struct dns_server {
    struct loop *loop;
    int udp, tcp, connection;
    uint16_t port;
    struct event *on_udp, *on_tcp, *on_connection;
    dns_script *script;
    void *ctx;
    unsigned n_a, n_aaaa, n_other, n_tcp;
    struct sockaddr_in last_peer;
};

static inline unsigned dns_server_questions(const struct dns_server *s) {
    return s->n_a + s->n_aaaa + s->n_other;
}

/* ---- building answers ---- */

static inline void put_name(struct buf *out, const char *name) {
    struct view rest = view_str(name);
    while (!view_is_empty(rest)) {
        struct view label = view_cut(&rest, '.');
        buf_put_u8(out, (uint8_t)label.n);
        buf_put(out, label);
    }
    buf_put_u8(out, 0);
}

static inline void put_head(struct buf *out, const struct dns_query *q, uint16_t flags,
                            uint16_t answers) {
    buf_put_u16(out, q->id);
    buf_put_u16(out, (uint16_t)(0x8180 | flags));
    buf_put_u16(out, 1);
    buf_put_u16(out, answers);
    buf_put_u32(out, 0);
    buf_put(out, q->question);
}

static inline void put_record(struct buf *out, const char *owner, uint16_t type, struct view data) {
    put_name(out, owner);
    buf_put_u16(out, type);
    buf_put_u16(out, 1);
    buf_put_u32(out, 0); /* TTL */
    buf_put_u16(out, (uint16_t)data.n);
    buf_put(out, data);
}

static inline void put_address(struct buf *out, const char *owner, const char *address) {
    uint8_t bytes[16];
    if (inet_pton(AF_INET, address, bytes) == 1)
        put_record(out, owner, Q_A, view_of(bytes, 4));
    else if (inet_pton(AF_INET6, address, bytes) == 1)
        put_record(out, owner, Q_AAAA, view_of(bytes, 16));
}

static inline void put_cname(struct buf *out, const char *owner, const char *target) {
    struct buf data;
    buf_init(&data, 512);
    put_name(&data, target);
    put_record(out, owner, Q_CNAME, buf_view(&data));
    buf_free(&data);
}

/* ---- serving ---- */

static inline bool read_query(struct dns_server *s, struct view message, struct dns_query *q) {
    struct reader r = reader_of(message);
    size_t n = 0;
    q->id = read_u16(&r);
    (void)read_bytes(&r, 10);
    for (uint8_t length; (length = read_u8(&r)) != 0 && !r.bad;) {
        struct view label = read_bytes(&r, length);
        n += (size_t)snprintf(q->name + n, sizeof q->name - n, "%s%.*s", n ? "." : "",
                              VIEW_ARG(label));
    }
    q->type = read_u16(&r);
    (void)read_u16(&r);
    q->question = view_slice(message, 12, message.n - r.rest.n);
    unsigned *count = q->type == Q_A ? &s->n_a : q->type == Q_AAAA ? &s->n_aaaa : &s->n_other;
    q->nth = ++*count;
    return !r.bad;
}

static inline void on_dns_udp(evutil_socket_t fd, short what, void *ctx) {
    struct dns_server *s = ctx;
    static uint8_t message[65536];
    socklen_t size = sizeof s->last_peer;
    struct dns_query q = {.tcp = false};
    struct buf out;
    (void)what;
    ssize_t n = recvfrom(fd, message, sizeof message, 0, (struct sockaddr *)&s->last_peer, &size);
    buf_init(&out, 70000);
    if (n > 0 && read_query(s, view_of(message, (size_t)n), &q))
        s->script(s, &q, &out);
    if (buf_len(&out) > 0 &&
        sendto(fd, buf_view(&out).p, buf_len(&out), 0, (struct sockaddr *)&s->last_peer, size) < 0)
        perror("dns server");
    buf_free(&out);
}

static inline void dns_server_hang_up(struct dns_server *s) {
    if (!s->on_connection)
        return;
    event_free(s->on_connection);
    close(s->connection);
    s->on_connection = NULL;
}

static inline void on_dns_connection(evutil_socket_t fd, short what, void *ctx) {
    struct dns_server *s = ctx;
    static uint8_t message[65536];
    struct dns_query q = {.tcp = true};
    struct buf out, framed;
    (void)what;
    ssize_t n = recv(fd, message, sizeof message, 0);
    if (n <= 0) {
        dns_server_hang_up(s);
        return;
    }
    buf_init(&out, 70000);
    buf_init(&framed, 70002);
    struct view rest = view_of(message, (size_t)n);
    while (rest.n > 2) {
        size_t length = (size_t)rest.p[0] << 8 | rest.p[1];
        buf_reset(&out);
        s->n_tcp++;
        if (read_query(s, view_slice(rest, 2, 2 + length), &q))
            s->script(s, &q, &out);
        buf_reset(&framed);
        buf_put_u16(&framed, (uint16_t)buf_len(&out));
        buf_put(&framed, buf_view(&out));
        if (buf_len(&out) > 0 && send(fd, buf_view(&framed).p, buf_len(&framed), MSG_NOSIGNAL) < 0)
            perror("dns server");
        rest = view_skip(rest, 2 + length);
    }
    buf_free(&out);
    buf_free(&framed);
}

static inline void on_dns_accept(evutil_socket_t fd, short what, void *ctx) {
    struct dns_server *s = ctx;
    int size = 1 << 20;
    (void)what;
    dns_server_hang_up(s);
    s->connection = accept(fd, NULL, NULL);
    setsockopt(s->connection, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    s->on_connection =
        event_new(loop_base(s->loop), s->connection, EV_READ | EV_PERSIST, on_dns_connection, s);
    event_add(s->on_connection, NULL);
}

static inline void dns_server_start(struct dns_server *s, struct loop *l, dns_script *script,
                                    void *ctx) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof a;
    *s = (struct dns_server){.loop = l, .script = script, .ctx = ctx};
    for (int tries = 0; tries < 20; tries++) {
        a.sin_port = 0;
        s->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        s->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(s->udp, (struct sockaddr *)&a, sizeof a) == 0 &&
            getsockname(s->udp, (struct sockaddr *)&a, &size) == 0 &&
            bind(s->tcp, (struct sockaddr *)&a, sizeof a) == 0 && listen(s->tcp, 8) == 0)
            break;
        close(s->udp);
        close(s->tcp);
    }
    s->port = ntohs(a.sin_port);
    s->on_udp = event_new(loop_base(l), s->udp, EV_READ | EV_PERSIST, on_dns_udp, s);
    s->on_tcp = event_new(loop_base(l), s->tcp, EV_READ | EV_PERSIST, on_dns_accept, s);
    event_add(s->on_udp, NULL);
    event_add(s->on_tcp, NULL);
}

static inline void dns_server_stop(struct dns_server *s) {
    dns_server_hang_up(s);
    event_free(s->on_udp);
    event_free(s->on_tcp);
    close(s->udp);
    close(s->tcp);
}

/* ---- waiting ---- */

static inline void on_tick_only(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    (void)ctx;
}

/* Turns the loop until *done or the time is over; whether it was done. */
static inline bool turn_until(struct loop *l, const bool *done, unsigned ms) {
    const struct timeval tick = {0, 5000};
    struct event *e = event_new(loop_base(l), -1, EV_PERSIST, on_tick_only, NULL);
    uint64_t end = clock_mono() + (uint64_t)ms * 1000000;
    event_add(e, &tick);
    while (!*done && clock_mono() < end)
        if (loop_turn(l) != 0)
            break;
    event_free(e);
    return *done;
}

static inline void turn_for(struct loop *l, unsigned ms) {
    bool never = false;
    (void)turn_until(l, &never, ms);
}

#endif

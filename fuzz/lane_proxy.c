/*
 * Messages from egress against proxy's table of them, while clients wait in every state that a
 * message can reach. Proxy believes egress, but may not crash. Input: type, id, two bytes of length,
 * body, and so on.
 */
#include "base/log.h"
#include "egress/lane_messages.h"
#include "proxy/proxy.h"
#include "proxy/state.h"

#include <stdlib.h>
#include <string.h>
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

static void turns(int n) {
    const struct timeval now = {0, 0};
    while (n-- > 0) {
        event_add(tick, &now);
        if (loop_turn(loop) != 0)
            abort();
    }
}

#define HOST "Host: api.test\r\n"
static const char *const clients[] = {
    "CONNECT api.test:443 HTTP/1.1\r\n" HOST "\r\n", /* tunnel 1 */
    "CONNECT api.test:443 HTTP/1.1\r\n" HOST "\r\n"  /* tunnel 2, with bytes behind */
    "GET / HTTP/1.1\r\n" HOST "\r\n",
    "GET http://api.test/ HTTP/1.1\r\n" HOST "\r\n",                         /* exchange 1 */
    "GET http://api.test/ HTTP/1.0\r\n\r\n",                                 /* exchange 2 */
    "HEAD http://api.test/ HTTP/1.1\r\n" HOST "\r\n",                        /* exchange 3 */
    "POST http://api.test/ HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nab", /* exchange 4 */
    "POST http://api.test/ HTTP/1.1\r\n" HOST
    "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", /* exchange 5 */
    "nonsense\r\n\r\n",                                  /* exchange 6 */
};
/* A ClientHello of TLS 1.2 without extensions, in tunnel 3, which egress may splice. */
static const uint8_t hello[] = "\x16\x03\x01\0\x2d\x01\0\0\x29\x03\x03"
                               "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"
                               "\0\0\x02\x13\x01\x01";
enum { SCRIPTS = sizeof clients / sizeof *clients, CLIENTS = SCRIPTS + 1 };

static void start_client(size_t i, int fd) {
    const char *text = clients[i % SCRIPTS];
    if (write(fd, text, strlen(text)) < 0 ||
        (i == SCRIPTS && write(fd, hello, sizeof hello) < 0)) /* its last byte is the NUL */
        abort();
}

static void say(int lane, struct view *input) {
    struct reader r = reader_of(*input);
    uint8_t type = read_u8(&r), id = read_u8(&r);
    uint16_t n = read_u16(&r);
    struct view body = view_head(r.rest, n);
    struct buf b;
    buf_init(&b, 70000);
    buf_put_u32(&b, (uint32_t)body.n);
    buf_put_u16(&b, type);
    buf_put_u16(&b, 0);
    buf_put_u32(&b, id);
    buf_put_u32(&b, 1);
    buf_put(&b, body);
    *input = view_skip(r.rest, n);
    struct view v = buf_view(&b);
    if (!r.bad && write(lane, v.p, v.n) < 0)
        input->n = 0;
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct limits limits;
    int lane[2], fds[CLIENTS][2];
    char sink[65536];
    if (!loop) {
        log_open("fuzz", LOG_FATAL);
        loop = loop_new();
        server = tls_server_new();
        tick = event_new(loop_base(loop), -1, 0, on_tick, NULL);
    }
    limits_default(&limits);
    if (channel_pair(lane) != 0)
        abort();
    struct proxy *p = proxy_new(loop, server, lane[0], NULL, 0, &limits);
    if (!p)
        abort();
    for (size_t i = 0; i < CLIENTS; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds[i]) != 0)
            abort();
        start_client(i, fds[i][1]);
        proxy_take(p, fds[i][0], WAY_EXPLICIT, "127.0.0.1:1", "");
        turns(1);
    }
    for (struct view input = view_of(data, size); input.n > 0 && !p->lost;) {
        say(lane[1], &input);
        turns(1);
        for (size_t i = 0; i < CLIENTS; i++)
            while (read(fds[i][1], sink, sizeof sink) > 0)
                continue;
    }
    turns(2);
    proxy_free(p);
    for (size_t i = 0; i < CLIENTS; i++)
        close(fds[i][1]);
    close(lane[1]);
    /* A lost lane stops the loop, which the next input needs. */
    event_free(tick);
    loop_free(loop);
    loop = NULL;
    tls_server_free(server);
    return 0;
}

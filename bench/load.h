/*
 * Benchmark load generator: HTTP/1.1 clients on one epoll thread, directly, through an HTTP CONNECT
 * proxy, or through a plain HTTP proxy. Every answer is checked; the result is one line of JSON.
 *
 * load.c has the options and the loops that hand out work, load_step.c what a connection does, and
 * load_result.c what is counted and printed.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "body.h"

enum mode { KEEPALIVE, HANDSHAKE, BULK, IDLE, SSE, MODES };
enum via { DIRECT, CONNECT, HTTP, VIAS };

struct options {
    enum mode mode;
    enum via via;
    int port, hosts, conns, tls_only, refusal, rounds;
    const char *host, *ca, *path, *auth, *expect;
    char name[128], target_port[8];
    uint64_t upload, requests, warmup;
    double seconds, rate;
    int64_t want_len;
    bool resume;
};

enum why {
    E_CONNECT,
    E_PROXY,
    E_TLS,
    E_VERIFY,
    E_CLOSED,
    E_HTTP,
    E_STATUS,
    E_LENGTH,
    E_BODY,
    E_AUTH,
    E_TIMEOUT,
    E_KINDS
};

enum state { DEAD, CONNECTING, TUNNEL, TLS, FREE, SENDING, HEAD, BODY };

struct conn {
    struct io io;
    enum state st;
    bool keep, bad_body, counted;
    int host, status;
    uint32_t armed;
    uint64_t served; /* requests completed on this connection */
    struct buf in, out, text;
    struct body body;
    uint64_t up_left, up_off;
    uint64_t t_due, t_open, t_tls, t_sent;
};

struct samples {
    uint64_t *v;
    size_t n, cap;
};

struct totals {
    uint64_t issued, finished, good, bytes, conns, tls, resumed, reopened;
    uint64_t errors[E_KINDS];
    uint64_t began, measured, last; /* nanoseconds */
    char first_error[256], proto[64];
    struct samples latency, handshake, first_byte;
};

extern struct options o;
extern struct totals total;
extern const char *const mode_names[MODES];

/* ---- load.c ---- */
extern int ep;
extern struct conn *conns, **spare; /* all; those without work (open loop) */
extern int n_spare;
extern bool draining; /* idle mode: the second round */
/* Whether one more request is to be made. */
bool more(void);
/* Requests under way. */
uint64_t busy(void);

/* ---- load_step.c ---- */
void steps_init(void);
/* Starts a request, on a new connection if need be. False when that failed. */
bool begin(struct conn *c, uint64_t due);
/* Goes on as far as possible. */
void run(struct conn *c);

/* ---- load_result.c ---- */
void sample(struct samples *s, uint64_t ns);
void note(enum why w, const char *detail);
void print_report(void);

#endif

/*
 * Benchmark origin: HTTP/1.1 over TLS (and over plain TCP on a second port),
 * on 127.0.0.1 only.
 *
 *   GET  /json           200 bytes of JSON
 *   ANY  /echo           200 bytes of JSON holding the Authorization header
 *   GET  /bytes/N        N bytes of the shared pattern
 *   POST /sink           reads a body, answers how much came and whether it matched
 *   GET  /sse/N/MS       N events, one each MS milliseconds, stamped with CLOCK_MONOTONIC
 *   GET  /stats          counters: connections, full and resumed handshakes, requests
 */
#include "body.h"

#include <pthread.h>
#include <stdatomic.h>

#define SMALL 200

struct conn {
    struct io io;
    bool tls, open, close_after, in_body, body_bad, expect;
    uint32_t armed;
    struct buf in, out;
    struct body body;
    uint64_t gen_left, gen_off; /* generated response body still to send */
    unsigned sse_left, sse_seq;
    uint64_t sse_due, sse_every;
    struct conn *prev, *next; /* list of live event streams */
};

struct worker {
    int ep, listen_tls, listen_plain;
    struct conn *streams;
    pthread_t tid;
};

static SSL_CTX *ctx;
static atomic_ulong n_conns, n_full, n_resumed, n_requests, n_authorized;
static const char *authorization; /* requests with this one are counted */

static void stream_unlink(struct worker *w, struct conn *c) {
    if (c->sse_every == 0)
        return;
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        w->streams = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    c->prev = c->next = NULL;
    c->sse_every = 0;
}

static void conn_free(struct worker *w, struct conn *c) {
    stream_unlink(w, c);
    io_close(&c->io);
    buf_free(&c->in);
    buf_free(&c->out);
    free(c);
}

static void conn_arm(struct worker *w, struct conn *c, uint32_t ev) {
    struct epoll_event e = {.events = ev, .data.ptr = c};

    if (c->armed == ev)
        return;
    epoll_ctl(w->ep, c->armed != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->io.fd, &e);
    c->armed = ev;
}

static void respond(struct conn *c, const char *status, const char *type, const char *body,
                    size_t n) {
    buf_printf(&c->out, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n", status,
               type, n, c->close_after ? "Connection: close\r\n" : "");
    buf_add(&c->out, body, n);
}

/* JSON of exactly SMALL bytes (more only if the value itself is longer). */
static void respond_small(struct conn *c, const char *key, const char *val, size_t vlen) {
    char body[1024];
    int n;

    if (vlen > 700)
        vlen = 700;
    n = snprintf(body, sizeof body, "{\"%s\":\"%.*s\",\"pad\":\"", key, (int)vlen, val);
    while (n < SMALL - 2)
        body[n++] = 'x';
    body[n++] = '"';
    body[n++] = '}';
    respond(c, "200 OK", "application/json", body, (size_t)n);
}

static void stream_event(struct conn *c) {
    char ev[96];
    int n = snprintf(ev, sizeof ev, "id: %u\ndata: %llu\n\n", c->sse_seq++,
                     (unsigned long long)now_ns(CLOCK_MONOTONIC));

    buf_printf(&c->out, "%x\r\n%s\r\n", (unsigned)n, ev);
    if (--c->sse_left == 0)
        buf_add(&c->out, "0\r\n\r\n", 5);
}

static void stream_start(struct worker *w, struct conn *c, unsigned n, unsigned ms) {
    buf_printf(&c->out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                        "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n");
    c->sse_left = n > 0 ? n : 1;
    c->sse_seq = 0;
    stream_event(c);
    if (c->sse_left == 0)
        return;
    c->sse_every = (uint64_t)(ms > 0 ? ms : 1) * 1000000u;
    c->sse_due = now_ns(CLOCK_MONOTONIC) + c->sse_every;
    c->next = w->streams;
    c->prev = NULL;
    if (w->streams != NULL)
        w->streams->prev = c;
    w->streams = c;
}

static void sink_data(void *arg, const char *p, size_t n) {
    struct conn *c = arg;

    if (!pattern_same(c->body.got, p, n))
        c->body_bad = true;
}

static void sink_answer(struct conn *c) {
    char tmp[96];
    int n = snprintf(tmp, sizeof tmp, "{\"received\":%llu,\"bad\":%d}",
                     (unsigned long long)c->body.got, c->body_bad);

    c->in_body = false;
    respond(c, "200 OK", "application/json", tmp, (size_t)n);
}

/* One complete request head is in c->in; act on it. */
static void request(struct worker *w, struct conn *c, const char *head, size_t len) {
    char path[256] = "";
    unsigned long long n;
    unsigned a, b;
    size_t vlen = 0;
    const char *v;

    atomic_fetch_add(&n_requests, 1);
    v = head_get(head, len, "Authorization", &vlen);
    if (v != NULL && authorization != NULL && vlen == strlen(authorization) &&
        memcmp(v, authorization, vlen) == 0)
        atomic_fetch_add(&n_authorized, 1);
    sscanf(head, "%*15s %255s", path);
    if (strncmp(path, "http://", 7) == 0) {
        char *slash = strchr(path + 7, '/');

        memmove(path, slash != NULL ? slash : "/", slash != NULL ? strlen(slash) + 1 : 2);
    }
    c->close_after = head_has(head, len, "Connection", "close");
    body_init(&c->body, head, len, false);
    c->body_bad = false;
    c->in_body = !c->body.done;
    if (c->in_body && head_has(head, len, "Expect", "100-continue"))
        buf_printf(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");

    if (strcmp(path, "/sink") == 0) {
        if (!c->in_body)
            sink_answer(c);
    } else if (strcmp(path, "/echo") == 0) {
        respond_small(c, "authorization", v != NULL ? v : "", vlen);
    } else if (strcmp(path, "/json") == 0) {
        respond_small(c, "status", "ok", 2);
    } else if (sscanf(path, "/bytes/%llu", &n) == 1) {
        buf_printf(&c->out,
                   "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
                   "Content-Length: %llu\r\n%s\r\n",
                   n, c->close_after ? "Connection: close\r\n" : "");
        c->gen_left = n;
        c->gen_off = 0;
    } else if (sscanf(path, "/sse/%u/%u", &a, &b) == 2) {
        stream_start(w, c, a, b);
    } else if (strcmp(path, "/stats") == 0) {
        char tmp[200];
        int k = snprintf(tmp, sizeof tmp,
                         "{\"connections\":%lu,\"full\":%lu,\"resumed\":%lu,\"requests\":%lu,"
                         "\"authorized\":%lu}",
                         atomic_load(&n_conns), atomic_load(&n_full), atomic_load(&n_resumed),
                         atomic_load(&n_requests), atomic_load(&n_authorized));

        respond(c, "200 OK", "application/json", tmp, (size_t)k);
    } else {
        respond(c, "404 Not Found", "text/plain", "no such path\n", 13);
    }
}

/* Use buffered input. True when something was done, false when more is needed. */
static bool consume(struct worker *w, struct conn *c) {
    char *p = buf_head(&c->in), *end;
    size_t n = buf_size(&c->in);

    if (n == 0)
        return false;
    if (c->in_body) {
        ssize_t used = body_feed(&c->body, p, n, sink_data, c);

        if (used < 0) {
            c->close_after = true;
            respond(c, "400 Bad Request", "text/plain", "bad framing\n", 12);
            c->in_body = false;
            c->in.off = c->in.len;
            return true;
        }
        c->in.off += (size_t)used;
        if (c->body.done)
            sink_answer(c);
        return true;
    }
    end = memmem(p, n, "\r\n\r\n", 4);
    if (end == NULL)
        return false;
    c->in.off += (size_t)(end - p) + 4;
    request(w, c, p, (size_t)(end - p) + 2);
    return true;
}

/* Bytes left to send after trying: 0 all sent, 1 blocked, -1 gone. */
static int flush_out(struct conn *c) {
    ssize_t r;

    while (buf_size(&c->out) > 0) {
        r = io_write(&c->io, buf_head(&c->out), buf_size(&c->out));
        if (r <= 0)
            return r == IO_AGAIN ? 1 : -1;
        c->out.off += (size_t)r;
    }
    while (c->gen_left > 0) {
        size_t at = c->gen_off % PATTERN;
        size_t k = PATTERN - at < c->gen_left ? PATTERN - at : (size_t)c->gen_left;

        r = io_write(&c->io, pattern + at, k);
        if (r <= 0)
            return r == IO_AGAIN ? 1 : -1;
        c->gen_off += (size_t)r;
        c->gen_left -= (uint64_t)r;
    }
    return 0;
}

static void conn_run(struct worker *w, struct conn *c) {
    bool drained = false; /* read once: a further read could only say EAGAIN */

    if (!c->open) {
        int rc;

        ERR_clear_error();
        rc = SSL_do_handshake(c->io.ssl);
        if (rc != 1) {
            if (io_result(&c->io, rc) == IO_CLOSED)
                conn_free(w, c);
            else
                conn_arm(w, c, c->io.want);
            return;
        }
        c->open = true;
        atomic_fetch_add(SSL_session_reused(c->io.ssl) ? &n_resumed : &n_full, 1);
    }
    for (;;) {
        ssize_t r = flush_out(c);

        if (r < 0) {
            conn_free(w, c);
            return;
        }
        if (r > 0) {
            conn_arm(w, c, c->io.want);
            return;
        }
        if (c->sse_every != 0 && c->sse_left == 0)
            stream_unlink(w, c);
        if (c->close_after && !c->in_body && c->sse_every == 0) {
            if (c->tls)
                SSL_shutdown(c->io.ssl);
            conn_free(w, c);
            return;
        }
        if (c->sse_every == 0 && consume(w, c))
            continue;
        if (drained && !io_pending(&c->io)) {
            c->io.want = EPOLLIN;
            r = IO_AGAIN;
        } else {
            buf_room(&c->in, 16384);
            r = io_read(&c->io, c->in.p + c->in.len, c->in.cap - c->in.len);
            drained = true;
        }
        if (r == IO_CLOSED) {
            conn_free(w, c);
            return;
        }
        if (r == IO_AGAIN) {
            if (buf_size(&c->in) == 0)
                buf_free(&c->in);
            buf_free(&c->out);
            conn_arm(w, c, c->io.want);
            return;
        }
        c->in.len += (size_t)r;
    }
}

static void accept_all(struct worker *w, int lfd, bool tls) {
    for (int i = 0; i < 64; i++) {
        int fd = accept4(lfd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct conn *c;

        if (fd < 0)
            return;
        sock_tune(fd);
        c = calloc(1, sizeof *c);
        if (c == NULL)
            die("out of memory");
        c->io.fd = fd;
        c->tls = tls;
        c->open = !tls;
        if (tls) {
            c->io.ssl = SSL_new(ctx);
            SSL_set_fd(c->io.ssl, fd);
            SSL_set_accept_state(c->io.ssl);
        }
        atomic_fetch_add(&n_conns, 1);
        conn_run(w, c);
    }
}

static int streams_due(struct worker *w) {
    uint64_t now = now_ns(CLOCK_MONOTONIC), next = UINT64_MAX;
    struct conn *c = w->streams, *following;

    for (; c != NULL; c = following) {
        following = c->next;
        if (c->sse_due <= now && c->sse_left > 0) {
            stream_event(c);
            c->sse_due += c->sse_every;
            conn_run(w, c);
        }
    }
    for (c = w->streams; c != NULL; c = c->next)
        if (c->sse_due < next)
            next = c->sse_due;
    if (next == UINT64_MAX)
        return -1;
    now = now_ns(CLOCK_MONOTONIC);
    return next <= now ? 0 : (int)((next - now) / 1000000u) + 1;
}

static void *worker_main(void *arg) {
    struct worker *w = arg;
    struct epoll_event ev[256];

    for (;;) {
        int n = epoll_wait(w->ep, ev, 256, streams_due(w));

        for (int i = 0; i < n; i++) {
            if (ev[i].data.ptr == &w->listen_tls)
                accept_all(w, w->listen_tls, true);
            else if (ev[i].data.ptr == &w->listen_plain)
                accept_all(w, w->listen_plain, false);
            else
                conn_run(w, ev[i].data.ptr);
        }
    }
    return NULL;
}

static void worker_start(struct worker *w, uint16_t tls, uint16_t plain) {
    struct epoll_event e = {.events = EPOLLIN};

    w->ep = epoll_create1(EPOLL_CLOEXEC);
    w->listen_tls = sock_listen(tls, 4096);
    w->listen_plain = sock_listen(plain, 4096);
    e.data.ptr = &w->listen_tls;
    epoll_ctl(w->ep, EPOLL_CTL_ADD, w->listen_tls, &e);
    e.data.ptr = &w->listen_plain;
    epoll_ctl(w->ep, EPOLL_CTL_ADD, w->listen_plain, &e);
    if (pthread_create(&w->tid, NULL, worker_main, w) != 0)
        die("cannot start a thread");
}

int main(int argc, char **argv) {
    static const unsigned char sid[] = "bench-origin";
    int threads = 1, opt;
    uint16_t tls = 8443, plain = 8080;
    const char *cert = NULL, *key = NULL;
    struct worker *w;

    while ((opt = getopt(argc, argv, "s:p:c:k:t:A:")) != -1) {
        switch (opt) {
        case 's':
            tls = (uint16_t)atoi(optarg);
            break;
        case 'p':
            plain = (uint16_t)atoi(optarg);
            break;
        case 'c':
            cert = optarg;
            break;
        case 'k':
            key = optarg;
            break;
        case 'A':
            authorization = optarg;
            break;
        case 't':
            threads = atoi(optarg);
            break;
        default:
            die("usage: origin -s TLSPORT -p PLAINPORT -c CHAIN -k KEY [-A AUTHORIZATION] [-t "
                "THREADS]");
        }
    }
    if (cert == NULL || key == NULL || threads < 1)
        die("usage: origin -s TLSPORT -p PLAINPORT -c CHAIN -k KEY [-A AUTHORIZATION] [-t "
            "THREADS]");
    process_init();
    pattern_init();
    ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL || SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        die("cannot load the origin's certificate or key");
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_session_id_context(ctx, sid, sizeof sid - 1);
    w = calloc((size_t)threads, sizeof *w);
    for (int i = 0; i < threads; i++)
        worker_start(&w[i], tls, plain);
    printf("ready\n");
    fflush(stdout);
    for (int i = 0; i < threads; i++)
        pthread_join(w[i].tid, NULL);
    return 0;
}

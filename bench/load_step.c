#include "load.h"

#include <openssl/x509v3.h>

static SSL_CTX *ctx;
static SSL_SESSION **sessions; /* by host */
static int ex_host;
static uint64_t next_host;

static void arm(struct conn *c, uint32_t ev) {
    struct epoll_event e = {.events = ev, .data.ptr = c};

    if (c->armed == ev)
        return;
    epoll_ctl(ep, c->armed != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->io.fd, &e);
    c->armed = ev;
}

static void shut(struct conn *c) {
    io_close(&c->io);
    buf_free(&c->in);
    buf_free(&c->out);
    buf_free(&c->text);
    c->armed = 0;
    c->st = DEAD;
}

static bool open_conn(struct conn *c);
static bool next(struct conn *c);

static void host_name(const struct conn *c, char *out, size_t n) {
    const char *mark = strstr(o.name, "%d");

    if (mark == NULL)
        snprintf(out, n, "%s", o.name);
    else
        snprintf(out, n, "%.*s%d%s", (int)(mark - o.name), o.name, c->host, mark + 2);
}

/* ---- the end of a request ---- */

static void finish(struct conn *c, bool ok) {
    uint64_t now = now_ns(CLOCK_MONOTONIC);

    total.finished++;
    if (ok && c->counted) {
        total.good++;
        if (o.mode != SSE)
            sample(&total.latency, now - c->t_due);
    }
    total.last = now;
    if (total.finished == o.warmup)
        total.measured = now;
}

/* Like done() and next(): true when the connection can run on at once. */
static bool fail(struct conn *c, enum why w, const char *detail) {
    note(w, detail);
    shut(c);
    finish(c, false);
    return next(c);
}

static bool done(struct conn *c) {
    static char want[256];
    bool ok = false;

    if (c->status != 200) {
        char text[128];

        snprintf(text, sizeof text, "%d %.100s", c->status, c->text.p != NULL ? c->text.p : "");
        note(E_STATUS, text);
    } else if (o.want_len >= 0 && c->body.got != (uint64_t)o.want_len) {
        char text[64];

        snprintf(text, sizeof text, "got %llu bytes", (unsigned long long)c->body.got);
        note(E_LENGTH, text);
    } else if (c->bad_body) {
        note(E_BODY, "differs from the pattern");
    } else if (o.upload > 0) {
        snprintf(want, sizeof want, "{\"received\":%llu,\"bad\":0}", (unsigned long long)o.upload);
        ok = c->text.len == strlen(want) && memcmp(c->text.p, want, c->text.len) == 0;
        if (!ok)
            note(E_BODY, "the upload did not arrive whole");
    } else if (o.expect != NULL) {
        int n = snprintf(want, sizeof want, "{\"authorization\":\"%s\",", o.expect);

        ok = c->text.len > (size_t)n && memcmp(c->text.p, want, (size_t)n) == 0;
        if (!ok) {
            char text[128];

            snprintf(text, sizeof text, "%.*s", (int)(c->text.len < 100 ? c->text.len : 100),
                     c->text.p);
            note(E_AUTH, text);
        }
    } else {
        ok = true;
    }
    if (c->counted)
        total.bytes += o.upload > 0 ? o.upload : c->body.got;
    c->served++;
    finish(c, ok);
    if (!c->keep || o.mode == HANDSHAKE)
        shut(c);
    else
        c->st = FREE;
    return next(c);
}

/* ---- handing out work ---- */

bool begin(struct conn *c, uint64_t due) {
    c->t_due = due;
    c->counted = ++total.issued > o.warmup;
    if (c->st == FREE) {
        c->st = SENDING;
        return true;
    }
    if (open_conn(c))
        return true;
    note(E_CONNECT, strerror(errno));
    shut(c);
    finish(c, false);
    return false;
}

/* The connection has nothing to do: give it a request, or set it aside. */
static bool next(struct conn *c) {
    while (o.rate == 0 && more())
        if (begin(c, now_ns(CLOCK_MONOTONIC)))
            return true;
    if (o.rate > 0)
        spare[n_spare++] = c;
    if (c->st == FREE)
        arm(c, EPOLLIN);
    return false;
}

/* ---- connection set-up ---- */

static int on_session(SSL *ssl, SSL_SESSION *s) {
    intptr_t host = (intptr_t)SSL_get_ex_data(ssl, ex_host);

    if (sessions == NULL)
        return 0;
    SSL_SESSION_free(sessions[host]);
    sessions[host] = s;
    return 1;
}

static void start_tls(struct conn *c) {
    char name[160];

    host_name(c, name, sizeof name);
    c->io.ssl = SSL_new(ctx);
    if (c->io.ssl == NULL)
        die("SSL_new");
    SSL_set_fd(c->io.ssl, c->io.fd);
    SSL_set_connect_state(c->io.ssl);
    SSL_set_tlsext_host_name(c->io.ssl, name);
    SSL_set1_host(c->io.ssl, name);
    SSL_set_ex_data(c->io.ssl, ex_host, (void *)(intptr_t)c->host);
    if (o.resume && sessions[c->host] != NULL)
        SSL_set_session(c->io.ssl, sessions[c->host]);
    c->t_tls = now_ns(CLOCK_MONOTONIC);
    c->st = TLS;
}

static bool open_conn(struct conn *c) {
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o.port)};

    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->host = (int)(next_host++ % (uint64_t)o.hosts);
    if (c->served > 0 && o.mode != HANDSHAKE)
        total.reopened++;
    c->served = 0;
    total.conns++;
    c->t_open = now_ns(CLOCK_MONOTONIC);
    c->io.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->io.fd < 0)
        die("socket: %s", strerror(errno));
    sock_tune(c->io.fd);
    c->st = CONNECTING;
    return connect(c->io.fd, (struct sockaddr *)&sa, sizeof sa) == 0 || errno == EINPROGRESS;
}

/* Blocked: wait for what the last call wanted. */
static bool wait_io(struct conn *c) {
    arm(c, c->io.want);
    return false;
}

static bool step_connecting(struct conn *c) {
    struct sockaddr_in peer;
    int err = 0;
    socklen_t n = sizeof err, pn = sizeof peer;
    char name[160];

    getsockopt(c->io.fd, SOL_SOCKET, SO_ERROR, &err, &n);
    if (err != 0)
        return fail(c, E_CONNECT, strerror(err));
    if (getpeername(c->io.fd, (struct sockaddr *)&peer, &pn) < 0) {
        arm(c, EPOLLOUT);
        return false;
    }
    if (o.via == CONNECT && o.ca != NULL) {
        host_name(c, name, sizeof name);
        buf_printf(&c->out, "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", name, o.target_port,
                   name, o.target_port);
        c->st = TUNNEL;
    } else if (o.ca != NULL) {
        start_tls(c);
    } else {
        c->st = SENDING;
    }
    return true;
}

static bool step_tunnel(struct conn *c) {
    ssize_t r;
    char *end;

    while (buf_size(&c->out) > 0) {
        r = io_write(&c->io, buf_head(&c->out), buf_size(&c->out));
        if (r == IO_CLOSED) {
            return fail(c, E_PROXY, "closed");
        }
        if (r == IO_AGAIN) {
            return wait_io(c);
        }
        c->out.off += (size_t)r;
    }
    buf_room(&c->in, 4096);
    r = io_read(&c->io, c->in.p + c->in.len, c->in.cap - c->in.len);
    if (r == IO_AGAIN) {
        return wait_io(c);
    }
    if (r == IO_CLOSED) {
        return fail(c, E_PROXY, "closed");
    }
    c->in.len += (size_t)r;
    end = memmem(c->in.p, c->in.len, "\r\n\r\n", 4);
    if (end == NULL)
        return true;
    *end = '\0';
    if (o.refusal > 0 && strncmp(c->in.p, "HTTP/1.", 7) == 0 && atoi(c->in.p + 9) == o.refusal) {
        shut(c);
        finish(c, true);
        return next(c);
    }
    if (o.refusal > 0 || strncmp(c->in.p, "HTTP/1.", 7) != 0 ||
        strncmp(c->in.p + 9, "200", 3) != 0) {
        c->in.p[strcspn(c->in.p, "\r\n")] = '\0';
        return fail(c, E_PROXY, c->in.p);
    }
    c->in.off = c->in.len = 0; /* a server never speaks first in TLS */
    start_tls(c);
    return true;
}

static bool step_tls(struct conn *c) {
    int rc;
    uint64_t now;

    ERR_clear_error();
    rc = SSL_do_handshake(c->io.ssl);
    if (rc != 1) {
        long v = SSL_get_verify_result(c->io.ssl);

        if (io_result(&c->io, rc) == IO_AGAIN) {
            return wait_io(c);
        }
        if (v != X509_V_OK)
            return fail(c, E_VERIFY, X509_verify_cert_error_string(v));
        return fail(c, E_TLS,
                    ERR_peek_error() != 0 ? ERR_reason_error_string(ERR_peek_error()) : "closed");
    }
    now = now_ns(CLOCK_MONOTONIC);
    if (c->counted) {
        total.tls++;
        total.resumed += (unsigned)SSL_session_reused(c->io.ssl);
        sample(&total.handshake, now - c->t_tls);
    }
    if (total.proto[0] == '\0')
        snprintf(total.proto, sizeof total.proto, "%s %s", SSL_get_version(c->io.ssl),
                 SSL_get_cipher_name(c->io.ssl));
    c->st = SENDING;
    return true;
}

/* ---- request and response ---- */

static void build_request(struct conn *c) {
    char name[160];

    host_name(c, name, sizeof name);
    buf_printf(&c->out, "%s ", o.upload > 0 ? "POST" : "GET");
    if (o.via == HTTP)
        buf_printf(&c->out, "http://%s:%s", name, o.target_port);
    buf_printf(&c->out, "%s HTTP/1.1\r\nHost: %s:%s\r\nUser-Agent: bench\r\nAccept: */*\r\n",
               o.path, name, o.target_port);
    if (o.auth != NULL)
        buf_printf(&c->out, "Authorization: %s\r\n", o.auth);
    if (o.upload > 0)
        buf_printf(&c->out, "Content-Type: application/octet-stream\r\nContent-Length: %llu\r\n",
                   (unsigned long long)o.upload);
    buf_add(&c->out, "\r\n", 2);
    c->up_left = o.upload;
    c->up_off = 0;
}

static bool step_sending(struct conn *c) {
    if (buf_size(&c->out) == 0 && c->up_left == 0)
        build_request(c);
    while (buf_size(&c->out) > 0 || c->up_left > 0) {
        bool head = buf_size(&c->out) > 0;
        size_t at = c->up_off % PATTERN;
        size_t k = PATTERN - at < c->up_left ? PATTERN - at : (size_t)c->up_left;
        ssize_t r = head ? io_write(&c->io, buf_head(&c->out), buf_size(&c->out))
                         : io_write(&c->io, pattern + at, k);

        if (r == IO_CLOSED) {
            return fail(c, E_CLOSED, "while sending");
        }
        if (r == IO_AGAIN) {
            return wait_io(c);
        }
        if (head) {
            c->out.off += (size_t)r;
        } else {
            c->up_off += (uint64_t)r;
            c->up_left -= (uint64_t)r;
        }
    }
    c->out.off = c->out.len = 0;
    c->text.off = c->text.len = 0;
    c->bad_body = false;
    c->t_sent = now_ns(CLOCK_MONOTONIC);
    c->st = HEAD;
    c->io.want = EPOLLIN;
    return io_pending(&c->io) ? true : wait_io(c);
}

static void on_body(void *arg, const char *p, size_t n) {
    struct conn *c = arg;

    if (o.mode == BULK && o.upload == 0) {
        if (!pattern_same(c->body.got, p, n))
            c->bad_body = true;
        return;
    }
    if (c->text.len + n < 1u << 20)
        buf_add(&c->text, p, n);
    if (o.mode == SSE) {
        uint64_t now = now_ns(CLOCK_MONOTONIC);
        char *end;

        while ((end = memmem(buf_head(&c->text), buf_size(&c->text), "\n\n", 2)) != NULL) {
            char *data =
                memmem(buf_head(&c->text), (size_t)(end - buf_head(&c->text)), "data: ", 6);

            if (data == NULL)
                c->bad_body = true;
            else if (c->counted)
                sample(&total.latency, now - strtoull(data + 6, NULL, 10));
            c->text.off = (size_t)(end + 2 - c->text.p);
        }
        buf_room(&c->text, 1);
    }
}

/* True when the response is complete. */
static bool parse(struct conn *c) {
    while (buf_size(&c->in) > 0 || c->st == BODY) {
        char *p = buf_head(&c->in);
        size_t n = buf_size(&c->in);

        if (c->st == HEAD) {
            char *end = memmem(p, n, "\r\n\r\n", 4);
            size_t len;

            if (end == NULL)
                return false;
            len = (size_t)(end - p) + 2;
            c->in.off += len + 2;
            c->status = strncmp(p, "HTTP/1.", 7) == 0 ? atoi(p + 9) : 0;
            if (c->status >= 100 && c->status < 200)
                continue;
            body_init(&c->body, p, len, true);
            if (c->status == 204 || c->status == 304)
                c->body.done = true;
            c->keep = !head_has(p, len, "Connection", "close") && c->body.kind != BODY_EOF;
            c->st = BODY;
            if (o.mode == SSE && c->counted)
                sample(&total.first_byte, now_ns(CLOCK_MONOTONIC) - c->t_sent);
        } else {
            ssize_t used;

            if (c->body.done)
                return true;
            if (n == 0)
                return false;
            used = body_feed(&c->body, p, n, on_body, c);
            if (used < 0) {
                c->status = -1;
                return true;
            }
            c->in.off += (size_t)used;
        }
    }
    return false;
}

static bool step_receiving(struct conn *c) {
    ssize_t r;

    buf_room(&c->in, o.mode == BULK ? 65536 : 4096);
    r = io_read(&c->io, c->in.p + c->in.len, c->in.cap - c->in.len);
    if (r == IO_AGAIN) {
        return wait_io(c);
    }
    if (r == IO_CLOSED) {
        if (c->st == BODY && c->body.kind == BODY_EOF)
            return done(c);
        return fail(c, E_CLOSED, c->st == HEAD ? "before the response" : "inside the body");
    }
    c->in.len += (size_t)r;
    if (parse(c)) {
        return c->status <= 0 ? fail(c, E_HTTP, "malformed response") : done(c);
    }
    c->io.want = EPOLLIN;
    return io_pending(&c->io) || c->in.len == c->in.cap ? true : wait_io(c);
}

/* Nothing is due on an unused connection but session tickets or its end. */
static bool step_free(struct conn *c) {
    char tmp[512];
    ssize_t r = io_read(&c->io, tmp, sizeof tmp);

    if (r == IO_AGAIN) {
        arm(c, EPOLLIN);
    } else {
        if (o.mode == IDLE && !draining)
            note(E_CLOSED, "while idle");
        shut(c);
    }
    return false;
}

void run(struct conn *c) {
    bool on = true;

    while (on) {
        switch (c->st) {
        case CONNECTING:
            on = step_connecting(c);
            break;
        case TUNNEL:
            on = step_tunnel(c);
            break;
        case TLS:
            on = step_tls(c);
            break;
        case SENDING:
            on = step_sending(c);
            break;
        case HEAD:
        case BODY:
            on = step_receiving(c);
            break;
        case FREE:
            on = step_free(c);
            break;
        default:
            on = false;
        }
    }
}

void steps_init(void) {
    if (o.ca == NULL)
        return;
    ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL || SSL_CTX_load_verify_file(ctx, o.ca) != 1)
        die("cannot load the CA file %s", o.ca);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    if (o.tls_only != 0) {
        SSL_CTX_set_min_proto_version(ctx, o.tls_only == 2 ? TLS1_2_VERSION : TLS1_3_VERSION);
        SSL_CTX_set_max_proto_version(ctx, o.tls_only == 2 ? TLS1_2_VERSION : TLS1_3_VERSION);
    }
    ex_host = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    if (o.resume)
        sessions = calloc((size_t)o.hosts, sizeof *sessions);
}

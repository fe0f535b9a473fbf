#include "egress/connect.h"

#include "egress/hop.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STAGGER_MS = 250, KEEP_IDLE_S = 60, KEEP_INTERVAL_S = 15, KEEP_PROBES = 4 };

struct attempt {
    struct connect *connect;
    struct event *writable;
    int fd; /* -1 before the attempt and when it is over */
};

struct connect {
    struct loop *loop;
    struct address addresses[CONNECT_ADDRESSES_MAX];
    struct attempt attempts[CONNECT_ADDRESSES_MAX]; /* one an address */
    size_t n, next, pending;
    uint16_t port;
    bool lacking; /* a descriptor, or memory */
    struct event *stagger, *deadline, *finish, *hop;
    struct buf out, in; /* what is said to the proxy, and its answer */
    struct connected result;
    connect_done *done;
    void *ctx;
};

static struct timeval milliseconds_of(unsigned ms) {
    return (struct timeval){ms / 1000, (long)(ms % 1000) * 1000};
}

/* ---- the end ---- */

static void attempt_end(struct attempt *a, bool close_it) {
    if (a->writable)
        event_free(a->writable);
    a->writable = NULL;
    if (a->fd >= 0 && close_it)
        close(a->fd);
    if (a->fd >= 0)
        a->connect->pending--;
    a->fd = -1;
}

static void connect_free(struct connect *c) {
    struct event *events[] = {c->stagger, c->deadline, c->finish, c->hop};
    for (size_t i = 0; i < c->n; i++)
        attempt_end(&c->attempts[i], true);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i])
            event_free(events[i]);
    buf_free(&c->out);
    buf_free(&c->in);
    free(c);
}

void connect_cancel(struct connect *c) {
    if (!c)
        return;
    if (c->result.fd >= 0)
        close(c->result.fd);
    connect_free(c);
}

static void on_finish(evutil_socket_t fd, short what, void *ctx) {
    struct connect *c = ctx;
    (void)fd;
    (void)what;
    struct connected result = c->result;
    connect_done *done = c->done;
    void *done_ctx = c->ctx;
    connect_free(c);
    done(done_ctx, &result);
}

/*
 * Tells the owner by a timer of zero rather than at once or by loop_defer: by
 * then the loop has been through epoll_ctl, so that the socket has left the
 * set. A descriptor that is passed to another process and closed here while
 * still in the set would wake this loop for as long as the other keeps it.
 */
static void finish(struct connect *c, int result) {
    static const struct timeval at_once = {0, 0};
    for (size_t i = 0; i < c->n; i++)
        attempt_end(&c->attempts[i], true);
    event_del(c->stagger);
    event_del(c->deadline);
    if (c->hop)
        event_free(c->hop);
    c->hop = NULL;
    if (result != 0 && c->result.fd >= 0) {
        close(c->result.fd);
        c->result.fd = -1;
    }
    c->result.result = result;
    evtimer_add(c->finish, &at_once);
}

static void fail(struct connect *c, const char *detail) {
    snprintf(c->result.detail, sizeof c->result.detail, "%s", detail);
    finish(c, ERR_SYSTEM);
}

static void on_deadline(evutil_socket_t fd, short what, void *ctx) {
    struct connect *c = ctx;
    (void)fd;
    (void)what;
    snprintf(c->result.detail, sizeof c->result.detail,
             c->result.fd >= 0 ? "the upstream proxy did not answer in time"
                               : "%zu of %zu addresses tried, none answered in time",
             c->next, c->n);
    finish(c, ERR_TIMEOUT);
}

/* ---- the hop ---- */

static void on_hop_answer(evutil_socket_t fd, short what, void *ctx) {
    struct connect *c = ctx;
    size_t size, had = buf_len(&c->in);
    uint16_t status;
    (void)what;
    uint8_t *p = buf_reserve(&c->in, HOP_HEAD_MAX - had);
    ssize_t n = p ? recv(fd, p, HOP_HEAD_MAX - had, MSG_PEEK) : -1;
    if (p && n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        fail(c, "the upstream proxy closed the connection");
        return;
    }
    buf_commit(&c->in, (size_t)n);
    int result = hop_read(buf_view(&c->in), &size, &status);
    /* What was looked at is taken, but nothing behind the head: that is the upstream's. */
    size_t take = result == 0 ? size - had : (size_t)n;
    if (recv(fd, p, take, 0) != (ssize_t)take) {
        fail(c, "the upstream proxy's answer could not be read");
    } else if (result == 0 && status == 200) {
        finish(c, 0);
    } else if (result == 0) {
        char detail[64];
        snprintf(detail, sizeof detail, "the upstream proxy answered %u", status);
        fail(c, detail);
    } else if (result != ERR_AGAIN) {
        fail(c, "the upstream proxy's answer is malformed");
    }
}

static void on_hop_writable(evutil_socket_t fd, short what, void *ctx) {
    struct connect *c = ctx;
    struct view v = buf_view(&c->out);
    (void)what;
    ssize_t n = send(fd, v.p, v.n, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        fail(c, "the upstream proxy closed the connection");
        return;
    }
    buf_consume(&c->out, (size_t)n);
    if (buf_len(&c->out) > 0)
        return;
    event_free(c->hop);
    c->hop = event_new(loop_base(c->loop), fd, EV_READ | EV_PERSIST, on_hop_answer, c);
    if (!c->hop || event_add(c->hop, NULL) != 0)
        fail(c, "out of memory");
}

static void start_hop(struct connect *c) {
    c->hop = event_new(loop_base(c->loop), c->result.fd, EV_WRITE | EV_PERSIST, on_hop_writable, c);
    if (!c->hop || event_add(c->hop, NULL) != 0)
        fail(c, "out of memory");
}

/* ---- attempts ---- */

static socklen_t fill_sockaddr(const struct address *a, uint16_t port,
                               struct sockaddr_storage *out) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memset(out, 0, sizeof *out);
    if (a->family == 4) {
        memcpy(&in.sin_addr, a->bytes, 4);
        memcpy(out, &in, sizeof in);
        return sizeof in;
    }
    memcpy(&in6.sin6_addr, a->bytes, 16);
    memcpy(out, &in6, sizeof in6);
    return sizeof in6;
}

/* The peer must be the address that was vetted (IP rule: repeated on what connect() was given). */
static bool peer_is(int fd, const struct address *a, uint16_t port) {
    struct sockaddr_storage want, got;
    socklen_t n = fill_sockaddr(a, port, &want), m = sizeof got;
    memset(&got, 0, sizeof got);
    return getpeername(fd, (struct sockaddr *)&got, &m) == 0 && m == n &&
           memcmp(&want, &got, n) == 0;
}

static int set_options(int fd) {
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEP_PROBES},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int)) != 0)
            return ERR_SYSTEM;
    return 0;
}

static bool is_ours(int error) {
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* What we lack is told rather than what the others did. */
static void note_failure(struct connect *c, const struct address *a, int error) {
    char text[48];
    if (c->lacking)
        return;
    c->lacking = is_ours(error);
    if (error == EMFILE || error == ENFILE) {
        snprintf(c->result.detail, sizeof c->result.detail, "no descriptors");
        return;
    }
    address_format(a, text);
    snprintf(c->result.detail, sizeof c->result.detail, "%s: %s", text, strerror(error));
}

static void win(struct connect *c, struct attempt *a) {
    int fd = a->fd;
    c->result.address = c->addresses[a - c->attempts];
    attempt_end(a, false);
    for (size_t i = 0; i < c->n; i++)
        attempt_end(&c->attempts[i], true);
    event_del(c->stagger);
    c->result.fd = fd;
    if (buf_len(&c->out) > 0)
        start_hop(c);
    else
        finish(c, 0);
}

static void on_connected(evutil_socket_t fd, short what, void *ctx);

/* Starts the attempt at c->next. 0, or errno. */
static int attempt_start(struct connect *c) {
    const struct address *to = &c->addresses[c->next];
    struct attempt *a = &c->attempts[c->next++];
    struct sockaddr_storage sa;
    socklen_t n = fill_sockaddr(to, c->port, &sa);
    a->fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (a->fd < 0)
        return errno;
    c->pending++;
    int error = 0;
    if (set_options(a->fd) != 0 ||
        (connect(a->fd, (struct sockaddr *)&sa, n) != 0 && errno != EINPROGRESS))
        error = errno;
    if (error == 0) {
        a->writable = event_new(loop_base(c->loop), a->fd, EV_WRITE, on_connected, a);
        if (!a->writable || event_add(a->writable, NULL) != 0)
            error = ENOMEM;
    }
    if (error != 0)
        attempt_end(a, true);
    return error;
}

static void give_up_oldest(struct connect *c) {
    size_t i = 0;
    while (c->attempts[i].fd < 0)
        i++;
    note_failure(c, &c->addresses[i], ETIMEDOUT);
    attempt_end(&c->attempts[i], true);
}

/* Starts the next attempt that does not fail at once; none left and none pending is the end. */
static void advance(struct connect *c) {
    const struct timeval stagger = milliseconds_of(STAGGER_MS);
    while (c->next < c->n) {
        const struct address *to = &c->addresses[c->next];
        if (c->pending == CONNECT_ATTEMPTS_MAX)
            give_up_oldest(c);
        int error = attempt_start(c);
        if (error == 0) {
            evtimer_add(c->stagger, &stagger);
            return;
        }
        note_failure(c, to, error);
    }
    if (c->pending == 0)
        finish(c, c->lacking ? ERR_MEMORY : ERR_SYSTEM);
}

static void on_connected(evutil_socket_t fd, short what, void *ctx) {
    struct attempt *a = ctx;
    struct connect *c = a->connect;
    const struct address *to = &c->addresses[a - c->attempts];
    int error = 0;
    socklen_t n = sizeof error;
    (void)what;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
        error = errno;
    if (error == 0 && !peer_is(fd, to, c->port))
        error = EADDRNOTAVAIL;
    if (error == 0) {
        win(c, a);
        return;
    }
    note_failure(c, to, error);
    attempt_end(a, true);
    advance(c);
}

static void on_stagger(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    advance(ctx);
}

/* ---- the beginning ---- */

/* Takes turns between the families, IPv6 first (RFC 8305 4). */
static void order_addresses(struct connect *c, const struct address *addresses, size_t n) {
    size_t at[2] = {0, 0}; /* where to look for the next of family 6, and of 4 */
    for (unsigned turn = 0; c->n < CONNECT_ADDRESSES_MAX && (at[0] < n || at[1] < n); turn++) {
        size_t *i = &at[turn % 2];
        uint8_t family = turn % 2 ? 4 : 6;
        while (*i < n && addresses[*i].family != family)
            ++*i;
        if (*i == n)
            continue;
        c->attempts[c->n] = (struct attempt){c, NULL, -1};
        c->addresses[c->n++] = addresses[(*i)++];
    }
}

struct connect *connect_start(struct loop *l, const struct address *addresses, size_t n,
                              uint16_t port, const struct authority *behind_hop,
                              unsigned milliseconds, connect_done *done, void *ctx) {
    const struct timeval deadline = milliseconds_of(milliseconds);
    assert(n > 0);
    struct connect *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->loop = l;
    c->port = port;
    c->done = done;
    c->ctx = ctx;
    c->result.fd = -1;
    buf_init(&c->out, 1024);
    buf_init(&c->in, HOP_HEAD_MAX);
    order_addresses(c, addresses, n);
    c->stagger = evtimer_new(loop_base(l), on_stagger, c);
    c->deadline = evtimer_new(loop_base(l), on_deadline, c);
    c->finish = evtimer_new(loop_base(l), on_finish, c);
    if (behind_hop)
        hop_write(behind_hop, &c->out);
    if (!c->stagger || !c->deadline || !c->finish || !buf_ok(&c->out)) {
        connect_free(c);
        return NULL;
    }
    evtimer_add(c->deadline, &deadline);
    advance(c);
    return c;
}

#include "proxy/door.h"

#include "base/log.h"
#include "proxy/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { AT_ONCE = 16 /* connections accepted for one event */ };

struct door {
    struct proxy *proxy;
    size_t n;
    bool open, paused;
    struct event *events[];
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage space;
};

static void describe(int fd, const union address *a, char *out, size_t size) {
    char text[INET6_ADDRSTRLEN] = "?";
    struct ucred who;
    socklen_t n = sizeof who;
    switch (a->any.sa_family) {
    case AF_INET:
        inet_ntop(AF_INET, &a->v4.sin_addr, text, sizeof text);
        snprintf(out, size, "%s:%u", text, ntohs(a->v4.sin_port));
        return;
    case AF_INET6:
        inet_ntop(AF_INET6, &a->v6.sin6_addr, text, sizeof text);
        snprintf(out, size, "[%s]:%u", text, ntohs(a->v6.sin6_port));
        return;
    default:
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0)
            snprintf(out, size, "unix uid %u", who.uid);
        else
            snprintf(out, size, "unix");
    }
}

static void set_paused(struct door *d, bool paused) {
    d->paused = paused;
    for (size_t i = 0; i < d->n; i++) {
        if (d->open && !paused)
            event_add(d->events[i], NULL);
        else
            event_del(d->events[i]);
    }
}

static bool is_full(const struct door *d) {
    return d->proxy->n_clients >= d->proxy->limits.v[LIMIT_CONNECTIONS];
}

/* False: there is nobody else to let in now. */
static bool let_in(struct door *d, int listener) {
    union address a = {.any.sa_family = AF_UNIX};
    socklen_t size = sizeof a;
    int on = 1;
    char peer[64];
    int fd = accept4(listener, &a.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return false;
        if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO)
            return true;
        /* No descriptors or no memory: the event would fire again and again. */
        log_warn("listener: accepting pauses, errno %d", errno);
        set_paused(d, true);
        return false;
    }
    describe(fd, &a, peer, sizeof peer);
    if (a.any.sa_family == AF_INET || a.any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    client_new(d->proxy, fd, peer);
    return true;
}

static void on_knock(evutil_socket_t fd, short what, void *ctx) {
    struct door *d = ctx;
    (void)what;
    /* Somebody is outside: a place is made for one, and for more only when the event comes again. */
    if (is_full(d) && !client_yield(d->proxy)) {
        set_paused(d, true);
        return;
    }
    for (int i = 0; i < AT_ONCE; i++)
        if (!let_in(d, fd) || is_full(d))
            return;
}

struct door *door_new(struct proxy *p, const int *listeners, size_t n) {
    struct door *d = calloc(1, sizeof *d + n * sizeof *d->events);
    if (!d)
        return NULL;
    d->proxy = p;
    for (; d->n < n; d->n++) {
        int fd = listeners[d->n];
        d->events[d->n] = event_new(loop_base(p->loop), fd, EV_READ | EV_PERSIST, on_knock, d);
        if (!d->events[d->n] || evutil_make_socket_nonblocking(fd) != 0) {
            door_free(d);
            return NULL;
        }
    }
    return d;
}

void door_free(struct door *d) {
    if (!d)
        return;
    for (size_t i = 0; i < d->n; i++)
        event_free(d->events[i]);
    free(d);
}

void door_open(struct door *d) {
    if (d->open)
        return;
    d->open = true;
    set_paused(d, false);
}

void door_close(struct door *d) {
    d->open = false;
    set_paused(d, true);
}

void door_retry(struct door *d) {
    if (d->open && d->paused && (!is_full(d) || !TAILQ_EMPTY(&d->proxy->yielding)))
        set_paused(d, false);
}

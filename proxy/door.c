#include "proxy/door.h"

#include "base/log.h"
#include "proxy/client.h"
#include "proxy/meant.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { AT_ONCE = 16 /* connections accepted for one event */ };

struct entrance {
    struct door *door;
    enum way_in way;
    struct event *event;
};

struct door {
    struct proxy *proxy;
    size_t n;
    bool open, paused;
    struct entrance at[];
};

static void describe(int fd, const union end *a, char *out, size_t size) {
    struct ucred who;
    socklen_t n = sizeof who;
    if (end_format(a, out, size))
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0)
        snprintf(out, size, "unix uid %u", who.uid);
    else
        snprintf(out, size, "unix");
}

static void set_paused(struct door *d, bool paused) {
    d->paused = paused;
    for (size_t i = 0; i < d->n; i++) {
        if (d->open && !paused)
            event_add(d->at[i].event, NULL);
        else
            event_del(d->at[i].event);
    }
}

static bool is_full(const struct door *d) {
    return d->proxy->n_clients >= d->proxy->limits.v[LIMIT_CONNECTIONS];
}

/* False: there is nobody else to let in now. */
static bool let_in(struct door *d, int listener, enum way_in way) {
    union end a = {.any.sa_family = AF_UNIX};
    socklen_t size = sizeof a;
    int on = 1;
    char peer[64], meant[MEANT_SIZE] = "";
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
    if (way != WAY_EXPLICIT && !meant_find(fd, listener, meant) && way == WAY_TRANSPARENT) {
        log_warn("listener: %s connected to exeat itself, and not to another address", peer);
        close(fd);
        return true;
    }
    client_new(d->proxy, fd, way, peer, meant);
    return true;
}

static void on_knock(evutil_socket_t fd, short what, void *ctx) {
    struct entrance *at = ctx;
    struct door *d = at->door;
    (void)what;
    /* Somebody is outside: a place is made for one, and for more only when the event comes again. */
    if (is_full(d) && !client_yield(d->proxy)) {
        set_paused(d, true);
        return;
    }
    for (int i = 0; i < AT_ONCE; i++)
        if (!let_in(d, fd, at->way) || is_full(d))
            return;
}

struct door *door_new(struct proxy *p, const struct proxy_listener *listeners, size_t n) {
    struct door *d = calloc(1, sizeof *d + n * sizeof *d->at);
    if (!d)
        return NULL;
    d->proxy = p;
    for (size_t i = 0; i < n; i++) {
        if (listeners[i].way == WAY_DNS_UDP)
            continue;
        struct entrance *at = &d->at[d->n++];
        int fd = listeners[i].fd;
        *at = (struct entrance){.door = d, .way = listeners[i].way};
        at->event = event_new(loop_base(p->loop), fd, EV_READ | EV_PERSIST, on_knock, at);
        if (!at->event || evutil_make_socket_nonblocking(fd) != 0) {
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
        if (d->at[i].event)
            event_free(d->at[i].event);
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

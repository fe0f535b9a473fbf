#include "proxy/door.h"

#include "base/log.h"
#include "base/patience.h"
#include "policy/admission.h"
#include "proxy/client.h"
#include "proxy/intake.h"
#include "proxy/meant.h"

#include <errno.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { AT_ONCE = 16 /* connections accepted for one event */ };

struct entrance {
    struct door *door;
    enum way_in way;
    const struct admission *admission;
    struct event *event;
};

struct door {
    struct proxy *proxy;
    size_t n;
    bool open, paused;
    struct entrance at[];
};

/* ---- who it is ---- */

static void take_address(const void *bytes, size_t n, struct peer *out) {
    out->kind = PEER_ADDRESS;
    out->address.family = n == 4 ? 4 : 6;
    memcpy(out->address.bytes, bytes, n);
}

static void find_peer(int fd, const union end *a, struct peer *out) {
    struct ucred who;
    struct sockaddr_vm vm;
    socklen_t n = sizeof who;
    *out = (struct peer){.kind = PEER_UNKNOWN};
    switch (a->any.sa_family) {
    case AF_INET:
        take_address(&a->v4.sin_addr, 4, out);
        break;
    case AF_INET6:
        take_address(&a->v6.sin6_addr, 16, out);
        break;
    case AF_UNIX:
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && n == sizeof who)
            *out = (struct peer){.kind = PEER_USER, .id = who.uid};
        break;
    case AF_VSOCK:
        memcpy(&vm, &a->space, sizeof vm);
        *out = (struct peer){.kind = PEER_GUEST, .id = vm.svm_cid};
        break;
    }
}

static void describe(const union end *a, const struct peer *peer, char *out, size_t size) {
    if (end_format(a, out, size))
        return;
    if (peer->kind == PEER_USER)
        snprintf(out, size, "unix uid %u", peer->id);
    else if (peer->kind == PEER_GUEST)
        snprintf(out, size, "vsock cid %u", peer->id);
    else
        snprintf(out, size, "unix");
}

/* ---- letting in ---- */

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

/* A connection has its listener's: with the one close would wait for the client, with the other each write would wake us for ever. */
static void drop_options(int fd) {
    const struct linger none = {0, 0};
    int off = 0;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &off, sizeof off);
}

/* False: there is nobody else to let in now. */
static bool let_in(const struct entrance *at, int listener) {
    struct door *d = at->door;
    enum way_in way = at->way;
    union end a = {.any.sa_family = AF_UNIX};
    socklen_t size = sizeof a;
    int on = 1;
    struct peer who;
    char peer[64], meant[MEANT_SIZE] = "";
    int fd = accept4(listener, &a.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return false;
        if (errno == EINTR) {
            evutil_make_socket_nonblocking(listener);
            return false;
        }
        if (errno == ECONNABORTED || errno == EPROTO)
            return true;
        /* No descriptors or no memory: the event would fire again and again. */
        log_warn("listener: accepting pauses, errno %d", errno);
        set_paused(d, true);
        return false;
    }
    drop_options(fd);
    find_peer(fd, &a, &who);
    describe(&a, &who, peer, sizeof peer);
    if (a.any.sa_family == AF_INET || a.any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (way != WAY_EXPLICIT && !meant_find(fd, listener, meant) && way == WAY_TRANSPARENT) {
        log_warn("listener: %s connected to exeat itself, and not to another address", peer);
        close(fd);
        return true;
    }
    enum admitted admitted = at->admission ? admission_judge(at->admission, &who) : ADMITTED;
    struct client *c = client_new(d->proxy, fd, way, peer, meant);
    if (c)
        c->wire.is_unix = a.any.sa_family == AF_UNIX;
    if (c && admitted != ADMITTED)
        intake_admit(c, admitted);
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
    patience_begin(); /* a launcher has the same listener */
    for (int i = 0; i < AT_ONCE; i++)
        if (!let_in(at, fd) || is_full(d))
            break;
    patience_end();
}

struct door *door_new(struct proxy *p, const struct proxy_listener *listeners, size_t n) {
    struct door *d = patience_prepare() == 0 ? calloc(1, sizeof *d + n * sizeof *d->at) : NULL;
    if (!d)
        return NULL;
    d->proxy = p;
    for (size_t i = 0; i < n; i++) {
        if (way_is_carried(listeners[i].way))
            continue;
        struct entrance *at = &d->at[d->n++];
        int fd = listeners[i].fd;
        *at = (struct entrance){
            .door = d, .way = listeners[i].way, .admission = listeners[i].admission};
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

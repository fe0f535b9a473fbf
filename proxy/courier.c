#include "proxy/courier.h"

#include "base/log.h"
#include "base/rights.h"
#include "http/unreachable.h"
#include "proxy/meant.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUTES_MAX = 32, AT_ONCE = 16, CONTROL_SIZE = 128, PAUSE_MS = 100 };

/* Somebody who asked, and where: the answer comes from there. */
struct asker {
    uint32_t cookie; /* 0: answered */
    union end peer;
    socklen_t size;
    struct in_addr asked4;
    struct in6_addr asked6;
};

struct route {
    int datagrams, proxy;
    bool only_tells; /* of what was refused: its packets are few, and not answered */
    ssize_t head;    /* of its packets, bytes that are carried */
    int left;        /* of such packets, until the next pause */
    struct event *in, *pause;
    union end own;
    uint32_t last;
    struct asker askers[COURIER_WAITING];
};

/* ---- from a sandbox ---- */

static void find_asked(struct msghdr *m, const union end *own, struct asker *a, union end *asked) {
    *asked = *own;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            asked->v4.sin_addr = a->asked4 = info.ipi_addr;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            asked->v6.sin6_addr = a->asked6 = info.ipi6_addr;
        }
    }
}

static void hand_over(struct route *r, const struct asker *a, const union end *asked,
                      struct view datagram) {
    char peer[MEANT_SIZE] = "", meant[MEANT_SIZE] = "";
    struct buf packet;
    buf_init(&packet, COURIER_PACKET_MAX);
    end_format(&a->peer, peer, sizeof peer);
    end_format(asked, meant, sizeof meant);
    buf_put_u32(&packet, a->cookie);
    buf_put_block(&packet, view_str(peer));
    buf_put_block(&packet, view_str(meant));
    buf_put(&packet, datagram);
    struct view v = buf_view(&packet);
    /* A proxy that is behind gets the next one, which the client sends again. */
    if (buf_ok(&packet) && write(r->proxy, v.p, v.n) < 0)
        log_debug("a datagram is lost");
    buf_free(&packet);
}

static bool take_datagram(struct route *r) {
    uint8_t bytes[COURIER_DATAGRAM_MAX + 1];
    union {
        char bytes[CONTROL_SIZE];
        struct cmsghdr align;
    } control;
    struct asker *a = &r->askers[(r->last + 1) % COURIER_WAITING];
    union end asked;
    struct iovec v = {bytes, sizeof bytes};
    *a = (struct asker){.cookie = 0};
    struct msghdr m = {.msg_name = &a->peer,
                       .msg_namelen = sizeof a->peer,
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(r->datagrams, &m, MSG_DONTWAIT);
    if (n < 0)
        return errno == EINTR;
    if (n > COURIER_DATAGRAM_MAX && !r->only_tells)
        return true;
    if (n > r->head)
        n = r->head;
    a->size = m.msg_namelen;
    find_asked(&m, &r->own, a, &asked);
    a->cookie = ++r->last;
    if (a->cookie == 0)
        a->cookie = r->last = 1;
    hand_over(r, a, &asked, view_of(bytes, (size_t)n));
    return true;
}

/*
 * Whoever handed us the socket has it as well, and can have asked the kernel to keep errors, which would wake us for ever, or shut
 * it down, where nothing helps but looking at it less often.
 */
static void drop_errors(int fd) {
    struct msghdr m = {.msg_iov = NULL};
    for (int i = 0; i < AT_ONCE && recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0; i++)
        m = (struct msghdr){.msg_iov = NULL};
}

/* A sandbox can have any number of datagrams refused, and none of them is worth our time: what is too much the kernel drops. */
static void pause_route(struct route *r) {
    const struct timeval a_little = {0, PAUSE_MS * 1000};
    if (event_add(r->pause, &a_little) == 0)
        event_del(r->in);
}

static void on_pause_over(evutil_socket_t fd, short what, void *ctx) {
    struct route *r = ctx;
    (void)fd;
    (void)what;
    r->left = AT_ONCE;
    event_add(r->in, NULL);
}

static void on_datagram(evutil_socket_t fd, short what, void *ctx) {
    struct route *r = ctx;
    int taken = 0;
    (void)what;
    while (taken < AT_ONCE && take_datagram(r))
        taken++;
    if (taken == 0)
        drop_errors(fd);
    if (r->only_tells)
        r->left -= taken;
    if (taken == 0 || r->left <= 0)
        pause_route(r);
}

/* ---- from the proxy ---- */

static size_t put_source(struct msghdr *m, const struct asker *a) {
    struct cmsghdr *c = m->msg_control;
    if (a->peer.any.sa_family == AF_INET) {
        struct in_pktinfo info = {.ipi_spec_dst = a->asked4};
        c->cmsg_level = IPPROTO_IP;
        c->cmsg_type = IP_PKTINFO;
        c->cmsg_len = CMSG_LEN(sizeof info);
        memcpy(CMSG_DATA(c), &info, sizeof info);
        return CMSG_SPACE(sizeof info);
    }
    struct in6_pktinfo info = {.ipi6_addr = a->asked6};
    c->cmsg_level = IPPROTO_IPV6;
    c->cmsg_type = IPV6_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(c), &info, sizeof info);
    return CMSG_SPACE(sizeof info);
}

static void send_answer(struct route *r, struct asker *a, struct view answer) {
    union {
        char bytes[CONTROL_SIZE];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec v = {(void *)(uintptr_t)answer.p, answer.n};
    struct msghdr m = {.msg_name = &a->peer,
                       .msg_namelen = a->size,
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes};
    m.msg_controllen = put_source(&m, a);
    if (sendmsg(r->datagrams, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_debug("an answer is lost, errno %d", errno);
    a->cookie = 0;
}

static void on_answer(evutil_socket_t fd, short what, void *ctx) {
    struct route *r = ctx;
    uint8_t packet[COURIER_PACKET_MAX];
    (void)what;
    ssize_t n = read(fd, packet, sizeof packet);
    /* Its proxy is gone, and with it all that this process is for. */
    if (n == 0)
        exit(0);
    if (n < 0)
        return;
    struct reader read = reader_of(view_of(packet, (size_t)n));
    uint32_t cookie = read_u32(&read);
    struct asker *a = &r->askers[cookie % COURIER_WAITING];
    if (!read.bad && !r->only_tells && cookie != 0 && a->cookie == cookie)
        send_answer(r, a, read.rest);
}

/* ---- the process ---- */

/* Answers come from the address that was asked, also where that is no interface's. */
static bool ask_destination(struct route *r) {
    int on = 1;
    socklen_t size = sizeof r->own;
    if (getsockname(r->datagrams, &r->own.any, &size) != 0)
        return false;
    if (r->own.any.sa_family == AF_NETLINK)
        return true;
    if (r->own.any.sa_family == AF_INET6)
        return setsockopt(r->datagrams, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) == 0 &&
               setsockopt(r->datagrams, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on) == 0;
    return setsockopt(r->datagrams, IPPROTO_IP, IP_PKTINFO, &on, sizeof on) == 0 &&
           setsockopt(r->datagrams, IPPROTO_IP, IP_FREEBIND, &on, sizeof on) == 0;
}

static bool serve(struct loop *l, struct route *r) {
    r->in = event_new(loop_base(l), r->datagrams, EV_READ | EV_PERSIST, on_datagram, r);
    r->pause = event_new(loop_base(l), -1, 0, on_pause_over, r);
    struct event *out = event_new(loop_base(l), r->proxy, EV_READ | EV_PERSIST, on_answer, r);
    return r->in && r->pause && out && evutil_make_socket_nonblocking(r->datagrams) == 0 &&
           evutil_make_socket_nonblocking(r->proxy) == 0 && event_add(r->in, NULL) == 0 &&
           event_add(out, NULL) == 0;
}

/* Away from the low numbers, in order, and nothing else stays open. */
static bool keep_only(struct route *routes, size_t n) {
    enum { FIRST = 400, LOW = 3 };
    for (size_t i = 0; i < n; i++) {
        int at = FIRST + 2 * (int)i;
        if (dup2(routes[i].datagrams, at) < 0 || dup2(routes[i].proxy, at + 1) < 0)
            return false;
        routes[i].datagrams = at;
        routes[i].proxy = at + 1;
    }
    return syscall(SYS_close_range, LOW, FIRST - 1, 0) == 0 &&
           syscall(SYS_close_range, FIRST + 2 * (unsigned)n, ~0u, 0) == 0;
}

static int run(const struct role_args *args, struct route *routes, size_t n, pid_t proxy) {
    struct role_args own = *args;
    char name[32];
    own.role = ROLE_COURIER;
    snprintf(name, sizeof name, "courier %u", args->lane);
    log_open(name, args->debug ? LOG_DEBUG : LOG_INFO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != proxy || !keep_only(routes, n))
        return 1;
    for (size_t i = 0; i < n; i++)
        if (!ask_destination(&routes[i]))
            return 1;
    if (rights_enter(&own) != 0)
        return 1;
    struct loop *l = loop_new();
    for (size_t i = 0; i < n; i++)
        if (!l || !serve(l, &routes[i]))
            return 1;
    return loop_run(l) == 0 ? 0 : 1;
}

int courier_start(const struct role_args *args, struct proxy_listener *listeners, pid_t *courier) {
    struct route *routes = NULL;
    size_t n = 0;
    pid_t self = getpid();
    for (size_t i = 0; i < args->listeners; i++)
        n += way_is_carried(listeners[i].way);
    *courier = 0;
    if (n == 0)
        return 0;
    routes = n <= ROUTES_MAX ? calloc(n, sizeof *routes) : NULL;
    if (!routes)
        return ERR_MEMORY;
    n = 0;
    for (size_t i = 0; i < args->listeners; i++) {
        int pair[2];
        if (!way_is_carried(listeners[i].way))
            continue;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
            /* This proxy will not start: its end closes the rest. */
            free(routes);
            return ERR_SYSTEM;
        }
        routes[n].only_tells = way_only_tells(listeners[i].way);
        routes[n].head =
            listeners[i].way == WAY_UNREACHABLE ? UNREACHABLE_HEAD : COURIER_DATAGRAM_MAX;
        routes[n].left = AT_ONCE;
        routes[n].datagrams = listeners[i].fd;
        routes[n++].proxy = pair[1];
        listeners[i].fd = pair[0];
    }
    pid_t pid = fork();
    if (pid == 0)
        _exit(run(args, routes, n, self));
    for (size_t i = 0; i < n; i++) {
        close(routes[i].datagrams);
        close(routes[i].proxy);
    }
    free(routes);
    *courier = pid;
    return pid > 0 ? 0 : ERR_SYSTEM;
}

#include "egress/interfaces.h"

#include "base/log.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVE_SIZE = 32768, ENTRIES_MAX = 65536, NEWS_MAX = 64 };

/* The same address can stand on two interfaces and be taken from one. */
struct entry {
    unsigned interface;
    struct address address;
};

struct interfaces {
    int fd;
    struct event *readable;
    struct entry *at;
    size_t n, room;
};

static size_t find(const struct interfaces *i, const struct entry *e) {
    size_t k = 0;
    while (k < i->n &&
           !(i->at[k].interface == e->interface && address_equal(&i->at[k].address, &e->address)))
        k++;
    return k;
}

static int add(struct interfaces *i, const struct entry *e) {
    if (find(i, e) < i->n)
        return 0;
    if (i->n == i->room) {
        size_t room = i->room ? 2 * i->room : 64;
        struct entry *at = room <= ENTRIES_MAX ? realloc(i->at, room * sizeof *at) : NULL;
        if (!at)
            return ERR_LIMIT;
        i->at = at;
        i->room = room;
    }
    i->at[i->n++] = *e;
    return 0;
}

static void drop(struct interfaces *i, const struct entry *e) {
    size_t k = find(i, e);
    if (k < i->n)
        i->at[k] = i->at[--i->n];
}

/* IFA_LOCAL is the own end of a point-to-point link, IFA_ADDRESS then the other's. */
static bool read_entry(const struct nlmsghdr *h, struct entry *out) {
    const struct ifaddrmsg *m = NLMSG_DATA(h);
    size_t size = m->ifa_family == AF_INET ? 4 : 16;
    struct view rest = view_of(IFA_RTA(m), IFA_PAYLOAD(h));
    struct rtattr a;
    bool found = false;
    if (m->ifa_family != AF_INET && m->ifa_family != AF_INET6)
        return false;
    *out = (struct entry){m->ifa_index, {.family = m->ifa_family == AF_INET ? 4 : 6}};
    for (; rest.n >= sizeof a; rest = view_skip(rest, RTA_ALIGN((size_t)a.rta_len))) {
        memcpy(&a, rest.p, sizeof a);
        struct view value = view_slice(rest, sizeof a, a.rta_len);
        if (a.rta_len < sizeof a)
            return false;
        if (value.n != size || (a.rta_type != IFA_LOCAL && (a.rta_type != IFA_ADDRESS || found)))
            continue;
        memcpy(out->address.bytes, value.p, size);
        found = true;
    }
    return found;
}

struct news {
    bool done, lost;
    int result;
};

static void take_messages(struct interfaces *i, void *p, size_t n, struct news *news) {
    unsigned left = (unsigned)n;
    for (struct nlmsghdr *h = p; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
        struct entry e;
        if (h->nlmsg_type == NLMSG_DONE)
            news->done = true;
        else if (h->nlmsg_type == NLMSG_ERROR)
            news->result = ERR_SYSTEM;
        else if (h->nlmsg_type == RTM_NEWADDR && read_entry(h, &e) && add(i, &e) != 0)
            news->result = ERR_LIMIT;
        else if (h->nlmsg_type == RTM_DELADDR && read_entry(h, &e))
            drop(i, &e);
    }
}

static int ask_for_all(struct interfaces *i) {
    struct {
        struct nlmsghdr h;
        struct ifaddrmsg m;
    } ask = {.h = {.nlmsg_len = sizeof ask,
                   .nlmsg_type = RTM_GETADDR,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
             .m = {.ifa_family = AF_UNSPEC}};
    return send(i->fd, &ask, sizeof ask, 0) == (ssize_t)sizeof ask ? 0 : ERR_SYSTEM;
}

/* One datagram. ERR_AGAIN when there is none. */
static int receive(struct interfaces *i, int flags, struct news *news) {
    _Alignas(struct nlmsghdr) uint8_t p[RECEIVE_SIZE];
    ssize_t n = recv(i->fd, p, sizeof p, flags);
    if (n < 0 && errno == ENOBUFS) {
        news->lost = true;
        return 0;
    }
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? ERR_AGAIN : ERR_SYSTEM;
    take_messages(i, p, (size_t)n, news);
    return 0;
}

/* False: there is no more news for now. */
static bool take_news(struct interfaces *i) {
    struct news news = {0};
    int result = receive(i, MSG_DONTWAIT, &news);
    if (result == ERR_AGAIN)
        return false;
    /* What was removed meanwhile stays: rather one address too many. */
    if (news.lost && result == 0)
        result = ask_for_all(i);
    if (result != 0 || news.result != 0)
        log_warn("interfaces: their addresses may be out of date: %s",
                 err_text(result ? result : news.result));
    return result == 0;
}

static void on_readable(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    take_news(ctx);
}

static int open_socket(struct interfaces *i) {
    struct sockaddr_nl own = {.nl_family = AF_NETLINK,
                              .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    struct news news = {0};
    i->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (i->fd < 0 || bind(i->fd, (struct sockaddr *)&own, sizeof own) != 0 || ask_for_all(i) != 0)
        return ERR_SYSTEM;
    while (!news.done) {
        int result = receive(i, 0, &news);
        if (news.result != 0 || (result != 0 && result != ERR_AGAIN))
            return ERR_SYSTEM;
    }
    return 0;
}

struct interfaces *interfaces_new(struct loop *l) {
    struct interfaces *i = calloc(1, sizeof *i);
    if (!i)
        return NULL;
    if (open_socket(i) == 0)
        i->readable = event_new(loop_base(l), i->fd, EV_READ | EV_PERSIST, on_readable, i);
    if (i->readable && event_add(i->readable, NULL) == 0)
        return i;
    log_warn("interfaces: their addresses cannot be read: %s", strerror(errno));
    interfaces_free(i);
    return NULL;
}

void interfaces_free(struct interfaces *i) {
    if (!i)
        return;
    if (i->readable)
        event_free(i->readable);
    if (i->fd >= 0)
        close(i->fd);
    free(i->at);
    free(i);
}

bool interfaces_hold(struct interfaces *i, const struct address *a) {
    for (size_t k = 0; k < NEWS_MAX && take_news(i); k++)
        continue;
    for (size_t k = 0; k < i->n; k++)
        if (address_equal(&i->at[k].address, a))
            return true;
    return false;
}

size_t interfaces_count(const struct interfaces *i) {
    return i->n;
}

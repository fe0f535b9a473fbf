#include "run/network.h"

#include "base/attach.h"
#include "run/capture.h"
#include "run/netlink.h"
#include "run/refused.h"
#include "run/say.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    LOOPBACK = 1, /* the first interface of every namespace */
    CAPTURE_PORT = 443,
};

static int raise_loopback(void) {
    struct ifreq lo = {.ifr_name = "lo"};
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int result = s < 0 ? -1 : ioctl(s, SIOCGIFFLAGS, &lo);
    lo.ifr_flags |= IFF_UP;
    if (result == 0)
        result = ioctl(s, SIOCSIFFLAGS, &lo);
    if (s >= 0)
        close(s);
    return result;
}

/* What `ip route add local default dev lo` does. */
static int add_route(int s, unsigned char family) {
    struct {
        struct nlmsghdr header;
        struct rtmsg route;
        struct rtattr attribute;
        int interface;
    } ask = {
        .header = {.nlmsg_len = sizeof ask,
                   .nlmsg_type = RTM_NEWROUTE,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
        .route = {.rtm_family = family,
                  .rtm_table = RT_TABLE_LOCAL,
                  .rtm_protocol = RTPROT_STATIC,
                  .rtm_scope = RT_SCOPE_HOST,
                  .rtm_type = RTN_LOCAL},
        .attribute = {.rta_len = RTA_LENGTH(sizeof(int)), .rta_type = RTA_OIF},
        .interface = LOOPBACK,
    };
    return netlink_ask(s, &ask, sizeof ask);
}

/*
 * What `ip addr add ADDRESS dev lo` does. Programs that find no address but 127.0.0.1 and ::1 take the network for
 * absent, and ask for no name (getaddrinfo with AI_ADDRCONFIG, aria2).
 */
static int add_address(int s, unsigned char family, const char *text) {
    struct {
        struct nlmsghdr header;
        struct ifaddrmsg address;
        struct rtattr attribute;
        unsigned char bytes[sizeof(struct in6_addr)];
    } ask = {
        .header = {.nlmsg_type = RTM_NEWADDR,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
        .address = {.ifa_family = family, .ifa_flags = IFA_F_NODAD, .ifa_index = LOOPBACK},
        .attribute = {.rta_type = IFA_LOCAL},
    };
    size_t n = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
    inet_pton(family, text, ask.bytes);
    ask.address.ifa_prefixlen = (unsigned char)(8 * n);
    ask.attribute.rta_len = (unsigned short)RTA_LENGTH(n);
    ask.header.nlmsg_len = (uint32_t)(sizeof ask - sizeof ask.bytes + n);
    return netlink_ask(s, &ask, ask.header.nlmsg_len);
}

/* Without IPv6 in the kernel nothing of it is there to be caught. */
static bool has_ipv6(void) {
    return access("/proc/sys/net/ipv6", F_OK) == 0;
}

static int add_all(int s) {
    if (add_route(s, AF_INET) != 0 || add_address(s, AF_INET, "192.0.2.1") != 0)
        return -1;
    if (!has_ipv6())
        return 0;
    return add_route(s, AF_INET6) == 0 && add_address(s, AF_INET6, "2001:db8::1") == 0 ? 0 : -1;
}

static int add_routes(void) {
    int s = netlink_open(NETLINK_ROUTE);
    int result = s < 0 ? -1 : add_all(s);
    int why = errno;
    if (s >= 0)
        close(s);
    errno = why;
    return result;
}

int network_up(void) {
    if (raise_loopback() != 0)
        return run_say("loopback of the new network: %s", strerror(errno));
    if (add_routes() != 0)
        return run_say("routes and addresses of the new network: %s", strerror(errno));
    /* Without it the boundary is the same: ports that are not caught refuse. */
    (void)capture_ports(CAPTURE_PORT, has_ipv6());
    return 0;
}

/* ---- listeners ---- */

/* The explicit one on loopback, the others on all addresses of both families. */
static const struct listener {
    enum way_in way;
    int family;
    uint16_t port;
} listeners[NETWORK_LISTENERS] = {
    {WAY_EXPLICIT, AF_INET, RUN_PROXY_PORT},
    {WAY_TRANSPARENT, AF_INET, CAPTURE_PORT},
    {WAY_TRANSPARENT, AF_INET6, CAPTURE_PORT},
    {WAY_TRANSPARENT, AF_INET, 80},
    {WAY_TRANSPARENT, AF_INET6, 80},
    {WAY_TRANSPARENT, AF_INET, 22},
    {WAY_TRANSPARENT, AF_INET6, 22},
    {WAY_DNS_UDP, AF_INET, 53},
    {WAY_DNS_UDP, AF_INET6, 53},
    {WAY_DNS_TCP, AF_INET, 53},
    {WAY_DNS_TCP, AF_INET6, 53},
    {WAY_UNREACHABLE, AF_INET, 0},
    {WAY_UNREACHABLE, AF_INET6, 0},
};

uint8_t network_kind(size_t i) {
    return (uint8_t)listeners[i].way;
}

/* Connections to other ports are handed to it (run/capture.h). */
static void take_other_ports(int fd, int family) {
    int on = 1;
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &on, sizeof on);
    else
        setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof on);
}

static int bind_to(int fd, const struct listener *l) {
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(l->port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(l->port)};
    int only = 1;
    if (l->port == CAPTURE_PORT)
        take_other_ports(fd, l->family);
    if (l->family == AF_INET6)
        return setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only) == 0
                   ? bind(fd, (struct sockaddr *)&six, sizeof six)
                   : -1;
    if (l->way == WAY_EXPLICIT)
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return bind(fd, (struct sockaddr *)&four, sizeof four);
}

/* Without IPv6 in the kernel: a socket that nobody can reach, so that the table holds. */
static int stand_in(int type) {
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0 &&
        (type == SOCK_DGRAM || listen(fd, BACKLOG) == 0))
        return fd;
    return -1;
}

int network_listen(size_t i) {
    const struct listener *l = &listeners[i];
    if (l->way == WAY_UNREACHABLE)
        return refused_open(l->family);
    int type = l->way == WAY_DNS_UDP ? SOCK_DGRAM : SOCK_STREAM;
    int fd = socket(l->family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 && errno == EAFNOSUPPORT)
        fd = stand_in(type);
    else if (fd >= 0 && (bind_to(fd, l) != 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) != 0)))
        return run_say("port %d of the new network: %s", l->port, strerror(errno));
    return fd >= 0 ? fd : run_say("port %d of the new network: %s", l->port, strerror(errno));
}

#include "run/network.h"

#include "base/attach.h"
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

enum { BACKLOG = 1024, LOOPBACK = 1 /* the first interface of every namespace */ };

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

/* The kernel's answer: 0, or -1 with errno. */
static int read_acknowledgement(int s) {
    union {
        struct nlmsghdr header;
        char bytes[1024];
    } in;
    ssize_t n = recv(s, in.bytes, sizeof in.bytes, 0);
    if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) || in.header.nlmsg_type != NLMSG_ERROR) {
        errno = n < 0 ? errno : EPROTO;
        return -1;
    }
    errno = -((const struct nlmsgerr *)NLMSG_DATA(&in.header))->error;
    return errno == 0 ? 0 : -1;
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
    return send(s, &ask, sizeof ask, 0) == (ssize_t)sizeof ask ? read_acknowledgement(s) : -1;
}

/* Without IPv6 in the kernel nothing of it is there to be caught. */
static int add_routes(void) {
    int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    int result = s < 0 ? -1 : add_route(s, AF_INET);
    if (result == 0 && access("/proc/sys/net/ipv6", F_OK) == 0)
        result = add_route(s, AF_INET6);
    int why = errno;
    if (s >= 0)
        close(s);
    errno = why;
    return result;
}

int network_up(void) {
    if (raise_loopback() != 0)
        return run_say("loopback of the new network: %s", strerror(errno));
    return add_routes() == 0 ? 0 : run_say("routes of the new network: %s", strerror(errno));
}

/* ---- listeners ---- */

static const struct listener {
    enum attach_kind kind;
    in_addr_t address;
    uint16_t port;
} listeners[NETWORK_LISTENERS] = {
    {ATTACH_EXPLICIT, INADDR_LOOPBACK, RUN_PROXY_PORT},
};

uint8_t network_kind(size_t i) {
    return (uint8_t)listeners[i].kind;
}

int network_listen(size_t i) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(listeners[i].port),
                             .sin_addr = {htonl(listeners[i].address)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&to, sizeof to) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    return run_say("port %d of the new network: %s", listeners[i].port, strerror(errno));
}

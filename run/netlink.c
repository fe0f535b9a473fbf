#include "run/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

int netlink_open(int protocol) {
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
}

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

int netlink_ask(int s, const void *request, size_t n) {
    return send(s, request, n, 0) == (ssize_t)n ? read_acknowledgement(s) : -1;
}

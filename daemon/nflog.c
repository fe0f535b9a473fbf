#include "daemon/nflog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEARD_BYTES = 64 << 10, PACKET_BYTES = 128, REQUEST_SIZE = 128 };

struct request {
    _Alignas(struct nlmsghdr) uint8_t at[REQUEST_SIZE];
    uint32_t n;
};

static void put(struct request *r, const void *bytes, size_t n) {
    memcpy(r->at + r->n, bytes, n);
    r->n += (uint32_t)NLMSG_ALIGN(n);
}

static void put_attribute(struct request *r, uint16_t type, const void *value, size_t n) {
    const struct nlattr a = {(uint16_t)(sizeof a + n), type};
    put(r, &a, sizeof a);
    put(r, value, n);
}

/* Each packet at once, and only its beginning. */
static void write_request(struct request *r, uint16_t group) {
    const struct nfulnl_msg_config_cmd bind = {NFULNL_CFG_CMD_BIND};
    const struct nfulnl_msg_config_mode mode = {htonl(PACKET_BYTES), NFULNL_COPY_PACKET, 0};
    const struct nfgenmsg of = {.version = NFNETLINK_V0, .res_id = htons(group)};
    const uint32_t at_once = htonl(1);
    struct nlmsghdr head = {.nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG,
                            .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK};
    put(r, &head, sizeof head);
    put(r, &of, sizeof of);
    put_attribute(r, NFULA_CFG_CMD, &bind, sizeof bind);
    put_attribute(r, NFULA_CFG_MODE, &mode, sizeof mode);
    put_attribute(r, NFULA_CFG_QTHRESH, &at_once, sizeof at_once);
    head.nlmsg_len = r->n;
    memcpy(r->at, &head, sizeof head);
}

/* A packet may have come before it. */
static int read_acknowledgement(int fd) {
    union {
        struct nlmsghdr header;
        uint8_t bytes[1024];
    } m;
    do {
        if (recv(fd, m.bytes, sizeof m.bytes, 0) < (ssize_t)sizeof m.header)
            return -1;
    } while (m.header.nlmsg_type != NLMSG_ERROR);
    errno = -((const struct nlmsgerr *)NLMSG_DATA(&m.header))->error;
    return errno == 0 ? 0 : -1;
}

static int listen_to(int fd, uint16_t group) {
    const int bytes = HEARD_BYTES, one = 1;
    struct request r = {.n = 0};
    write_request(&r, group);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) != 0 ||
        setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &one, sizeof one) != 0 ||
        send(fd, r.at, r.n, 0) < 0)
        return -1;
    return read_acknowledgement(fd);
}

int nflog_open(uint16_t group, struct buf *why) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
    if (fd >= 0 && listen_to(fd, group) == 0)
        return fd;
    buf_printf(why, "`nflog %u`: %s%s", group, strerror(errno),
               errno == EPERM
                   ? " (exeatd needs the capability CAP_NET_ADMIN, and the group for itself)"
                   : "");
    if (fd >= 0)
        close(fd);
    return -1;
}

#include "run/refused.h"

#include "run/say.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEARD_BYTES = 64 << 10, RAWS_MAX = 2 };

/* What a classic BPF program returns is how much of a packet is kept. */
static int hear(int fd, uint32_t bytes) {
    struct sock_filter keep = BPF_STMT(BPF_RET | BPF_K, bytes);
    const struct sock_fprog program = {1, &keep};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static int pass_unreachable_only(int fd, int family) {
    struct icmp6_filter six;
    uint32_t four = ~(1u << ICMP_DEST_UNREACH);
    ICMP6_FILTER_SETBLOCKALL(&six);
    ICMP6_FILTER_SETPASS(ICMP6_DST_UNREACH, &six);
    return family == AF_INET6 ? setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &six, sizeof six)
                              : setsockopt(fd, SOL_RAW, ICMP_FILTER, &four, sizeof four);
}

/* Deaf at first. Without IPv6 in the kernel, the place of it has another of IPv4. */
static int open_raw(int family) {
    int size = HEARD_BYTES;
    int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    family == AF_INET6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
    if (fd < 0 && errno == EAFNOSUPPORT && family == AF_INET6)
        return open_raw(AF_INET);
    if (fd >= 0 && (hear(fd, 0) != 0 || pass_unreachable_only(fd, family) != 0 ||
                    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int raws[RAWS_MAX];
static size_t n_raws;

int refused_open(int family) {
    int fd = open_raw(family);
    int own = fd >= 0 && n_raws < RAWS_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (own >= 0) {
        raws[n_raws++] = own;
        return fd;
    }
    int why = errno;
    if (fd >= 0)
        close(fd);
    return run_say("what the new network refuses: %s", strerror(why));
}

int refused_hear(void) {
    int result = 0;
    while (n_raws > 0 && result == 0)
        result = hear(raws[--n_raws], UINT32_MAX);
    return result == 0 ? 0 : run_say("what the new network refuses: %s", strerror(errno));
}

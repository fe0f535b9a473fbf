#include "daemon/attach_request.h"

#include "base/peer.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* ---- whose it is ---- */

static bool names(const struct attach_right *right, struct view sandbox) {
    struct view rest = right->names, name;
    while (lane_sandbox(&rest, &name))
        if (view_equal(name, sandbox))
            return true;
    return false;
}

bool attach_request_permitted(struct view rights, uint32_t uid, const uint32_t *groups,
                              size_t n_groups, struct view sandbox) {
    struct attach_right right;
    while (bundle_right(&rights, &right)) {
        bool is_theirs = !right.group && right.id == uid;
        for (size_t i = 0; right.group && i < n_groups; i++)
            is_theirs = is_theirs || groups[i] == right.id;
        if (is_theirs && names(&right, sandbox))
            return true;
    }
    return false;
}

/* ---- its listeners ---- */

static int option(int fd, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

/* It takes CAP_NET_RAW in the network that it is of. */
static bool is_raw(int fd, int domain, int protocol) {
    return option(fd, SO_TYPE) == SOCK_RAW && ((domain == AF_INET && protocol == IPPROTO_ICMP) ||
                                               (domain == AF_INET6 && protocol == IPPROTO_ICMPV6));
}

/* What that way in takes: streams that are listened for, of TCP and, explicitly, of Unix; datagrams of UDP. */
static bool is_listener(int fd, uint8_t way) {
    int domain = option(fd, SO_DOMAIN), protocol = option(fd, SO_PROTOCOL);
    bool internet = domain == AF_INET || domain == AF_INET6;
    if (way == WAY_UNREACHABLE)
        return is_raw(fd, domain, protocol);
    if (way == WAY_DNS_UDP)
        return internet && option(fd, SO_TYPE) == SOCK_DGRAM && protocol == IPPROTO_UDP;
    return option(fd, SO_ACCEPTCONN) == 1 && option(fd, SO_TYPE) == SOCK_STREAM &&
           ((domain == AF_UNIX && way == WAY_EXPLICIT) || (internet && protocol == IPPROTO_TCP));
}

const char *attach_request_fault(const struct attach_request *r) {
    if (r->n == 0)
        return "there is no listening socket in the request";
    for (size_t i = 0; i < r->n; i++) {
        if (r->kinds[i] < WAY_EXPLICIT || r->kinds[i] > WAY_LAST_ATTACHED)
            return "this exeatd serves no listeners of such a kind";
        if (!is_listener(r->fds[i], r->kinds[i]))
            return "a descriptor in the request is no listening socket of the kind that it is said "
                   "to be";
    }
    return NULL;
}

bool attach_request_unenforced(const struct attach_request *r, uint64_t home) {
    for (size_t i = 0; i < r->n; i++)
        if (option(r->fds[i], SO_DOMAIN) != AF_UNIX && peer_namespace(r->fds[i]) == home)
            return true;
    return false;
}

#include "proxy/meant.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST of the kernel's netfilter headers, which cannot be included beside libc's. */
enum { ORIGINAL_DESTINATION = 80 };

bool end_format(const union end *e, char *out, size_t size) {
    char text[INET6_ADDRSTRLEN];
    if (e->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &e->v4.sin_addr, text, sizeof text);
        snprintf(out, size, "%s:%u", text, ntohs(e->v4.sin_port));
        return true;
    }
    if (e->any.sa_family != AF_INET6)
        return false;
    const struct in6_addr *a = &e->v6.sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(a)) {
        inet_ntop(AF_INET, a->s6_addr + 12, text, sizeof text);
        snprintf(out, size, "%s:%u", text, ntohs(e->v6.sin6_port));
    } else {
        inet_ntop(AF_INET6, a, text, sizeof text);
        snprintf(out, size, "[%s]:%u", text, ntohs(e->v6.sin6_port));
    }
    return true;
}

static bool original(int fd, int family, union end *out) {
    socklen_t size = family == AF_INET ? sizeof out->v4 : sizeof out->v6;
    int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    return getsockopt(fd, level, ORIGINAL_DESTINATION, &out->any, &size) == 0;
}

bool meant_find(int fd, int listener, char out[MEANT_SIZE]) {
    union end own = {.any.sa_family = AF_UNSPEC}, at = own, first;
    char bound[MEANT_SIZE] = "";
    socklen_t size = sizeof own, size_at = sizeof at;
    if (getsockname(fd, &own.any, &size) != 0 || getsockname(listener, &at.any, &size_at) != 0)
        return false;
    if (original(fd, own.any.sa_family, &first))
        own = first;
    return end_format(&own, out, MEANT_SIZE) && end_format(&at, bound, sizeof bound) &&
           strcmp(out, bound) != 0;
}

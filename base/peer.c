#include "base/peer.h"

#include <sys/socket.h>

uint64_t peer_namespace(int fd) {
    uint64_t cookie;
    socklen_t size = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

#include "base/peer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

uint64_t peer_namespace(int fd) {
    uint64_t cookie;
    socklen_t size = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

int peer_connect(const char *path, int type) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(to.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

ssize_t peer_send(int s, struct view bytes, const int *fds, size_t n, int flags) {
    union {
        char room[CMSG_SPACE(PEER_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {(void *)(uintptr_t)bytes.p, bytes.n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    assert(n <= PEER_FDS_MAX);
    if (n > 0) {
        memset(&control, 0, sizeof control);
        m.msg_control = control.room;
        m.msg_controllen = CMSG_SPACE(n * sizeof *fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof *fds);
        memcpy(CMSG_DATA(c), fds, n * sizeof *fds);
    }
    return sendmsg(s, &m, MSG_NOSIGNAL | flags);
}

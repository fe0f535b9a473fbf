#include "run/talk.h"

#include "base/file.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a descriptor ---- */

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

int talk_send_fd(int s, int fd) {
    union control control = {{0}};
    struct iovec one = {(char[]){0}, 1};
    struct msghdr m = {.msg_iov = &one,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(s, &m, MSG_NOSIGNAL) == 1 ? 0 : ERR_SYSTEM;
}

int talk_receive_fd(int s) {
    union control control = {{0}};
    char byte;
    struct iovec one = {&byte, 1};
    struct msghdr m = {.msg_iov = &one,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(s, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR(&m) : NULL;
    int fd = -1;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

/* ---- bytes ---- */

static int read_exactly(int s, void *out, size_t n) {
    uint8_t *at = out;
    while (n > 0) {
        ssize_t got = read(s, at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 ? ERR_CLOSED : ERR_SYSTEM;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

int talk_send_environment(int s, struct view blocks) {
    uint32_t n = (uint32_t)blocks.n;
    if (blocks.n > TALK_ENVIRONMENT_MAX)
        return ERR_LIMIT;
    int result = file_write(s, view_of(&n, sizeof n));
    return result == 0 ? file_write(s, blocks) : result;
}

int talk_receive_environment(int s, struct buf *blocks) {
    uint32_t n;
    int result = read_exactly(s, &n, sizeof n);
    if (result == 0 && n > TALK_ENVIRONMENT_MAX)
        result = ERR_BAD;
    uint8_t *p = result == 0 ? buf_reserve(blocks, n) : NULL;
    if (result == 0 && n > 0)
        result = p ? read_exactly(s, p, n) : ERR_LIMIT;
    if (result == 0)
        buf_commit(blocks, n);
    return result;
}

int talk_send_status(int s, int status) {
    return file_write(s, view_of(&status, sizeof status));
}

int talk_receive_status(int s, int *status) {
    return read_exactly(s, status, sizeof *status);
}

#include "run/talk.h"

#include "base/file.h"
#include "base/peer.h"
#include "run/report.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a descriptor ---- */

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

int talk_send_fd(int s, int fd) {
    return peer_send(s, view_of("", 1), &fd, 1, 0) == 1 ? 0 : ERR_SYSTEM;
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

/* ---- probing ---- */

int talk_send_again(int s) {
    return file_write(s, VIEW("p"));
}

int talk_receive_again(int s) {
    char byte;
    ssize_t n = recv(s, &byte, 1, MSG_DONTWAIT);
    return n == 1 ? 0 : n < 0 && (errno == EAGAIN || errno == EINTR) ? ERR_AGAIN : ERR_CLOSED;
}

/* Of none, too, a packet has a byte: else it would be taken for the end. */
int talk_send_report(int line, struct view report) {
    struct iovec parts[] = {{(char[]){'r'}, 1}, {(void *)(uintptr_t)report.p, report.n}};
    const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(line, &m, MSG_NOSIGNAL) == (ssize_t)report.n + 1 ? 0 : ERR_SYSTEM;
}

int talk_receive_report(int line, struct buf *report) {
    uint8_t *room = buf_reserve(report, REPORT_MAX);
    char word;
    struct iovec parts[] = {{&word, 1}, {room, REPORT_MAX}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n;
    if (!room)
        return ERR_MEMORY;
    do
        n = recvmsg(line, &m, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n == 0 ? ERR_CLOSED : ERR_SYSTEM;
    buf_commit(report, (size_t)n - 1);
    return 0;
}

int talk_send_go(int line) {
    return send(line, "g", 1, MSG_NOSIGNAL) == 1 ? 0 : ERR_SYSTEM;
}

int talk_receive_go(int line) {
    char word;
    ssize_t n;
    do
        n = recv(line, &word, 1, 0);
    while (n < 0 && errno == EINTR);
    return n == 1 ? 0 : n == 0 ? ERR_CLOSED : ERR_SYSTEM;
}

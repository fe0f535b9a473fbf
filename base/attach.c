#include "base/attach.h"

#include "base/patience.h"
#include "base/peer.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_MAX = 256 };

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(ATTACH_LISTENERS_MAX * sizeof(int))];
};

int attach_connect(const char *path) {
    return peer_connect(path, SOCK_SEQPACKET);
}

/* ---- the request ---- */

static int send_with(int fd, struct view bytes, const int *fds, size_t n) {
    /* Of who was refused before he asked the answer says why. */
    return peer_send(fd, bytes, fds, n, 0) == (ssize_t)bytes.n || errno == EPIPE ? 0 : ERR_SYSTEM;
}

int attach_send_request(int fd, const struct attach_request *r) {
    struct buf b;
    buf_init(&b, REQUEST_MAX);
    if (r->n > ATTACH_LISTENERS_MAX || r->sandbox.n > ATTACH_NAME_MAX)
        return ERR_LIMIT;
    buf_put_u8(&b, ATTACH_VERSION);
    buf_put_block(&b, r->sandbox);
    buf_put_u8(&b, (uint8_t)r->n);
    buf_put(&b, view_of(r->kinds, r->n));
    int result = buf_ok(&b) ? send_with(fd, buf_view(&b), r->fds, r->n) : ERR_MEMORY;
    buf_free(&b);
    return result;
}

/* Nothing else is asked of it: a file's server would be asked as well. */
static bool is_socket(int fd) {
    int type;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

bool attach_close_listeners(const struct attach_request *r, bool files) {
    bool all = true;
    for (size_t i = 0; i < r->n; i++) {
        if (files || is_socket(r->fds[i]))
            patience_close(r->fds[i]);
        else
            all = false;
    }
    return all;
}

/* Every descriptor that came, whatever else is wrong. */
static size_t take_descriptors(struct msghdr *m, int fds[ATTACH_LISTENERS_MAX]) {
    size_t n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof *fds; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (n < ATTACH_LISTENERS_MAX)
                fds[n++] = fd;
            else
                close(fd);
        }
    }
    return n;
}

static bool read_request(struct view bytes, struct attach_request *r) {
    struct reader in = reader_of(bytes);
    uint8_t version = read_u8(&in);
    r->sandbox = read_block(&in, ATTACH_NAME_MAX);
    r->n = read_u8(&in);
    if (in.bad || version != ATTACH_VERSION || r->n > ATTACH_LISTENERS_MAX || in.rest.n != r->n)
        return false;
    for (size_t i = 0; i < r->n; i++)
        r->kinds[i] = read_u8(&in);
    return read_done(&in);
}

/* Appends the packet's bytes. m says where descriptors go. */
static int receive_packet(int fd, struct buf *out, struct msghdr *m, int flags) {
    uint8_t *room = buf_reserve(out, REQUEST_MAX);
    struct iovec iov = {room, REQUEST_MAX};
    if (!room)
        return ERR_MEMORY;
    m->msg_iov = &iov;
    m->msg_iovlen = 1;
    ssize_t n = recvmsg(fd, m, flags | MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    m->msg_iov = NULL;
    if (n <= 0)
        return n == 0 ? ERR_CLOSED : errno == EAGAIN || errno == EINTR ? ERR_AGAIN : ERR_SYSTEM;
    buf_commit(out, (size_t)n);
    return 0;
}

int attach_look_at_request(int fd, struct buf *out, struct attach_request *r) {
    struct msghdr m = {.msg_control = NULL};
    int result = receive_packet(fd, out, &m, MSG_PEEK);
    if (result != 0)
        return result;
    return !(m.msg_flags & MSG_TRUNC) && read_request(buf_view(out), r) ? 0 : ERR_BAD;
}

int attach_receive_request(int fd, struct buf *out, struct attach_request *r) {
    union control control;
    struct msghdr m = {.msg_control = &control, .msg_controllen = sizeof control};
    r->n = 0;
    int result = receive_packet(fd, out, &m, 0);
    if (result != 0)
        return result;
    size_t came = take_descriptors(&m, r->fds);
    bool good =
        !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && read_request(buf_view(out), r) && r->n == came;
    r->n = came;
    return good ? 0 : ERR_BAD;
}

/* ---- the answer ---- */

int attach_send_answer(int fd, const struct attach_answer *a) {
    struct buf b;
    buf_init_cleared(&b, ATTACH_ANSWER_MAX); /* it holds a token */
    buf_put_u8(&b, (uint8_t)-a->err);
    buf_put_block(&b, a->text);
    buf_put_block(&b, a->ca);
    ssize_t sent = -1;
    bool fits = buf_ok(&b);
    if (fits)
        sent = send(fd, buf_view(&b).p, buf_len(&b), MSG_NOSIGNAL | MSG_DONTWAIT);
    int result = !fits ? ERR_LIMIT : sent == (ssize_t)buf_len(&b) ? 0 : ERR_SYSTEM;
    buf_free(&b);
    return result;
}

int attach_receive_answer(int fd, struct buf *out, struct attach_answer *a) {
    uint8_t *room = buf_reserve(out, ATTACH_ANSWER_MAX);
    bool reset = false;
    ssize_t n;
    if (!room)
        return ERR_MEMORY;
    /* Who was refused before he asked is told so once, before the answer. */
    do {
        n = recv(fd, room, ATTACH_ANSWER_MAX, 0);
    } while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset && (reset = true))));
    if (n <= 0)
        return n == 0 ? ERR_CLOSED : ERR_SYSTEM;
    buf_commit(out, (size_t)n);
    struct reader r = reader_of(buf_view(out));
    a->err = -(int)read_u8(&r);
    a->text = read_block(&r, ATTACH_ANSWER_MAX);
    a->ca = read_block(&r, ATTACH_ANSWER_MAX);
    return read_done(&r) ? 0 : ERR_BAD;
}

/* ---- probes ---- */

int attach_send_report(int fd, struct view report) {
    struct iovec parts[] = {{(char[]){ATTACH_REPORT}, 1}, {(void *)(uintptr_t)report.p, report.n}};
    const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    if (report.n > ATTACH_REPORT_MAX)
        return ERR_LIMIT;
    return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)report.n + 1 ? 0 : ERR_SYSTEM;
}

static int no_packet(ssize_t n) {
    return n == 0 || errno == ECONNRESET       ? ERR_CLOSED
           : errno == EAGAIN || errno == EINTR ? ERR_AGAIN
                                               : ERR_SYSTEM;
}

int attach_receive_report(int fd, struct buf *report) {
    uint8_t *room = buf_reserve(report, ATTACH_REPORT_MAX);
    char word;
    struct iovec parts[] = {{&word, 1}, {room, ATTACH_REPORT_MAX}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    if (!room)
        return ERR_MEMORY;
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
    if (n <= 0)
        return no_packet(n);
    /* A descriptor that came along has nowhere to go: the kernel closed it. */
    if (word != ATTACH_REPORT || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        return ERR_BAD;
    buf_commit(report, (size_t)n - 1);
    return 0;
}

int attach_send_ask(int fd) {
    return send(fd, (char[]){ATTACH_ASK}, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : ERR_SYSTEM;
}

int attach_receive_ask(int fd) {
    char word;
    ssize_t n = recv(fd, &word, 1, MSG_DONTWAIT);
    if (n <= 0)
        return no_packet(n);
    return word == ATTACH_ASK ? 0 : ERR_BAD;
}

/*
 * A hostile client of the control socket. The first byte says whether a
 * descriptor goes along with the rest, which is the stream; never the client's
 * own, which would keep it open until it idles. Control must be there
 * afterwards, without the client.
 */
#include "daemon/control_messages.h"
#include "base/child.h"
#include "base/log.h"
#include "daemon/control.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 65536 };

static struct loop *loop;
static int parent, broker, null;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_size = sizeof(sa_family_t); /* the kernel chooses an abstract name */

static void require(bool ok) {
    if (!ok)
        abort();
}

static void send_frame(int to, uint16_t type, struct view body, int fd) {
    uint8_t frame[256] = {[3] = (uint8_t)body.n, [5] = (uint8_t)type, [7] = fd >= 0};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec iov = {frame, CHANNEL_HEADER_SIZE + body.n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (body.n)
        memcpy(frame + CHANNEL_HEADER_SIZE, body.p, body.n);
    if (fd >= 0) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        *c = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    require(sendmsg(to, &msg, 0) == (ssize_t)iov.iov_len);
}

/* Asks for the status until no client is left. */
static void settle(void) {
    static char text[65536];
    for (;;) {
        ssize_t n = -1;
        send_frame(parent, PARENT_STATUS_ASK, VIEW(""), -1);
        while (n < 0) {
            require(loop_turn(loop) == 0);
            n = recv(parent, text, sizeof text, MSG_DONTWAIT);
        }
        while (recv(broker, text, 1, MSG_DONTWAIT) > 0)
            ;
        if (memmem(text, (size_t)n, "\"clients\":0,", 12))
            return;
    }
}

static void start(void) {
    struct role_args args = {.role = ROLE_CONTROL, .listeners = 1};
    int fds[2], listener = socket(AF_UNIX, SOCK_STREAM, 0);
    log_open("fuzz", LOG_FATAL);
    require(bind(listener, (struct sockaddr *)&address, address_size) == 0 &&
            listen(listener, 16) == 0);
    address_size = sizeof address;
    require(getsockname(listener, (struct sockaddr *)&address, &address_size) == 0);
    require(channel_pair(fds) == 0);
    parent = fcntl(fds[0], F_DUPFD, 64);
    int child = fcntl(fds[1], F_DUPFD, 64), high = fcntl(listener, F_DUPFD, 64);
    require(dup2(child, PARENT_FD) >= 0 && dup2(high, LISTENER_FD) >= 0);
    loop = loop_new();
    require(control_new(loop, &args) != NULL);
    require(channel_pair(fds) == 0);
    broker = fds[0];
    send_frame(parent, PARENT_FILE, VIEW("\0\0\0\14control-uids"), open("/dev/null", O_RDONLY));
    null = open("/dev/null", O_RDONLY);
    send_frame(parent, PARENT_PEER, VIEW("\4\0\0\0\0\0\0\0\6broker"), fds[1]);
    _Static_assert(ROLE_BROKER == 4, "as in the frame above");
    settle();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!loop)
        start();
    if (size < 1 || size > INPUT_MAX)
        return 0;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    require(connect(fd, (struct sockaddr *)&address, address_size) == 0);
    if (data[0] & 1) {
        char bytes[CMSG_SPACE(sizeof(int))] = {0};
        struct iovec iov = {(void *)(uintptr_t)(data + 1), size - 1};
        struct msghdr msg = {
            .msg_iov = &iov, .msg_iovlen = 1, .msg_control = bytes, .msg_controllen = sizeof bytes};
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        *c = (struct cmsghdr){CMSG_LEN(sizeof null), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(c), &null, sizeof null);
        require(sendmsg(fd, &msg, 0) >= 0);
    } else {
        require(write(fd, data + 1, size - 1) >= 0);
    }
    close(fd);
    settle();
    return 0;
}

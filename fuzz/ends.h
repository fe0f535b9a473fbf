/*
 * The ends of channels that are not the role's under test: its parent's and its peers', spoken to in
 * frames that the channel itself would not make (base/channel.h).
 */
#ifndef FUZZ_ENDS_H
#define FUZZ_ENDS_H

#include "base/child.h"
#include "base/log.h"
#include "base/peer.h"
#include "fuzz/require.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define NOTHING ((struct view){NULL, 0})

/* ---- sending ---- */

/* As much as the socket takes; fd: -1, or a descriptor to go along, which is closed here. */
static inline void send_bytes_fd(int to, struct view v, int fd) {
    (void)!peer_send(to, v, &fd, fd >= 0, MSG_DONTWAIT);
    if (fd >= 0)
        close(fd);
}

static inline void put_frame(struct buf *out, uint16_t type, uint32_t id, uint32_t generation,
                             struct view body, bool with_fd) {
    buf_put_u32(out, (uint32_t)body.n);
    buf_put_u16(out, type);
    buf_put_u16(out, with_fd);
    buf_put_u32(out, id);
    buf_put_u32(out, generation);
    buf_put(out, body);
}

static inline void send_frame(int to, uint16_t type, uint32_t id, uint32_t generation,
                              struct view body, int fd) {
    struct buf b;
    buf_init(&b, CHANNEL_HEADER_SIZE + CHANNEL_BODY_MAX);
    put_frame(&b, type, id, generation, body, fd >= 0);
    send_bytes_fd(to, buf_view(&b), fd);
    buf_free(&b);
}

/* ---- receiving ---- */

struct end {
    int fd;
    struct buf in;
    size_t used; /* of in: a frame that was looked at */
};

static inline void end_open(struct end *e, int fd) {
    *e = (struct end){.fd = fd};
    evutil_make_socket_nonblocking(fd);
    buf_init(&e->in, CHANNEL_OUT_MAX + CHANNEL_BODY_MAX);
}

static inline void end_close(struct end *e) {
    if (e->fd >= 0)
        close(e->fd);
    buf_free(&e->in);
    *e = (struct end){.fd = -1};
}

/* Takes in what is there; false: nothing. */
static inline bool end_read(struct end *e) {
    ssize_t n = 0;
    bool any = false;
    while (e->fd >= 0) {
        uint8_t *p = buf_reserve(&e->in, 65536);
        REQUIRE(p);
        n = read(e->fd, p, 65536);
        if (n <= 0)
            break;
        buf_commit(&e->in, (size_t)n);
        any = true;
    }
    return any;
}

/* The next message; its views hold until the next call. */
static inline bool end_next(struct end *e, struct message *m) {
    buf_consume(&e->in, e->used);
    e->used = 0;
    struct reader r = reader_of(buf_view(&e->in));
    size_t n = read_u32(&r);
    m->type = read_u16(&r);
    read_u16(&r);
    m->id = read_u32(&r);
    m->generation = read_u32(&r);
    m->body = read_bytes(&r, n);
    if (r.bad)
        return false;
    e->used = CHANNEL_HEADER_SIZE + n;
    return true;
}

/* ---- the parent ---- */

/* Its end of the channel that the role will find on PARENT_FD; before anything else takes that place. */
static inline int open_parent(void) {
    int fds[2];
    REQUIRE(channel_pair(fds) == 0);
    int high = fcntl(fds[0], F_DUPFD, 64), child = fcntl(fds[1], F_DUPFD, 64);
    close(fds[0]);
    close(fds[1]);
    REQUIRE(high >= 0 && dup2(child, PARENT_FD) == PARENT_FD);
    close(child);
    return high;
}

static inline int memory_file(struct view content) {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(write(fd, content.p, content.n) == (ssize_t)content.n);
    REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

static inline void send_file(int parent, const char *name, struct view content) {
    struct buf b;
    buf_init(&b, 64);
    buf_put_block(&b, view_str(name));
    send_frame(parent, PARENT_FILE, 0, 0, buf_view(&b), memory_file(content));
    buf_free(&b);
}

static inline void send_peer(int parent, enum role role, uint32_t lane, struct view name, int fd) {
    struct buf b;
    buf_init(&b, 512);
    buf_put_u8(&b, (uint8_t)role);
    buf_put_u32(&b, lane);
    buf_put_block(&b, name);
    send_frame(parent, PARENT_PEER, 0, 0, buf_view(&b), fd);
    buf_free(&b);
}

/* text: of the generation (policy/bundle.h), prepared and used. */
static inline void send_generation(int parent, uint32_t number, struct view text) {
    send_frame(parent, PARENT_GENERATION, 0, number, NOTHING, memory_file(text));
    send_frame(parent, PARENT_COMMIT, 0, number, NOTHING, -1);
}

/* ---- turns of the role's loop that do not wait, and go on where the role would have ended ---- */

static inline void on_tick(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    (void)ctx;
}

static inline void turns(struct loop *loop, int n) {
    static struct event *tick;
    const struct timeval now = {0, 0};
    if (!tick)
        tick = event_new(loop_base(loop), -1, 0, on_tick, NULL);
    while (n-- > 0) {
        event_add(tick, &now);
        loop_resume(loop);
        REQUIRE(loop_turn(loop) == 0);
    }
}

#endif

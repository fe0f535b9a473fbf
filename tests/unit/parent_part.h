/*
 * The parent's part towards a role under test: the files, peers and generations that it hands over.
 */
#ifndef TESTS_UNIT_PARENT_PART_H
#define TESTS_UNIT_PARENT_PART_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/child.h"
#include "policy/bundle.h"

#include <sys/mman.h>
#include <unistd.h>

static int memory_file(struct view content) {
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(write(fd, content.p, content.n), (ssize_t)content.n);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static inline void parent_sends_file(struct channel *ch, const char *name, struct view content) {
    struct buf b;
    buf_init(&b, 64);
    buf_put_block(&b, view_str(name));
    channel_send_fd(ch, PARENT_FILE, 0, 0, buf_view(&b), memory_file(content));
    buf_free(&b);
}

/* fd: the peer's end of a channel, or of audit's socket; it is closed. */
static inline void parent_sends_peer(struct channel *ch, enum role role, uint32_t lane,
                                     struct view name, int fd) {
    struct buf b;
    buf_init(&b, 512);
    buf_put_u8(&b, (uint8_t)role);
    buf_put_u32(&b, lane);
    buf_put_block(&b, name);
    channel_send_fd(ch, PARENT_PEER, 0, 0, buf_view(&b), fd);
    buf_free(&b);
}

static inline void parent_sends_generation(struct channel *ch, uint32_t number,
                                           const struct bundle *bundle) {
    struct buf text;
    buf_init(&text, 1 << 20);
    bundle_write(bundle, &text);
    assert_true(buf_ok(&text));
    channel_send_fd(ch, PARENT_GENERATION, 0, number, VIEW(""), memory_file(buf_view(&text)));
    buf_free(&text);
}

/* ---- turns of its loop ---- */

static inline void on_tick(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    (void)ctx;
}

/* One, of a millisecond at most. */
static inline void parent_turn(struct loop *loop) {
    struct timeval ms = {0, 1000};
    event_base_once(loop_base(loop), -1, EV_TIMEOUT, on_tick, NULL, &ms);
    assert_int_equal(loop_turn(loop), 0);
}

/* Until the condition holds, for at most ten seconds. */
#define WAIT_FOR(loop, condition)                                                                  \
    do {                                                                                           \
        for (int turns_ = 0; !(condition) && turns_ < 10000; turns_++)                             \
            parent_turn(loop);                                                                     \
        assert_true(condition);                                                                    \
    } while (0)

#endif

#include "broker/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 64 * 1024 };

struct transfer {
    struct event *ready, *deadline;
    struct buf bytes;
    size_t max;
    transfer_done *done;
    void *ctx;
    int fd, flags;
    bool writing, by_line;
};

void transfer_free(struct transfer *t) {
    if (!t)
        return;
    if (t->ready)
        event_free(t->ready);
    if (t->deadline)
        event_free(t->deadline);
    if (t->flags >= 0)
        (void)fcntl(t->fd, F_SETFL, t->flags);
    close(t->fd);
    buf_free(&t->bytes);
    free(t);
}

static void finish(struct transfer *t, int result) {
    event_del(t->ready);
    event_del(t->deadline);
    t->done(t->ctx, t, result, result == 0 ? buf_view(&t->bytes) : (struct view){NULL, 0});
}

/* ERR_AGAIN: wait; anything else is the end. */
static int read_piece(struct transfer *t) {
    /* One byte beyond the maximum tells a longer source from a full one. */
    size_t left = t->max + 1 - buf_len(&t->bytes), want = left < PIECE ? left : PIECE;
    uint8_t *p = buf_reserve(&t->bytes, want);
    if (!p)
        return ERR_MEMORY;
    ssize_t n = read(t->fd, p, want);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? ERR_AGAIN : ERR_SYSTEM;
    buf_commit(&t->bytes, (size_t)n);
    if (buf_len(&t->bytes) > t->max)
        return ERR_LIMIT;
    if (n == 0)
        return 0;
    struct view v = buf_view(&t->bytes);
    return t->by_line && view_find(v, '\n') < v.n ? 0 : 1;
}

static int write_piece(struct transfer *t) {
    struct view v = view_head(buf_view(&t->bytes), PIECE);
    if (v.n == 0)
        return fsync(t->fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : ERR_SYSTEM;
    ssize_t n = write(t->fd, v.p, v.n);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? ERR_AGAIN : ERR_SYSTEM;
    buf_consume(&t->bytes, (size_t)n);
    return 1;
}

static void wait_for(struct transfer *t, short what) {
    event_del(t->ready);
    event_assign(t->ready, event_get_base(t->ready), t->fd, what, event_get_callback(t->ready), t);
    event_add(t->ready, NULL);
}

static void on_ready(evutil_socket_t fd, short what, void *ctx) {
    struct transfer *t = ctx;
    int result;
    (void)fd;
    (void)what;
    do
        result = t->writing ? write_piece(t) : read_piece(t);
    while (result == 1 || (result == ERR_SYSTEM && errno == EINTR));
    if (result == ERR_AGAIN)
        wait_for(t, t->writing ? EV_WRITE : EV_READ);
    else
        finish(t, result);
}

static void on_deadline(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    finish(ctx, ERR_TIMEOUT);
}

static bool prepare(struct transfer *t) {
    struct stat st;
    t->flags = fcntl(t->fd, F_GETFL);
    if (t->flags < 0 || fcntl(t->fd, F_SETFL, t->flags | O_NONBLOCK) != 0 || fstat(t->fd, &st) != 0)
        return false;
    t->by_line = S_ISCHR(st.st_mode);
    return true;
}

/*
 * A plain file cannot be waited for: the first try is made at once, from the
 * loop, and only what answers EAGAIN is given to epoll.
 */
static struct transfer *start(struct loop *l, struct transfer *t, unsigned seconds) {
    struct timeval now = {0, 0}, end = {(time_t)seconds, 0};
    bool ok = prepare(t);
    t->ready = event_new(loop_base(l), -1, 0, on_ready, t);
    t->deadline = event_new(loop_base(l), -1, 0, on_deadline, t);
    if (ok && t->ready && t->deadline && event_add(t->ready, &now) == 0 &&
        event_add(t->deadline, &end) == 0)
        return t;
    transfer_free(t);
    return NULL;
}

static struct transfer *transfer_new(int fd, transfer_done *done, void *ctx) {
    struct transfer *t = calloc(1, sizeof *t);
    if (!t) {
        close(fd);
        return NULL;
    }
    t->fd = fd;
    t->flags = -1;
    t->done = done;
    t->ctx = ctx;
    return t;
}

struct transfer *transfer_read(struct loop *l, int fd, size_t max, bool secret, unsigned seconds,
                               transfer_done *done, void *ctx) {
    struct transfer *t = transfer_new(fd, done, ctx);
    if (!t)
        return NULL;
    t->max = max;
    if (secret)
        buf_init_secret(&t->bytes, max + 1);
    else
        buf_init(&t->bytes, max + 1);
    return start(l, t, seconds);
}

struct transfer *transfer_write(struct loop *l, int fd, struct buf *bytes, unsigned seconds,
                                transfer_done *done, void *ctx) {
    struct transfer *t = transfer_new(fd, done, ctx);
    if (!t)
        return NULL;
    t->writing = true;
    t->bytes = *bytes;
    buf_init(bytes, bytes->max);
    return start(l, t, seconds);
}

#include "base/channel.h"

#include "base/log.h"
#include "base/peer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    HEADER_FD = 1,
    FDS_MAX = 16,       /* received and not yet claimed by a message */
    SENDING_MAX = 4096, /* waiting to be sent */
    /* A long body with its header, and nothing of the next message, which would have to be moved. */
    READ_SIZE = 256 * 1024 + (int)CHANNEL_HEADER_SIZE,
    LONG_BODY = 16 * 1024,   /* is not gathered, but written at once */
    SECRET_SIZE = 32 * 1024, /* either buffer of a channel in the arena, which is small */
};

/* A descriptor that leaves with the byte `at` bytes into the unsent ones. */
struct passing {
    size_t at;
    int fd;
};

struct channel {
    struct loop *loop;
    struct event *readable, *writable;
    struct deferred flush;
    const struct channel_rule *rules[64];
    uint64_t seen; /* bit per type */
    channel_closed *closed;
    void *ctx;
    void (*drained)(void *ctx);
    void *drained_ctx;
    struct buf in, out;
    size_t open_at;          /* offset of the message being built, in unread bytes of out */
    struct passing *sending; /* in the order of `at` */
    int received[FDS_MAX];
    size_t n_sending, cap_sending, n_received;
    unsigned flags;
    int fd;
    bool building, dead, freed, handling;
};

static void channel_destroy(struct channel *ch) {
    if (ch->readable)
        event_free(ch->readable);
    if (ch->writable)
        event_free(ch->writable);
    for (size_t i = 0; i < ch->n_sending; i++)
        close(ch->sending[i].fd);
    for (size_t i = 0; i < ch->n_received; i++)
        close(ch->received[i]);
    loop_forget(ch->loop, &ch->flush);
    buf_free(&ch->in);
    buf_free(&ch->out);
    close(ch->fd);
    free(ch->sending);
    free(ch);
}

void channel_free(struct channel *ch) {
    if (!ch)
        return;
    if (!ch->handling) {
        channel_destroy(ch);
        return;
    }
    /* A handler is on the stack: its caller destroys. */
    ch->dead = ch->freed = true;
}

/* Reports the end once; the owner frees, now or later. */
static void channel_fail(struct channel *ch, int why) {
    if (ch->dead)
        return;
    ch->dead = true;
    event_del(ch->readable);
    event_del(ch->writable);
    bool nested = ch->handling;
    ch->handling = true;
    ch->closed(ch->ctx, ch, why);
    ch->handling = nested;
    if (ch->freed && !nested)
        channel_destroy(ch);
}

/* ---- sending ---- */

static ssize_t write_some(struct channel *ch, struct view v) {
    if (ch->n_sending == 0 || ch->sending[0].at > 0) {
        size_t n = ch->n_sending && ch->sending[0].at < v.n ? ch->sending[0].at : v.n;
        return write(ch->fd, v.p, n);
    }
    /* The descriptor is attached to its message's first byte; stop before the next one's. */
    size_t n = ch->n_sending > 1 && ch->sending[1].at < v.n ? ch->sending[1].at : v.n;
    ssize_t sent = peer_send(ch->fd, view_head(v, n), &ch->sending[0].fd, 1, 0);
    if (sent > 0) {
        close(ch->sending[0].fd);
        ch->n_sending--;
        memmove(ch->sending, ch->sending + 1, ch->n_sending * sizeof *ch->sending);
    }
    return sent;
}

/* Writes what the kernel takes. ERR_AGAIN: there is more; ERR_CLOSED, ERR_SYSTEM: no use. */
static int write_out(struct channel *ch) {
    while (!ch->dead && buf_ok(&ch->out) && buf_len(&ch->out) > 0) {
        ssize_t n = write_some(ch, buf_view(&ch->out));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return ERR_AGAIN;
        if (n < 0)
            return errno == EPIPE || errno == ECONNRESET ? ERR_CLOSED : ERR_SYSTEM;
        buf_consume(&ch->out, (size_t)n);
        for (size_t i = 0; i < ch->n_sending; i++)
            ch->sending[i].at -= (size_t)n;
    }
    return 0;
}

void channel_flush(struct channel *ch) {
    assert(!ch->building);
    int result = write_out(ch);
    if (result == ERR_AGAIN)
        event_add(ch->writable, NULL);
    else if (result != 0)
        channel_fail(ch, result);
}

void channel_on_drained(struct channel *ch, void (*drained)(void *ctx), void *ctx) {
    ch->drained = drained;
    ch->drained_ctx = ctx;
}

static void on_flush(void *ctx) {
    channel_flush(ctx);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx) {
    struct channel *ch = ctx;
    (void)fd;
    (void)what;
    /* Either call may end with the owner freeing the channel. */
    ch->handling = true;
    channel_flush(ch);
    if (!ch->dead && buf_len(&ch->out) == 0 && ch->drained)
        ch->drained(ch->drained_ctx);
    ch->handling = false;
    if (ch->freed)
        channel_destroy(ch);
}

struct buf *channel_begin(struct channel *ch, uint16_t type, uint32_t id, uint32_t generation) {
    assert(!ch->building);
    ch->building = true;
    ch->open_at = buf_len(&ch->out);
    buf_put_u32(&ch->out, 0);
    buf_put_u16(&ch->out, type);
    buf_put_u16(&ch->out, 0);
    buf_put_u32(&ch->out, id);
    buf_put_u32(&ch->out, generation);
    return &ch->out;
}

static void after_message(struct channel *ch) {
    ch->building = false;
    /* A turn may send more than the buffer holds. What goes wrong here goes wrong again at its end. */
    if (channel_is_full(ch) && write_out(ch) == ERR_AGAIN)
        event_add(ch->writable, NULL); /* whoever saw it full is told when it is empty */
    loop_defer(ch->loop, &ch->flush);
}

void channel_end(struct channel *ch) {
    assert(ch->building);
    if (ch->dead) {
        ch->building = false;
        buf_reset(&ch->out);
        return;
    }
    /*
     * A message that did not fit leaves half a message behind: the peer must
     * not be sent that, so the channel ends, but outside the caller's stack.
     */
    if (buf_ok(&ch->out))
        buf_patch_u32(&ch->out, ch->open_at,
                      (uint32_t)(buf_len(&ch->out) - ch->open_at - CHANNEL_HEADER_SIZE));
    after_message(ch);
}

/* A long body need not be copied: what is gathered is small, and no descriptor is to leave with it. */
static bool may_write_long(const struct channel *ch, struct view body) {
    return body.n >= LONG_BODY && !ch->dead && buf_ok(&ch->out) && ch->n_sending == 0 &&
           buf_len(&ch->out) < LONG_BODY;
}

/*
 * Writes what is gathered, its last header and the body behind them from where it lies; how much of the
 * body the kernel took. What goes wrong goes wrong again at the end of the turn.
 */
static size_t write_long(struct channel *ch, struct view body) {
    struct view before = buf_view(&ch->out);
    const struct iovec parts[] = {{(void *)(uintptr_t)before.p, before.n},
                                  {(void *)(uintptr_t)body.p, body.n}};
    ssize_t put = writev(ch->fd, parts, 2);
    size_t n = put > 0 ? (size_t)put : 0;
    buf_consume(&ch->out, n < before.n ? n : before.n);
    return n > before.n ? n - before.n : 0;
}

void channel_send(struct channel *ch, uint16_t type, uint32_t id, uint32_t generation,
                  struct view body) {
    struct buf *b = channel_begin(ch, type, id, generation);
    if (!may_write_long(ch, body)) {
        buf_put(b, body);
        channel_end(ch);
        return;
    }
    buf_patch_u32(b, ch->open_at, (uint32_t)body.n);
    buf_put(b, view_skip(body, write_long(ch, body)));
    after_message(ch);
}

static bool room_for_fd(struct channel *ch) {
    if (ch->n_sending < ch->cap_sending)
        return true;
    size_t cap = ch->cap_sending ? ch->cap_sending * 2 : FDS_MAX;
    struct passing *more = cap > SENDING_MAX ? NULL : realloc(ch->sending, cap * sizeof *more);
    if (!more)
        return false;
    ch->sending = more;
    ch->cap_sending = cap;
    return true;
}

void channel_send_fd(struct channel *ch, uint16_t type, uint32_t id, uint32_t generation,
                     struct view body, int fd) {
    if (ch->dead || !room_for_fd(ch)) {
        close(fd);
        ch->out.failed = ch->out.failed || !ch->dead;
        loop_defer(ch->loop, &ch->flush);
        return;
    }
    ch->sending[ch->n_sending++] = (struct passing){buf_len(&ch->out), fd};
    struct buf *b = channel_begin(ch, type, id, generation);
    buf_put(b, body);
    if (buf_ok(b))
        b->p[b->pos + ch->open_at + 7] = HEADER_FD;
    channel_end(ch);
}

size_t channel_unsent(const struct channel *ch) {
    return buf_len(&ch->out);
}

bool channel_is_full(const struct channel *ch) {
    return buf_len(&ch->out) > ch->out.max / 2;
}

/* ---- receiving ---- */

static int take_fd(struct channel *ch) {
    int fd = ch->received[0];
    ch->n_received--;
    memmove(ch->received, ch->received + 1, ch->n_received * sizeof *ch->received);
    return fd;
}

static int handle_message(struct channel *ch, struct message *m, uint16_t flags) {
    const struct channel_rule *rule = m->type < 64 ? ch->rules[m->type] : NULL;
    if (!rule || m->body.n > rule->max) {
        log_warn("channel: message %u of %zu bytes is not permitted here", m->type, m->body.n);
        return ERR_BAD;
    }
    bool carries = (flags & HEADER_FD) != 0, wanted = (rule->flags & CHANNEL_FD) != 0;
    bool again = (ch->seen >> m->type & 1) != 0;
    if (flags > HEADER_FD || carries != wanted || (carries && ch->n_received == 0) ||
        (again && (rule->flags & CHANNEL_ONCE))) {
        log_warn("channel: %s breaks its rule", rule->name);
        return ERR_BAD;
    }
    ch->seen |= UINT64_C(1) << m->type;
    m->fd = wanted ? take_fd(ch) : -1;
    ch->handling = true;
    int result = rule->handle(ch->ctx, ch, m);
    ch->handling = false;
    if (m->fd >= 0)
        close(m->fd);
    if (result != 0)
        log_warn("channel: %s: %s", rule->name, err_text(result));
    return result;
}

/*
 * A descriptor comes with its message's first byte: when no byte waits, none may be left over, or it
 * would be taken for that of a later message.
 */
static bool no_stray_fd(struct channel *ch) {
    if (ch->n_received == 0 || buf_len(&ch->in) > 0)
        return true;
    log_warn("channel: a descriptor came without its message");
    channel_fail(ch, ERR_BAD);
    return false;
}

/* Handles each whole message in `in`. May end with ch destroyed: then false. */
static bool handle_buffered(struct channel *ch) {
    for (;;) {
        struct reader r = reader_of(buf_view(&ch->in));
        uint32_t length = read_u32(&r);
        struct message m = {.type = read_u16(&r)};
        uint16_t flags = read_u16(&r);
        m.id = read_u32(&r);
        m.generation = read_u32(&r);
        if (!r.bad && length > CHANNEL_BODY_MAX) {
            channel_fail(ch, ERR_BAD);
            return false;
        }
        m.body = read_bytes(&r, length);
        if (r.bad)
            return no_stray_fd(ch);
        int result = handle_message(ch, &m, flags);
        if (ch->freed) {
            channel_destroy(ch);
            return false;
        }
        if (result != 0) {
            channel_fail(ch, ERR_BAD);
            return false;
        }
        if (ch->dead)
            return false;
        buf_consume(&ch->in, CHANNEL_HEADER_SIZE + length);
    }
}

static int keep_fds(struct channel *ch, struct msghdr *msg) {
    int result = msg->msg_flags & MSG_CTRUNC ? ERR_BAD : 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (ch->n_received < FDS_MAX) {
                ch->received[ch->n_received++] = fd;
            } else {
                close(fd);
                result = ERR_BAD;
            }
        }
    }
    return result;
}

static ssize_t read_some(struct channel *ch, uint8_t *p, size_t n, int *why) {
    if (ch->flags & CHANNEL_READ)
        return read(ch->fd, p, n);
    union {
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {p, n};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(ch->fd, &msg, MSG_CMSG_CLOEXEC);
    if (got > 0)
        *why = keep_fds(ch, &msg);
    return got;
}

static void on_readable(evutil_socket_t fd, short what, void *ctx) {
    struct channel *ch = ctx;
    (void)fd;
    (void)what;
    size_t want = buf_room(&ch->in) < READ_SIZE ? buf_room(&ch->in) : READ_SIZE;
    uint8_t *p = want ? buf_reserve(&ch->in, want) : NULL;
    if (!p) {
        channel_fail(ch, ERR_MEMORY);
        return;
    }
    int why = 0;
    ssize_t n = read_some(ch, p, want, &why);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0 || why != 0) {
        channel_fail(ch, why ? why : n == 0 || errno == ECONNRESET ? ERR_CLOSED : ERR_SYSTEM);
        return;
    }
    buf_commit(&ch->in, (size_t)n);
    if (handle_buffered(ch) && !buf_ok(&ch->out))
        channel_fail(ch, ERR_LIMIT);
}

/* ---- life ---- */

static void on_deferred(void *ctx) {
    struct channel *ch = ctx;
    if (!buf_ok(&ch->out))
        channel_fail(ch, ERR_LIMIT);
    else
        on_flush(ch);
}

struct channel *channel_new(struct loop *l, int fd, const struct channel_rule *rules,
                            size_t n_rules, unsigned flags, channel_closed *closed, void *ctx) {
    struct channel *ch = calloc(1, sizeof *ch);
    if (!ch) {
        close(fd);
        return NULL;
    }
    ch->loop = l;
    ch->fd = fd;
    ch->flags = flags;
    ch->closed = closed;
    ch->ctx = ctx;
    ch->flush = (struct deferred){.run = on_deferred, .ctx = ch};
    for (size_t i = 0; i < n_rules; i++) {
        assert(rules[i].type > 0 && rules[i].type < 64 && rules[i].max <= CHANNEL_BODY_MAX);
        ch->rules[rules[i].type] = &rules[i];
    }
    /* One whole message of the largest kind and the beginning of the next must fit. */
    size_t in_max = CHANNEL_HEADER_SIZE + CHANNEL_BODY_MAX + READ_SIZE;
    if (flags & CHANNEL_SECRET) {
        buf_init_secret(&ch->in, SECRET_SIZE);
        buf_init_secret(&ch->out, SECRET_SIZE);
    } else if (flags & CHANNEL_CLEARED) {
        buf_init_cleared(&ch->in, in_max);
        buf_init_cleared(&ch->out, CHANNEL_OUT_MAX);
    } else {
        buf_init(&ch->in, in_max);
        buf_init(&ch->out, CHANNEL_OUT_MAX);
    }
    ch->readable = event_new(loop_base(l), fd, EV_READ | EV_PERSIST, on_readable, ch);
    ch->writable = event_new(loop_base(l), fd, EV_WRITE, on_writable, ch);
    if (!ch->readable || !ch->writable || evutil_make_socket_nonblocking(fd) != 0 ||
        event_add(ch->readable, NULL) != 0) {
        channel_destroy(ch);
        return NULL;
    }
    return ch;
}

int channel_pair(int fds[2]) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return ERR_SYSTEM;
    /* Room for a turn's worth of bulk, so that a full batch is one write. */
    int size = 512 * 1024;
    for (int i = 0; i < 2; i++) {
        setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    }
    return 0;
}

#include "daemon/front.h"

#include "base/log.h"
#include "base/patience.h"
#include "base/peer.h"
#include "broker/broker_messages.h"

#include <errno.h>
#include <unistd.h>

enum { REST_MS = 100 };

/* ---- who knocks ---- */

/* Without a descriptor or memory for it who waits goes on waiting, and the event would come again at once. */
static void rest(struct front *f) {
    const struct timeval a_little = {0, REST_MS * 1000};
    if (event_add(f->rested, &a_little) == 0)
        event_del(f->listener);
}

static void on_rested(evutil_socket_t fd, short what, void *ctx) {
    struct front *f = ctx;
    (void)fd;
    (void)what;
    event_add(f->listener, NULL);
}

static bool is_short(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void on_accept(evutil_socket_t listener, short what, void *ctx) {
    struct front *f = ctx;
    struct ucred who;
    socklen_t size = sizeof who;
    (void)what;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (is_short(errno))
            rest(f);
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || size != sizeof who)
        close(fd);
    else
        f->ops->on_knock(f, fd, &who);
}

bool front_is_elsewhere(const struct front *f, int fd) {
    return peer_namespace(fd) != f->home;
}

void front_drain(int fd) {
    enum { PACKETS_MAX = 64, DRAIN_MS = 10 };
    uint8_t rest[4096];
    uint64_t until = clock_mono() + DRAIN_MS * UINT64_C(1000000);
    patience_begin();
    /* Descriptors in them have nowhere to go, and are closed by the kernel, which may wait. */
    for (int i = 0; i < PACKETS_MAX && recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0; i++)
        if (clock_mono() > until)
            break;
    patience_end();
}

/* ---- broker ---- */

static int take_done(void *ctx, struct channel *ch, struct message *m) {
    struct front *f = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    int code = -(int)read_u8(&r);
    struct view text = read_block(&r, BROKER_TEXT_MAX);
    if (!read_done(&r))
        return ERR_BAD;
    if (m->id)
        f->ops->on_done(f, m->id, code, text);
    return 0;
}

static const struct channel_rule broker_rules[] = {
    {BROKER_DONE, 0, BROKER_TEXT_MAX + 16, take_done, "broker done"},
};

static void lose_broker(struct front *f) {
    channel_free(f->broker);
    f->broker = NULL;
    f->ops->on_broker_lost(f);
}

static void on_broker_closed(void *ctx, struct channel *ch, int why) {
    struct front *f = ctx;
    (void)ch;
    log_line(why == ERR_CLOSED ? LOG_DEBUG : LOG_WARN, "broker's channel: %s", err_text(why));
    lose_broker(f);
    if (why == ERR_BAD || why == ERR_LIMIT)
        child_bad_peer(f->child, ROLE_BROKER, 0);
}

static int attach_broker(struct front *f, int fd) {
    lose_broker(f);
    f->broker = channel_new(f->loop, fd, broker_rules, sizeof broker_rules / sizeof *broker_rules,
                            0, on_broker_closed, f);
    return f->broker ? 0 : ERR_MEMORY;
}

/* ---- peers ---- */

int front_on_peer(void *ctx, enum role role, uint32_t lane, struct view name, int fd) {
    struct front *f = ctx;
    (void)lane;
    (void)name;
    if (role == ROLE_BROKER)
        return attach_broker(f, fd);
    if (role == ROLE_AUDIT)
        return audit_stream_attach(&f->audit, fd);
    close(fd);
    return ERR_BAD;
}

void front_on_peer_gone(void *ctx, enum role role, uint32_t lane) {
    struct front *f = ctx;
    (void)lane;
    if (role == ROLE_BROKER)
        lose_broker(f);
    else if (role == ROLE_AUDIT)
        audit_stream_away(&f->audit);
}

/* ---- life ---- */

bool front_init(struct front *f, struct loop *l, const struct role_args *args, const char *name,
                const struct front_ops *ops, const struct child_ops *child_ops) {
    f->ops = ops;
    f->loop = l;
    f->home = peer_namespace(LISTENER_FD);
    audit_stream_init(&f->audit, l, name, NULL, NULL);
    f->child = child_new(l, args, child_ops, f);
    if (evutil_make_socket_nonblocking(LISTENER_FD) == 0)
        f->listener = event_new(loop_base(l), LISTENER_FD, EV_READ | EV_PERSIST, on_accept, f);
    f->rested = event_new(loop_base(l), -1, 0, on_rested, f);
    return f->child && f->listener && f->rested && patience_prepare() == 0;
}

void front_free(struct front *f) {
    if (f->listener)
        event_free(f->listener);
    if (f->rested)
        event_free(f->rested);
    channel_free(f->broker);
    audit_stream_close(&f->audit);
    child_free(f->child);
}

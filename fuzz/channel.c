/*
 * Bytes of a hostile peer on a channel. The first byte says how they are cut into writes and whether a
 * descriptor comes along; handlers free the channel, refuse and answer.
 */
#include "base/channel.h"
#include "base/log.h"
#include "base/peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct end {
    struct channel *ch;
    size_t bytes;
};

static int take(void *ctx, struct channel *ch, struct message *m) {
    struct end *e = ctx;
    for (size_t i = 0; i < m->body.n; i++)
        e->bytes += m->body.p[i];
    channel_send(ch, 1, m->id, m->generation, m->body);
    return 0;
}

static int keep_fd(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    channel_send_fd(ch, 2, m->id, 0, m->body, m->fd);
    m->fd = -1;
    return 0;
}

static int free_it(void *ctx, struct channel *ch, struct message *m) {
    struct end *e = ctx;
    (void)m;
    channel_free(ch);
    e->ch = NULL;
    return 0;
}

static int refuse(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    (void)ch;
    return m->body.n ? ERR_DENIED : 0;
}

static void on_closed(void *ctx, struct channel *ch, int why) {
    struct end *e = ctx;
    (void)why;
    channel_free(ch);
    e->ch = NULL;
}

static const struct channel_rule rules[] = {
    {1, 0, 64, take, "take"},
    {2, CHANNEL_FD, 64, keep_fd, "keep fd"},
    {3, 0, CHANNEL_BODY_MAX, free_it, "free it"},
    {4, CHANNEL_ONCE, 64, refuse, "refuse"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct loop *loop;
    struct end e = {NULL, 0};
    int fds[2];
    if (!loop) {
        log_open("fuzz", LOG_FATAL);
        loop = loop_new();
    }
    if (size < 2 || size > 65536 || !loop || channel_pair(fds) != 0)
        return 0;
    unsigned step = (data[0] >> 2) + 1u;
    struct view rest = view_of(data + 1, size - 1);
    e.ch = channel_new(loop, fds[0], rules, sizeof rules / sizeof *rules,
                       data[0] & 1 ? CHANNEL_READ : 0, on_closed, &e);
    for (int turn = 0; turn < 8 && e.ch; turn++) {
        size_t n = turn == 7 ? rest.n : step;
        if (rest.n > 0)
            (void)!peer_send(fds[1], view_head(rest, n), &fds[1], (data[0] & 2) != 0, MSG_DONTWAIT);
        rest = view_skip(rest, n);
        event_base_loopexit(loop_base(loop), &(struct timeval){0, 0});
        if (loop_turn(loop) != 0)
            abort();
    }
    channel_free(e.ch);
    close(fds[1]);
    return 0;
}

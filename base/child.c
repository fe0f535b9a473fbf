#include "base/child.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 256, TEXT_MAX = 64 << 20, HEAD_TEXT_MAX = 2048, LANE_TEXT_MAX = 512 };

struct child {
    struct loop *loop;
    struct channel *channel;
    struct child_ops ops;
    void *ctx;
    struct text {
        void *p;
        size_t n;
    } in_use, next;     /* texts of the committed generation, and of the one prepared after it */
    uint32_t prepared;  /* accepted and not yet committed, or 0 */
    uint32_t committed; /* in use, or 0 */
    bool stopping;
};

static void read_peer(struct reader *r, uint8_t *role, uint32_t *lane) {
    *role = read_u8(r);
    *lane = read_u32(r);
    if (*role >= ROLE_COUNT)
        r->bad = true;
}

static int take_peer(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    struct reader r = reader_of(m->body);
    uint8_t role;
    uint32_t lane;
    (void)ch;
    read_peer(&r, &role, &lane);
    struct view name = read_block(&r, NAME_MAX_BYTES);
    if (!read_done(&r) || !c->ops.on_peer)
        return ERR_BAD;
    int fd = m->fd;
    m->fd = -1;
    return c->ops.on_peer(c->ctx, (enum role)role, lane, name, fd);
}

static int take_peer_gone(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    struct reader r = reader_of(m->body);
    uint8_t role;
    uint32_t lane;
    (void)ch;
    read_peer(&r, &role, &lane);
    if (!read_done(&r))
        return ERR_BAD;
    if (c->ops.on_peer_gone)
        c->ops.on_peer_gone(c->ctx, (enum role)role, lane);
    return 0;
}

static int take_file(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    struct view name = read_block(&r, NAME_MAX_BYTES);
    if (!read_done(&r) || !c->ops.on_file)
        return ERR_BAD;
    int fd = m->fd;
    m->fd = -1;
    return c->ops.on_file(c->ctx, name, fd);
}

static void answer_generation(struct child *c, uint32_t generation, int result) {
    if (result == 0) {
        c->prepared = generation;
        channel_send(c->channel, ROLE_READY, 0, generation, (struct view){NULL, 0});
        return;
    }
    log_warn("generation %u is refused: %s", generation, err_text(result));
    struct buf *b = channel_begin(c->channel, ROLE_REFUSED, 0, generation);
    buf_put_block(b, view_str(err_text(result)));
    channel_end(c->channel);
}

static void text_drop(struct text *t) {
    if (t->p)
        munmap(t->p, t->n);
    *t = (struct text){NULL, 0};
}

static int take_generation(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    (void)ch;
    /* Not fstat: the call behind it takes a path too, and most roles may name none. */
    off_t end = lseek(m->fd, 0, SEEK_END);
    if (!c->ops.on_generation || end <= 0 || end > TEXT_MAX)
        return ERR_BAD;
    size_t size = (size_t)end;
    void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, m->fd, 0);
    if (map == MAP_FAILED)
        return ERR_SYSTEM;
    int result = c->ops.on_generation(c->ctx, m->generation, view_of(map, size));
    if (result == 0) {
        text_drop(&c->next);
        c->next = (struct text){map, size};
    } else {
        munmap(map, size);
    }
    answer_generation(c, m->generation, result);
    return 0;
}

static int take_limits(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    (void)ch;
    if (!c->ops.on_generation)
        return ERR_BAD;
    answer_generation(c, m->generation, c->ops.on_generation(c->ctx, m->generation, m->body));
    return 0;
}

static int take_commit(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    (void)ch;
    if (m->generation == 0 || m->generation != c->prepared)
        return ERR_BAD;
    c->prepared = 0;
    c->committed = m->generation;
    if (c->ops.on_commit)
        c->ops.on_commit(c->ctx, m->generation);
    if (c->next.p) {
        text_drop(&c->in_use);
        c->in_use = c->next;
        c->next = (struct text){NULL, 0};
    }
    channel_send(c->channel, ROLE_COMMITTED, 0, m->generation, (struct view){NULL, 0});
    return 0;
}

static int take_in_use(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    uint64_t state = read_u64(&r);
    if (!read_done(&r) || !c->ops.on_in_use)
        return ERR_BAD;
    c->ops.on_in_use(c->ctx, state);
    return 0;
}

static int take_stop(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    (void)ch;
    (void)m;
    c->stopping = true;
    if (c->ops.on_stop)
        c->ops.on_stop(c->ctx);
    else
        loop_stop(c->loop);
    return 0;
}

static int take_status(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    struct buf text;
    buf_init(&text, 16384);
    if (c->ops.on_status)
        c->ops.on_status(c->ctx, &text);
    struct buf *b = channel_begin(ch, ROLE_STATUS, m->id, c->committed);
    buf_put_block(b, buf_ok(&text) ? buf_view(&text) : (struct view){NULL, 0});
    channel_end(ch);
    buf_free(&text);
    return 0;
}

static int take_head_ask(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    struct buf text;
    if (!c->ops.on_head)
        return ERR_BAD;
    buf_init(&text, HEAD_TEXT_MAX);
    int result = c->ops.on_head(c->ctx, &text);
    struct buf *b = channel_begin(ch, ROLE_HEAD, m->id, c->committed);
    buf_put_u8(b, (uint8_t)-result);
    buf_put_block(b, buf_view(&text));
    channel_end(ch);
    buf_free(&text);
    return 0;
}

static int take_answer(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    int code = -(int)read_u8(&r);
    struct view text = read_block(&r, CHANNEL_BODY_MAX);
    if (!read_done(&r) || !c->ops.on_answer)
        return ERR_BAD;
    return c->ops.on_answer(c->ctx, m->id, code, text);
}

static int take_suspended(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    (void)ch;
    return c->ops.on_suspended ? c->ops.on_suspended(c->ctx, m->body) : ERR_BAD;
}

static int take_lane(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    uint8_t news = read_u8(&r);
    struct view text = read_block(&r, LANE_TEXT_MAX);
    if (!read_done(&r) || news >= LANE_NEWS_COUNT || !c->ops.on_lane)
        return ERR_BAD;
    return c->ops.on_lane(c->ctx, m->id, (enum lane_news)news, text);
}

static int take_open(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    (void)m;
    if (!c->ops.on_opened)
        return ERR_BAD;
    c->ops.on_opened(c->ctx);
    channel_send(ch, ROLE_OPENED, 0, c->committed, (struct view){NULL, 0});
    return 0;
}

static int take_probe(void *ctx, struct channel *ch, struct message *m) {
    struct child *c = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    uint32_t ask = read_u32(&r);
    if (!read_done(&r) || !c->ops.on_probe)
        return ERR_BAD;
    c->ops.on_probe(c->ctx, m->id, ask);
    return 0;
}

static const struct channel_rule rules[] = {
    {PARENT_PEER, CHANNEL_FD, 512, take_peer, "parent peer"},
    {PARENT_PEER_GONE, 0, 16, take_peer_gone, "parent peer gone"},
    {PARENT_FILE, CHANNEL_FD, 512, take_file, "parent file"},
    {PARENT_GENERATION, CHANNEL_FD, 16, take_generation, "parent generation"},
    {PARENT_LIMITS, 0, 4096, take_limits, "parent limits"},
    {PARENT_COMMIT, 0, 16, take_commit, "parent commit"},
    {PARENT_IN_USE, 0, 8, take_in_use, "parent in use"},
    {PARENT_STOP, 0, 16, take_stop, "parent stop"},
    {PARENT_STATUS_ASK, 0, 16, take_status, "parent status ask"},
    {PARENT_ANSWER, 0, CHANNEL_BODY_MAX, take_answer, "parent answer"},
    {PARENT_SUSPENDED, CHANNEL_ONCE, CHILD_SUSPENDED_MAX, take_suspended, "parent suspended"},
    {PARENT_LANE, 0, LANE_TEXT_MAX + 8, take_lane, "parent lane"},
    {PARENT_HEAD_ASK, 0, 0, take_head_ask, "parent head ask"},
    {PARENT_OPEN, 0, 0, take_open, "parent open"},
    {PARENT_PROBE, 0, 4, take_probe, "parent probe"},
};

static void on_closed(void *ctx, struct channel *ch, int why) {
    struct child *c = ctx;
    (void)ch;
    if (!c->stopping)
        log_warn("parent's channel: %s", err_text(why));
    loop_stop(c->loop);
}

struct child *child_new(struct loop *l, const struct role_args *args, const struct child_ops *ops,
                        void *ctx) {
    struct child *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->loop = l;
    c->ops = *ops;
    c->ctx = ctx;
    unsigned flags = args->role == ROLE_PROXY ? CHANNEL_READ : 0;
    c->channel =
        channel_new(l, PARENT_FD, rules, sizeof rules / sizeof *rules, flags, on_closed, c);
    if (!c->channel) {
        free(c);
        return NULL;
    }
    return c;
}

void child_free(struct child *c) {
    if (!c)
        return;
    channel_free(c->channel);
    text_drop(&c->in_use);
    text_drop(&c->next);
    free(c);
}

void child_up(struct child *c, struct view extra) {
    struct buf *b = channel_begin(c->channel, ROLE_UP, 0, 0);
    buf_put_block(b, extra);
    channel_end(c->channel);
}

struct channel *child_channel(struct child *c) {
    return c->channel;
}

void child_bad_peer(struct child *c, enum role role, uint32_t lane) {
    struct buf *b = channel_begin(c->channel, ROLE_BAD_PEER, 0, 0);
    buf_put_u8(b, (uint8_t)role);
    buf_put_u32(b, lane);
    channel_end(c->channel);
}

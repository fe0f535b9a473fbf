#include "egress/leaf.h"

#include "base/log.h"
#include "ca/ca_messages.h"
#include "egress/ask.h"
#include "egress/hostile.h"
#include "egress/tunnel.h"
#include "policy/authority.h"

#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 20, BEFORE_END = 3600 };

struct leaf {
    char host[HOST_SIZE];
    uint16_t port;
    struct buf der; /* leaf, then chain */
    size_t leaf_size;
    uint64_t not_after; /* seconds; 0 while it is asked for */
    uint32_t ask;
    uint64_t give_up; /* monotonic: no more retries for another generation */
    struct event *retry;
    struct tunnel *waiting; /* linked by tunnel's next_waiting */
    struct lane *lane;
    struct leaf *next;          /* in its bucket */
    struct leaf *newer, *older; /* by use */
};

/* ---- the cache ---- */

static struct leaf **bucket(struct lane *l, const char *host) {
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *host; host++)
        h = (h ^ (uint8_t)*host) * 16777619u;
    return &l->leaves[h % (sizeof l->leaves / sizeof *l->leaves)];
}

static void unlink_use(struct lane *l, struct leaf *f) {
    *(f->newer ? &f->newer->older : &l->leaf_newest) = f->older;
    *(f->older ? &f->older->newer : &l->leaf_oldest) = f->newer;
    f->newer = f->older = NULL;
}

static void link_use(struct lane *l, struct leaf *f) {
    f->older = l->leaf_newest;
    *(f->older ? &f->older->newer : &l->leaf_oldest) = f;
    l->leaf_newest = f;
}

static void leaf_free(struct lane *l, struct leaf *f) {
    struct leaf **at = bucket(l, f->host);
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    unlink_use(l, f);
    l->n_leaves--;
    if (f->ask)
        ask_forget(l, f->ask);
    if (f->retry)
        event_free(f->retry);
    buf_free(&f->der);
    free(f);
}

static struct leaf *leaf_find(struct lane *l, const char *host) {
    struct leaf *f = *bucket(l, host);
    while (f && strcmp(f->host, host) != 0)
        f = f->next;
    return f;
}

/* The oldest that nobody waits for gives its place. */
static void make_room(struct lane *l) {
    struct leaf *f = l->leaf_oldest;
    while (f && l->n_leaves >= lane_limit(l, LIMIT_LEAVES)) {
        struct leaf *newer = f->newer;
        if (!f->waiting)
            leaf_free(l, f);
        f = newer;
    }
}

static struct leaf *leaf_add(struct lane *l, const char *host, uint16_t port) {
    make_room(l);
    struct leaf *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    memcpy(f->host, host, strlen(host) + 1);
    f->port = port;
    f->lane = l;
    buf_init(&f->der, 2 * CA_CERT_MAX);
    struct leaf **at = bucket(l, host);
    f->next = *at;
    *at = f;
    link_use(l, f);
    l->n_leaves++;
    return f;
}

/* ---- asking ca ---- */

static void refuse_waiting(struct lane *l, struct leaf *f, enum reason why) {
    struct tunnel *t = f->waiting;
    f->waiting = NULL;
    leaf_free(l, f);
    while (t) {
        struct tunnel *next = t->next_waiting;
        t->next_waiting = NULL;
        t->waits_for = NULL;
        tunnel_refused(l, t, why, VIEW("no leaf certificate"));
        t = next;
    }
}

static void on_lost(struct lane *l, void *ctx, enum reason why) {
    struct leaf *f = ctx;
    f->ask = 0;
    refuse_waiting(l, f, why);
}

static void ask_ca(struct lane *l, struct leaf *f) {
    f->ask = l->ca ? ask_new(l, ROLE_CA, lane_limit(l, LIMIT_ASK_TIME), on_lost, f) : 0;
    if (!f->ask) {
        refuse_waiting(l, f, REASON_CA_UNAVAILABLE);
        return;
    }
    struct buf *b = channel_begin(l->ca, CA_ASK_LEAF, f->ask, l->now->number);
    buf_put_block(b, view_str(f->host));
    buf_put_u16(b, f->port);
    channel_end(l->ca);
}

void leaf_get(struct lane *l, const char *host, uint16_t port, struct tunnel *t) {
    struct leaf *f = leaf_find(l, host);
    if (f && f->not_after && f->not_after < clock_wall() / 1000000000u + BEFORE_END) {
        leaf_free(l, f);
        f = NULL;
    }
    if (f && f->not_after) {
        unlink_use(l, f);
        link_use(l, f);
        struct leaf_certificates c = {f->host, view_head(buf_view(&f->der), f->leaf_size),
                                      view_skip(buf_view(&f->der), f->leaf_size), f->not_after};
        tunnel_leaf(l, t, &c);
        return;
    }
    bool asked = f != NULL;
    if (!f)
        f = leaf_add(l, host, port);
    if (!f) {
        tunnel_refused(l, t, REASON_CA_UNAVAILABLE, VIEW("no leaf certificate"));
        return;
    }
    t->next_waiting = f->waiting;
    t->waits_for = f;
    f->waiting = t;
    f->give_up = loop_now(l->loop) + lane_limit(l, LIMIT_ASK_TIME) * 1000000000u;
    if (!asked)
        ask_ca(l, f);
}

void leaf_forget(struct tunnel *t) {
    struct tunnel **at = t->waits_for ? &t->waits_for->waiting : NULL;
    if (!at)
        return;
    while (*at != t)
        at = &(*at)->next_waiting;
    *at = t->next_waiting;
    t->next_waiting = NULL;
    t->waits_for = NULL;
}

/* ---- ca's answers ---- */

int leaf_take(struct lane *l, struct message *m) {
    if (hostile_heard("leaf", m, true))
        return 0;
    struct reader r = reader_of(m->body);
    struct view leaf = read_block(&r, CA_CERT_MAX), chain = read_block(&r, CA_CERT_MAX);
    uint64_t not_after = read_u64(&r);
    if (!read_done(&r) || leaf.n == 0 || not_after == 0)
        return ERR_BAD;
    struct leaf *f = ask_take(l, ROLE_CA, m->id, on_lost);
    if (!f)
        return 0;
    f->ask = 0;
    buf_put(&f->der, leaf);
    buf_put(&f->der, chain);
    f->leaf_size = leaf.n;
    f->not_after = not_after;
    if (!buf_ok(&f->der)) {
        refuse_waiting(l, f, REASON_CA_UNAVAILABLE);
        return 0;
    }
    struct tunnel *t = f->waiting;
    f->waiting = NULL;
    struct leaf_certificates c = {f->host, leaf, chain, not_after};
    while (t) {
        struct tunnel *next = t->next_waiting;
        t->next_waiting = NULL;
        t->waits_for = NULL;
        tunnel_leaf(l, t, &c);
        t = next;
    }
    return 0;
}

static void on_retry(evutil_socket_t fd, short what, void *ctx) {
    struct leaf *f = ctx;
    (void)fd;
    (void)what;
    ask_ca(f->lane, f);
}

/* Ca has another generation than we: one of the two is about to change. */
static void ask_again(struct lane *l, struct leaf *f) {
    struct timeval soon = {0, RETRY_MS * 1000};
    if (!f->retry)
        f->retry = event_new(loop_base(l->loop), -1, 0, on_retry, f);
    if (!f->retry || event_add(f->retry, &soon) != 0)
        refuse_waiting(l, f, REASON_CA_UNAVAILABLE);
}

int leaf_take_refused(struct lane *l, struct message *m) {
    if (hostile_heard("leaf", m, false))
        return 0;
    struct reader r = reader_of(m->body);
    uint16_t why = read_u16(&r);
    if (!read_done(&r) || why == REASON_ALLOWED || why >= REASON_COUNT)
        return ERR_BAD;
    struct leaf *f = ask_take(l, ROLE_CA, m->id, on_lost);
    if (!f)
        return 0;
    f->ask = 0;
    if (why == REASON_NOT_READY && loop_now(l->loop) < f->give_up)
        ask_again(l, f);
    else
        refuse_waiting(l, f, (enum reason)why);
    return 0;
}

void leaf_drop_all(struct lane *l) {
    struct leaf *f = l->leaf_newest;
    while (f) {
        struct leaf *older = f->older;
        if (!f->waiting)
            leaf_free(l, f);
        f = older;
    }
}

int leaf_take_changed(struct lane *l, struct message *m) {
    (void)m;
    leaf_drop_all(l);
    return 0;
}

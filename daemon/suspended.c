#include "daemon/suspended.h"

#include "base/log.h"
#include "daemon/lanes.h"
#include "policy/bundle.h"

static void put(struct buf *list, uint64_t until, struct view sandbox) {
    buf_put_u64(list, until);
    buf_put_block(list, sandbox);
}

static bool next(struct reader *r, uint64_t *until, struct view *sandbox) {
    if (r->rest.n == 0 || r->bad)
        return false;
    *until = read_u64(r);
    *sandbox = read_block(r, SANDBOX_NAME_MAX);
    return !r->bad;
}

/* Appends what counts still, without one sandbox. */
static void copy_without(struct buf *to, struct view list, struct view sandbox) {
    struct reader r = reader_of(list);
    uint64_t until;
    struct view name;
    while (next(&r, &until, &name))
        if (until > clock_mono() && !view_equal(name, sandbox))
            put(to, until, name);
}

/* The sandbox is in the list until then. False, and all is as before, when there is no room. */
static bool set(struct buf *list, uint64_t until, struct view sandbox) {
    struct buf newer;
    buf_init(&newer, CHILD_SUSPENDED_MAX);
    put(&newer, until, sandbox);
    copy_without(&newer, buf_view(list), sandbox);
    bool ok = buf_ok(&newer);
    if (ok) {
        buf_reset(list);
        buf_put(list, buf_view(&newer));
    }
    buf_free(&newer);
    return ok;
}

/* As set; but where there is no room every lane that begins counts as one that begins again. */
static void note(struct parent *p, struct buf *list, uint64_t until, struct view sandbox) {
    if (set(list, until, sandbox))
        return;
    log_warn("there is no room to note sandbox %.*s: each that comes is taken for one that was "
             "served before",
             VIEW_ARG(sandbox));
    if (until > p->unnoted)
        p->unnoted = until;
}

/* Appends those of a list that the lane has. */
static void copy_of_lane(struct buf *to, struct view list, const struct lane *l) {
    struct reader r = reader_of(list);
    uint64_t until;
    struct view name;
    while (next(&r, &until, &name))
        if (until > clock_mono() && lanes_serves(l, name))
            put(to, until, name);
}

/* What egress says of others is not believed. */
static bool is_its_own(const struct lane *l, struct view sandbox) {
    for (const struct lane *other = l->parent->lanes; other; other = other->next)
        if (other != l && lanes_names_it(other, sandbox))
            return lanes_names_it(l, sandbox);
    return lanes_serves(l, sandbox);
}

int suspended_take(struct process *egress, struct view body) {
    struct parent *p = egress->parent;
    struct reader r = reader_of(body);
    uint64_t until = read_u64(&r);
    struct view sandbox = read_block(&r, SANDBOX_NAME_MAX);
    const struct lane *l = lanes_find(p, egress->lane);
    if (!read_done(&r) || view_is_empty(sandbox) || egress->role != ROLE_EGRESS)
        return ERR_BAD;
    if (!is_its_own(l, sandbox))
        log_warn("%s: suspends a sandbox that is not its own", egress->origin);
    else
        note(p, &p->suspended, until, sandbox);
    return 0;
}

void suspended_send(struct process *egress) {
    struct parent *p = egress->parent;
    const struct lane *l = lanes_find(p, egress->lane);
    struct buf list;
    buf_init(&list, CHILD_SUSPENDED_MAX);
    copy_of_lane(&list, buf_view(&p->former), l);
    bool follows = egress->restarts > 0 || buf_len(&list) > 0 || clock_mono() < p->unnoted;
    buf_reset(&list);
    copy_of_lane(&list, buf_view(&p->suspended), l);
    if (follows)
        channel_send(egress->channel, PARENT_SUSPENDED, 0, 0, buf_view(&list));
    buf_free(&list);
}

void suspended_note_end(struct lane *l) {
    struct parent *p = l->parent;
    uint64_t until = clock_mono() + p->limits.v[LIMIT_GUARD_TIME] * UINT64_C(1000000000);
    struct view rest = lanes_names(l), name;
    while (lane_sandbox(&rest, &name))
        note(p, &p->former, until, name);
}

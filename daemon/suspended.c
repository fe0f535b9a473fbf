#include "daemon/suspended.h"

#include "base/log.h"
#include "policy/bundle.h"

static void put(struct buf *list, uint64_t until, struct view sandbox) {
    buf_put_u64(list, until);
    buf_put_block(list, sandbox);
}

/* Appends what counts still, without one sandbox. */
static void copy_without(struct buf *to, struct view list, struct view sandbox) {
    struct reader r = reader_of(list);
    while (r.rest.n > 0 && !r.bad) {
        uint64_t until = read_u64(&r);
        struct view name = read_block(&r, SANDBOX_NAME_MAX);
        if (until > clock_mono() && !view_equal(name, sandbox))
            put(to, until, name);
    }
}

int suspended_take(struct process *egress, struct view body) {
    struct reader r = reader_of(body);
    uint64_t until = read_u64(&r);
    struct view sandbox = read_block(&r, SANDBOX_NAME_MAX);
    struct buf list;
    if (!read_done(&r) || view_is_empty(sandbox) || egress->role != ROLE_EGRESS)
        return ERR_BAD;
    buf_init(&list, CHILD_SUSPENDED_MAX);
    put(&list, until, sandbox);
    copy_without(&list, buf_view(&egress->suspended), sandbox);
    if (buf_ok(&list)) {
        buf_reset(&egress->suspended);
        buf_put(&egress->suspended, buf_view(&list));
    } else {
        log_warn("%s: there is no room for all suspended sandboxes", egress->origin);
    }
    buf_free(&list);
    return 0;
}

void suspended_send(struct process *egress) {
    struct buf *b = channel_begin(egress->channel, PARENT_SUSPENDED, 0, 0);
    copy_without(b, buf_view(&egress->suspended), (struct view){NULL, 0});
    channel_end(egress->channel);
}

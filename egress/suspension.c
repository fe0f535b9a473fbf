#include "egress/suspension.h"

#include "base/log.h"
#include "egress/identity.h"
#include "egress/lease.h"

#include <stdlib.h>

#define SECOND UINT64_C(1000000000)

struct suspension {
    struct suspension *next;
    uint64_t until; /* monotonic nanoseconds, which all processes share */
    char sandbox[IDENTITY_SIZE];
};

/* One for each sandbox, however often it is suspended. */
static struct suspension *find(const struct lane *l, struct view sandbox) {
    struct suspension *s = l->suspensions;
    while (s && !view_equal(view_str(s->sandbox), sandbox))
        s = s->next;
    return s;
}

static int add(struct lane *l, uint64_t until, struct view sandbox) {
    struct suspension *s = find(l, sandbox);
    if (s) {
        s->until = until > s->until ? until : s->until;
        return 0;
    }
    s = calloc(1, sizeof *s);
    if (!s)
        return ERR_MEMORY;
    if (view_cstr(sandbox, s->sandbox, sizeof s->sandbox) != 0) {
        free(s);
        return ERR_BAD;
    }
    s->until = until;
    s->next = l->suspensions;
    l->suspensions = s;
    return 0;
}

void suspension_begin(struct lane *l, struct view sandbox) {
    struct channel *parent = child_channel(l->child);
    uint64_t until = loop_now(l->loop) + lane_limit(l, LIMIT_GUARD_TIME) * SECOND;
    struct buf *b = channel_begin(parent, ROLE_SUSPENDED, 0, 0);
    buf_put_u64(b, until);
    buf_put_block(b, sandbox);
    channel_end(parent);
    if (add(l, until, sandbox) != 0)
        log_warn("sandbox %.*s: no memory to keep it suspended", VIEW_ARG(sandbox));
}

int suspension_take(struct lane *l, struct view list) {
    struct reader r = reader_of(list);
    int result = 0;
    l->begun_again = loop_now(l->loop);
    while (result == 0 && r.rest.n > 0) {
        uint64_t until = read_u64(&r);
        struct view sandbox = read_block(&r, IDENTITY_SIZE - 1);
        result = r.bad ? ERR_BAD : add(l, until, sandbox);
    }
    return result;
}

bool suspension_holds(const struct lane *l, struct view sandbox) {
    const struct suspension *s = find(l, sandbox);
    return lease_suspended(l, sandbox) || (s && s->until > loop_now(l->loop));
}

size_t suspension_count(const struct lane *l) {
    size_t n = 0;
    for (const struct suspension *s = l->suspensions; s; s = s->next)
        n += s->until > loop_now(l->loop);
    return n;
}

bool suspension_is_unknown(const struct lane *l) {
    return l->begun_again &&
           loop_now(l->loop) - l->begun_again < lane_limit(l, LIMIT_GUARD_TIME) * SECOND;
}

size_t suspension_fragments(const struct lane *l) {
    return suspension_is_unknown(l) ? 0 : lane_limit(l, LIMIT_GUARD_FRAGMENTS);
}

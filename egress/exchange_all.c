#include "egress/exchange.h"

#include "audit/record.h"
#include "egress/answer.h"
#include "egress/lease.h"
#include "egress/reading.h"
#include "egress/request.h"
#include "egress/send.h"
#include "egress/splice.h"

#define SECOND UINT64_C(1000000000)

/* ---- time and generations ---- */

struct visit {
    struct lane *lane;
    uint64_t now, seconds; /* monotonic nanoseconds; since 1970 */
    struct exchange *found;
};

/* A grant that it was sent by. */
static bool has_ended(const struct exchange *ex, uint64_t seconds) {
    return ex->taken.until && seconds >= ex->taken.until;
}

static void find_late(void *ctx, uint32_t id, void *object) {
    struct visit *v = ctx;
    struct exchange *ex = object;
    (void)id;
    if (ex->deadline <= v->now || ex->last_deadline <= v->now || has_ended(ex, v->seconds))
        v->found = ex;
}

static void refuse_late(struct exchange *ex, uint64_t seconds) {
    if (has_ended(ex, seconds)) {
        ex->verdict.at = ex->taken.ends;
        exchange_refuse(ex, REASON_GRANT_ENDED, (struct view){NULL, 0});
    } else if (ex->undecided && (ex->body_ended || ex->request.framing == FRAMING_NONE))
        exchange_refuse(ex, REASON_INSPECT_UNAVAILABLE, VIEW("the body was not read in time"));
    else if (ex->state == EXCHANGE_RECORDING)
        exchange_refuse(ex, REASON_AUDIT_UNAVAILABLE, VIEW("the record was not taken in time"));
    else if (ex->state == EXCHANGE_RELAYING && ex->request_sent)
        exchange_refuse(ex, REASON_UPSTREAM_TIMEOUT, VIEW("no byte of the answer in time"));
    else if (ex->state == EXCHANGE_RELAYING || !ex->connecting)
        exchange_refuse(ex, REASON_REQUEST_TIMEOUT, VIEW("no byte of the request in time"));
    else
        exchange_refuse(ex, REASON_CONNECT_TIMEOUT, (struct view){NULL, 0});
}

static void on_sweep(evutil_socket_t fd, short what, void *ctx) {
    struct lane *l = ctx;
    struct visit v = {l, loop_now(l->loop), clock_wall() / SECOND, NULL};
    (void)fd;
    (void)what;
    if (!l->now)
        return;
    do {
        v.found = NULL;
        table_each(&l->exchanges, find_late, &v);
        if (v.found)
            refuse_late(v.found, v.seconds);
    } while (v.found);
    upstream_sweep(l, v.now);
    splice_sweep(l, v.now);
    lease_sweep(l, v.now);
    trail_sweep(l);
}

static void find_crowded(void *ctx, uint32_t id, void *object) {
    struct visit *v = ctx;
    struct exchange *ex = object;
    (void)id;
    if (ex->crowded)
        v->found = ex;
}

void exchange_resume_all(struct lane *l) {
    struct visit v = {.lane = l};
    if (!l->crowded)
        return;
    l->crowded = false;
    /* Those that find the channel full again are marked anew, and wait for the next time. */
    do {
        v.found = NULL;
        table_each(&l->exchanges, find_crowded, &v);
        if (v.found)
            answer_pump(v.found);
    } while (v.found && !l->crowded);
}

int exchange_start(struct lane *l) {
    struct timeval second = {1, 0};
    inspection_start(l);
    l->sweep = event_new(loop_base(l->loop), -1, EV_PERSIST, on_sweep, l);
    return l->sweep && event_add(l->sweep, &second) == 0 ? 0 : ERR_MEMORY;
}

/* ---- a newer generation ---- */

/* What was found out of the body is not known: it is looked at from its beginning, as if it had just come. */
static void forget_scan(struct exchange *ex) {
    inspection_free(ex->inspection);
    ex->inspection = NULL;
    ex->body_offered = ex->body_cleared = 0;
    ex->body_whole = ex->request.framing == FRAMING_NONE;
    if (ex->body_wait)
        event_del(ex->body_wait);
}

/* A newer policy asks of the body what is not known. No byte has left: all that came of it is here. */
static void read_again(struct exchange *ex) {
    exchange_withdraw(ex);
    tally_give(ex);
    forget_scan(ex);
    ex->connecting = false;
    reading_begin(ex);
}

static void find_older(void *ctx, uint32_t id, void *object) {
    struct visit *v = ctx;
    struct exchange *ex = object;
    (void)id;
    if (ex->generation != v->lane->now)
        v->found = ex;
}

/* The body that was decided is again what the sandbox sent, of which nothing is known. */
static void restore(struct exchange *ex) {
    send_mend(ex);
    tally_give(ex);
    reading_free(ex->reading);
    ex->reading = NULL;
    forget_scan(ex);
}

/* Judged by an older generation: again by the new one. What waits begins anew, what runs may go on. */
static void judge_again(struct exchange *ex) {
    struct lane *l = ex->lane;
    generation_drop(ex->generation);
    ex->generation = generation_keep(l->now);
    struct verdict before = ex->verdict;
    bool whole = ex->has_gap && ex->state != EXCHANGE_RELAYING;
    bool held = ex->undecided || whole;
    if (whole)
        restore(ex);
    request_judge(ex);
    bool holds = identity_holds(l, ex->sandbox, &ex->proof);
    if (ex->undecided && holds && ex->state != EXCHANGE_RELAYING) {
        read_again(ex);
        return;
    }
    if (!ex->verdict.allow || ex->undecided || !holds) {
        enum reason why = ex->decided ? REASON_CUT
                          : holds     ? ex->verdict.reason
                                      : REASON_UNKNOWN_SANDBOX;
        exchange_refuse(ex, why,
                        holds ? VIEW("denied by a newer policy")
                              : VIEW("its sandbox or its token is no longer valid"));
        return;
    }
    /* One that is undecided takes from its grants when it is decided. */
    enum reason room = held ? REASON_ALLOWED : tally_move(ex);
    if (room != REASON_ALLOWED) {
        exchange_refuse(ex, ex->decided ? REASON_CUT : room, VIEW("its grant has no room left"));
        return;
    }
    if (ex->status && !ex->guard.set && lease_guard(l, view_str(ex->sandbox))) {
        exchange_refuse(ex, REASON_CUT, VIEW("not scanned, and its sandbox has a credential now"));
        return;
    }
    if (ex->state == EXCHANGE_RELAYING && ex->upstream &&
        !upstream_suits(ex->upstream, l->now, ex->verdict.service)) {
        exchange_refuse(
            ex, REASON_CUT,
            VIEW("a newer policy does not permit what its upstream has shown, or where it is"));
        return;
    }
    if (ex->state == EXCHANGE_RELAYING) {
        /* The credential in use was chosen when its bytes left. */
        ex->verdict.swap = before.swap;
        return;
    }
    if (held) {
        exchange_withdraw(ex);
        exchange_decided(ex);
    } else {
        exchange_restart(ex, false);
    }
}

void exchange_judge_all(struct lane *l) {
    struct visit v = {.lane = l};
    do {
        v.found = NULL;
        table_each(&l->exchanges, find_older, &v);
        if (v.found)
            judge_again(v.found);
    } while (v.found);
}

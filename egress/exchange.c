#include "egress/exchange.h"

#include "base/log.h"
#include "egress/answer.h"
#include "egress/echo.h"
#include "egress/lane_messages.h"
#include "egress/reading.h"
#include "egress/refusal.h"
#include "egress/request.h"
#include "egress/send.h"
#include "egress/share.h"
#include "egress/suspension.h"
#include "egress/tunnel.h"
#include "policy/echo.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

/* ---- objects: used again, so that a request costs no allocation ---- */

static struct exchange *exchange_new(struct lane *l, uint32_t id) {
    struct exchange *ex = l->spare;
    if (ex)
        l->spare = ex->next_spare;
    else
        ex = calloc(1, sizeof *ex);
    if (!ex)
        return NULL;
    if (!ex->lane) {
        buf_init(&ex->record, LANE_HEAD_MAX);
        buf_init(&ex->canonical, LANE_HEAD_MAX);
        buf_init(&ex->body, CHANNEL_BODY_MAX);
        buf_init(&ex->wire, 2 * LANE_BODY_MAX);
        buf_init_cleared(&ex->plain, CHANNEL_OUT_MAX); /* not yet masked */
    }
    ex->lane = l;
    ex->id = id;
    ex->state = EXCHANGE_JUDGING;
    ex->trail = (struct trail){.started = clock_mono(), .verdict.swap = -1};
    ex->started = ex->trail.started;
    return ex;
}

/* All but what a spare object keeps, and what its counters say is not there. */
static void clear(struct exchange *ex) {
    size_t from = offsetof(struct exchange, id), to = offsetof(struct exchange, request.fields);
    memset((uint8_t *)ex + from, 0, to - from);
    ex->request.fields.n = 0;
    ex->materials.n = ex->materials.used = 0;
    ex->materials.overflow = false;
    placeholder_stream_init(&ex->stream);
}

/* ---- waiting for the record ---- */

static void link_recording(struct exchange *ex) {
    struct lane *l = ex->lane;
    ex->recording_previous = l->recording_last;
    *(l->recording_last ? &l->recording_last->recording_next : &l->recording_first) = ex;
    l->recording_last = ex;
}

static void unlink_recording(struct exchange *ex) {
    struct lane *l = ex->lane;
    if (ex->state != EXCHANGE_RECORDING)
        return;
    struct exchange *next = ex->recording_next, *previous = ex->recording_previous;
    *(previous ? &previous->recording_next : &l->recording_first) = next;
    *(next ? &next->recording_previous : &l->recording_last) = previous;
    ex->recording_next = ex->recording_previous = NULL;
}

static bool is_recorded(const struct exchange *ex) {
    return trail_holds(ex->lane, &ex->trail, ex->generation->audit_durable);
}

void exchange_record(struct exchange *ex) {
    if (is_recorded(ex)) {
        send_begin(ex);
        return;
    }
    ex->state = EXCHANGE_RECORDING;
    ex->deadline = loop_now(ex->lane->loop) + ex->generation->limits.v[LIMIT_ASK_TIME] * SECOND;
    link_recording(ex);
}

void exchange_recorded(struct lane *l) {
    while (l->recording_first && is_recorded(l->recording_first)) {
        struct exchange *ex = l->recording_first;
        unlink_recording(ex);
        send_begin(ex);
    }
}

void exchange_lose_audit(struct lane *l) {
    while (l->recording_first)
        exchange_refuse(l->recording_first, REASON_AUDIT_UNAVAILABLE, (struct view){NULL, 0});
}

/* ---- the end of an object ---- */

static void exchange_free(struct exchange *ex) {
    struct lane *l = ex->lane;
    table_take(&l->exchanges, ex->id);
    unlink_recording(ex);
    lease_forget(ex);
    inspection_free(ex->inspection);
    inspection_free(ex->decoding);
    reading_free(ex->reading);
    tally_give(ex);
    window_end(&ex->room, &l->windows_more);
    share_give(l, ex->share, SHARE_EXCHANGES);
    share_give(l, ex->connection, SHARE_CONNECTIONS);
    guard_stream_free(&ex->guard);
    if (ex->body_wait)
        event_del(ex->body_wait);
    generation_drop(ex->generation);
    buf_free(&ex->head);
    buf_free(&ex->insert);
    buf_free(&ex->placeholder);
    buf_free(&ex->body);
    buf_init(&ex->body, CHANNEL_BODY_MAX); /* it may have been raised */
    buf_free(&ex->wire);
    buf_free(&ex->plain);
    buf_reset(&ex->record);
    buf_reset(&ex->canonical);
    clear(ex);
    ex->next_spare = l->spare;
    l->spare = ex;
}

struct generation *exchange_generation(struct exchange *ex) {
    return ex->generation;
}

size_t exchange_count(const struct lane *l) {
    return l->exchanges.n;
}

/* ---- the end ---- */

static uint64_t us_since(uint64_t from, uint64_t to) {
    return to > from ? (to - from) / 1000 : 0;
}

static void record_end(struct exchange *ex, enum reason why, struct view detail) {
    struct outcome o = {.reason = why,
                        .detail = detail,
                        .status = ex->status,
                        .bytes_out = ex->body_framed,
                        .bytes_in = ex->answer_bytes,
                        .masked = ex->masked + ex->guard.masked,
                        .us_connect =
                            ex->connected_at ? us_since(ex->started, ex->connected_at) : 0,
                        .us_first = ex->first_at ? us_since(ex->started, ex->first_at) : 0,
                        .us_total = us_since(ex->started, clock_mono())};
    ex->lane->masked += ex->masked + ex->guard.masked;
    trail_end(ex->lane, ex->trail.id, &o);
}

/* Gives the connection back or up; it never carries a request that is not complete (SM-18). */
static void let_go(struct exchange *ex, bool well) {
    struct upstream *u = ex->upstream;
    ex->upstream = NULL;
    if (!u)
        return;
    if (u->state == UPSTREAM_BUSY)
        upstream_release(u, well && ex->request_sent && ex->answer_ended && ex->reusable);
    else
        upstream_free(u);
}

void exchange_finish(struct exchange *ex, enum reason why, struct view detail) {
    if (ex->decided)
        record_end(ex, why, detail);
    let_go(ex, why == REASON_ALLOWED);
    exchange_free(ex);
}

/* What has made us ask the world is always recorded; of what has not, as much as the limit allows. */
static bool is_listed(struct exchange *ex) {
    return ex->dialed || trail_lists(ex->lane, &ex->trail);
}

void exchange_send(struct exchange *ex, const struct answer_head *head, struct view body) {
    struct channel *to = ex->lane->proxy;
    struct buf *b = channel_begin(to, LANE_ANSWER, ex->id, 0);
    buf_put_u8(b, !head->keep_alive);
    answer_write(head, b);
    channel_end(to);
    if (!view_equal(ex->request.method, VIEW("HEAD")))
        channel_send(to, LANE_ANSWER_BODY, ex->id, 0, body);
    channel_send(to, LANE_ANSWER_END, ex->id, 0, (struct view){NULL, 0});
    ex->status = head->status;
}

static void send_refusal(struct exchange *ex) {
    struct lane *l = ex->lane;
    struct refusal r;
    const struct credential_place *place = verdict_place(&ex->verdict);
    bool challenge =
        place && (place->place == PLACE_BASIC_USER || place->place == PLACE_BASIC_PASSWORD);
    bool listed = !ex->decided && is_listed(ex);
    uint16_t status = refusal_status(ex->trail.verdict.reason, challenge);
    if (listed && trail_decide(l, &ex->trail, status) != 0)
        log_warn("refusal of exchange %u is not in the audit log", ex->id);
    refusal_make(&r, &ex->trail, challenge);
    exchange_send(ex, &r.head, buf_view(&r.body));
    refusal_free(&r);
}

void exchange_refuse(struct exchange *ex, enum reason why, struct view detail) {
    struct lane *l = ex->lane;
    if (ex->status) {
        channel_send(l->proxy, LANE_ANSWER_CUT, ex->id, 0, (struct view){NULL, 0});
        exchange_finish(ex, why, detail);
        return;
    }
    l->refusals++;
    ex->trail.detail = view_is_empty(detail) ? ex->trail.detail : detail;
    ex->trail.generation = ex->generation ? ex->generation->number : 0;
    /* A refusal after the allow was recorded is that decision's outcome. */
    ex->trail.verdict = ex->verdict;
    ex->trail.verdict.allow = false;
    ex->trail.verdict.reason = why;
    send_refusal(ex);
    exchange_finish(ex, why, detail);
}

struct of_sandbox {
    const struct exchange *cause;
    struct exchange *first; /* by next_spare, which nothing in progress uses */
};

static void find_of_sandbox(void *ctx, uint32_t id, void *object) {
    struct of_sandbox *v = ctx;
    struct exchange *ex = object;
    (void)id;
    if (ex == v->cause || strcmp(ex->sandbox, v->cause->sandbox) != 0)
        return;
    ex->next_spare = v->first;
    v->first = ex;
}

void exchange_suspend(struct exchange *ex) {
    struct lane *l = ex->lane;
    struct of_sandbox v = {.cause = ex};
    trail_suspended(l, view_str(ex->sandbox), lease_suspended(l, view_str(ex->sandbox)),
                    &ex->authority);
    suspension_begin(l, view_str(ex->sandbox));
    table_each(&l->exchanges, find_of_sandbox, &v);
    /* Each takes only itself out of the table. */
    for (struct exchange *each = v.first, *next; each; each = next) {
        next = each->next_spare;
        exchange_refuse(each, REASON_SANDBOX_SUSPENDED, (struct view){NULL, 0});
    }
    exchange_refuse(ex, REASON_SANDBOX_SUSPENDED, (struct view){NULL, 0});
}

/* ---- requests ---- */

void exchange_invite(struct exchange *ex) {
    if (ex->request.expect_continue && ex->request.framing != FRAMING_NONE && !ex->invited)
        channel_send(ex->lane->proxy, LANE_CONTINUE, ex->id, 0, (struct view){NULL, 0});
    ex->invited = true;
}

/* Until it has begun to be sent. */
static void set_deadline(struct exchange *ex) {
    ex->deadline = ex->last_deadline;
    if (ex->request.framing != FRAMING_NONE)
        ex->deadline =
            loop_now(ex->lane->loop) + ex->generation->limits.v[LIMIT_BODY_STALL] * SECOND;
}

/* Refused where its grants have no room. */
static bool take_from_grants(struct exchange *ex) {
    enum reason why = tally_take(ex);
    if (why != REASON_ALLOWED)
        exchange_refuse(ex, why, (struct view){NULL, 0});
    return why == REASON_ALLOWED;
}

void exchange_decided(struct exchange *ex) {
    set_deadline(ex);
    reading_stop(ex->reading);
    if (!take_from_grants(ex))
        return;
    exchange_invite(ex);
    if (send_held(ex))
        send_connect(ex, false);
}

static void begin(struct exchange *ex) {
    struct lane *l = ex->lane;
    ex->credit = ex->window = (int64_t)lane_limit(l, LIMIT_WINDOW);
    window_begin(&ex->room, (size_t)ex->window);
    ex->last_deadline = loop_now(l->loop) + lane_limit(l, LIMIT_REQUEST_TIME) * SECOND;
    set_deadline(ex);
    ex->state = EXCHANGE_WAITING;
    if (echo_is_host(&ex->authority)) {
        echo_answer(ex);
        return;
    }
    enum reason why = send_prepare(ex);
    if (why != REASON_ALLOWED) {
        exchange_refuse(ex, why, (struct view){NULL, 0});
        return;
    }
    if (ex->undecided) {
        reading_begin(ex);
        return;
    }
    if (!take_from_grants(ex))
        return;
    exchange_invite(ex);
    send_connect(ex, false);
}

/* A new exchange in the table, with the record's bytes; NULL when proxy's id is not new or memory is short. */
static struct exchange *admit(struct lane *l, struct message *m, int *result) {
    *result = m->id <= l->last_exchange ? ERR_BAD : ERR_MEMORY;
    if (m->id <= l->last_exchange)
        return NULL;
    l->last_exchange = m->id;
    struct exchange *ex = exchange_new(l, m->id);
    if (!ex)
        return NULL;
    buf_put(&ex->record, m->body);
    if (!buf_ok(&ex->record) || table_put(&l->exchanges, ex->id, ex) != 0) {
        exchange_free(ex);
        return NULL;
    }
    if (l->now)
        ex->generation = generation_keep(l->now);
    l->requests++;
    return ex;
}

static bool take_share(struct exchange *ex) {
    ex->share = share_take(ex->lane, ex->sandbox, SHARE_EXCHANGES);
    if (ex->tunnel == 0)
        ex->connection = share_take(ex->lane, ex->sandbox, SHARE_CONNECTIONS);
    return ex->share && (ex->tunnel != 0 || ex->connection);
}

int exchange_take_request(struct lane *l, struct message *m) {
    int result;
    struct exchange *ex = admit(l, m, &result);
    if (!ex)
        return result;
    if (!ex->generation || !trail_ready(l)) {
        exchange_refuse(ex, ex->generation ? REASON_AUDIT_UNAVAILABLE : REASON_NOT_READY,
                        (struct view){NULL, 0});
        return 0;
    }
    if (request_build(ex) != 0)
        return ERR_BAD;
    if (lane_is_closed(l))
        exchange_refuse(ex, REASON_NOT_PROBED, (struct view){NULL, 0});
    else if (!ex->verdict.allow && !ex->undecided)
        exchange_refuse(ex, ex->verdict.reason, (struct view){NULL, 0});
    else if (suspension_holds(l, view_str(ex->sandbox)))
        exchange_refuse(ex, REASON_SANDBOX_SUSPENDED, (struct view){NULL, 0});
    else if (!take_share(ex))
        exchange_refuse(ex, REASON_TOO_MANY, VIEW("requests in progress"));
    else
        begin(ex);
    return 0;
}

void exchange_place(struct exchange *ex, const struct tunnel *t) {
    memcpy(ex->meant, t->meant, sizeof ex->meant);
    ex->trail.meant = view_str(ex->meant);
    ex->trail.door = tunnel_door(t->way, t->spoke_tls);
}

/* What proxy found malformed is recorded and answered like any refusal. */
int exchange_take_malformed(struct lane *l, struct message *m) {
    int result;
    struct exchange *ex = admit(l, m, &result);
    if (!ex)
        return result;
    struct reader r = reader_of(buf_view(&ex->record));
    uint32_t tunnel = read_u32(&r);
    read_u16(&r); /* the status follows from the reason */
    uint16_t why = read_u16(&r);
    struct view detail = read_block(&r, LANE_TEXT_MAX), bytes = read_block(&r, LANE_TEXT_MAX);
    struct view client = read_block(&r, sizeof ex->client - 1);
    uint8_t way = read_u8(&r);
    struct view meant = read_block(&r, sizeof ex->meant - 1);
    if (!read_done(&r) || way >= LANE_WAY_COUNT || why == REASON_ALLOWED || why >= REASON_COUNT ||
        reason_info((enum reason)why)->status == 0)
        return ERR_BAD;
    struct tunnel *t = tunnel_find(l, tunnel);
    ex->trail.door = way == LANE_WAY_CONNECT ? "http" : tunnel_door((enum lane_way)way, false);
    ex->trail.meant = meant;
    if (t) {
        t->recorded = true;
        exchange_place(ex, t);
        memcpy(ex->sandbox, t->sandbox, sizeof ex->sandbox);
        ex->authority = t->authority;
        ex->trail.authority = &ex->authority;
    } else if (l->now && !l->now->shared &&
               view_cstr(view_str(l->now->names), ex->sandbox, sizeof ex->sandbox) != 0) {
        ex->sandbox[0] = 0;
    }
    ex->trail.tls = t && t->spoke_tls;
    ex->trail.sandbox = view_str(ex->sandbox);
    ex->trail.client = client;
    ex->trail.host_sent = bytes;
    ex->verdict = (struct verdict){.reason = (enum reason)why, .swap = -1};
    exchange_refuse(ex, (enum reason)why, detail);
    return 0;
}

/* An id that is known, or one that was known and is over: then NULL and 0. */
static struct exchange *known(struct lane *l, uint32_t id, int *result) {
    *result = id == 0 || id > l->last_exchange ? ERR_BAD : 0;
    return table_get(&l->exchanges, id);
}

int exchange_take_body(struct lane *l, struct message *m) {
    int result;
    struct exchange *ex = known(l, m->id, &result);
    return ex ? send_body(ex, m->body) : result;
}

int exchange_take_end(struct lane *l, struct message *m) {
    int result;
    struct exchange *ex = known(l, m->id, &result);
    return ex ? send_end(ex, m->body) : result;
}

/* There is nobody to answer: recorded only. */
static void end_gone(struct exchange *ex, enum reason why, struct view detail) {
    if (!ex->decided) {
        ex->trail.verdict = ex->verdict;
        ex->trail.verdict.allow = false;
        ex->trail.verdict.reason = why;
        ex->trail.detail = detail;
        ex->trail.generation = ex->generation ? ex->generation->number : 0;
        if (is_listed(ex) && trail_decide(ex->lane, &ex->trail, 0) != 0)
            log_warn("the end of exchange %u is not in the audit log", ex->id);
    }
    exchange_finish(ex, why, detail);
}

int exchange_take_gone(struct lane *l, struct message *m) {
    struct reader r = reader_of(m->body);
    uint16_t why = read_u16(&r);
    struct view detail = read_block(&r, LANE_TEXT_MAX);
    int result;
    if (!read_done(&r) || why >= REASON_COUNT)
        return ERR_BAD;
    struct exchange *ex = known(l, m->id, &result);
    if (!ex)
        return result;
    /* A client whose request broke off is still there to be told, if no answer has begun. */
    if (why != REASON_ALLOWED && why != REASON_CLIENT_CLOSED &&
        reason_info((enum reason)why)->status && !ex->status)
        exchange_refuse(ex, (enum reason)why, detail);
    else
        end_gone(ex, why == REASON_ALLOWED ? REASON_CLIENT_CLOSED : (enum reason)why, detail);
    return 0;
}

int exchange_take_credit(struct lane *l, struct message *m) {
    struct reader r = reader_of(m->body);
    uint32_t n = read_u32(&r);
    int result;
    if (!read_done(&r))
        return ERR_BAD;
    struct exchange *ex = known(l, m->id, &result);
    if (!ex)
        return result;
    if (n > ex->window - ex->credit)
        return ERR_BAD;
    ex->credit += n;
    if (ex->paused || buf_len(&ex->plain) > 0)
        answer_pump(ex);
    return 0;
}

/* ---- states ---- */

void exchange_withdraw(struct exchange *ex) {
    let_go(ex, false);
    lease_forget(ex);
    unlink_recording(ex);
    buf_free(&ex->head);
    buf_free(&ex->insert);
    ex->state = EXCHANGE_WAITING;
    ex->request_sent = ex->send_failed = ex->paused = ex->last_framed = ex->leases_own = false;
    ex->guarding = 0;
}

void exchange_restart(struct exchange *ex, bool fresh) {
    exchange_withdraw(ex);
    send_connect(ex, fresh);
}

/*
 * A host that has seen a secret may repeat it to any request, at any port: each that the sandbox has a
 * placeholder of there is borrowed for the guard, but for the one that is sent. So is each that it has a
 * placeholder of at all, while the lane does not know what was lent before it began again. False when none is left.
 * Whether it has one is not known while the vault is locked.
 */
static bool borrow_for_guard(struct exchange *ex) {
    const struct policy *p = ex->generation->policy;
    struct view sandbox = view_str(ex->sandbox), own = verdict_credential(&ex->verdict);
    bool unknown = suspension_is_unknown(ex->lane);
    for (struct view credential;
         (credential = policy_sandbox_credential_at(p, sandbox, ex->guarding)).n > 0;) {
        ex->guarding++;
        struct upstream_key key = ex->upstream->key;
        if ((ex->verdict.swap >= 0 && view_equal(credential, own)) ||
            !(policy_lends_at_host(p, sandbox, credential, &ex->authority, &key.authority) ||
              (unknown && policy_lends_somewhere(p, sandbox, credential, &key.authority))))
            continue;
        const uint8_t *fingerprint = generation_placeholder(ex->generation, sandbox, credential);
        bool long_name = view_cstr(credential, key.credential, sizeof key.credential) != 0;
        if (ex->generation->locked || long_name) {
            exchange_refuse(ex, REASON_BROKER_UNAVAILABLE, (struct view){NULL, 0});
            return true;
        }
        if (!fingerprint)
            continue;
        upstream_key_seal(&key);
        ex->state = EXCHANGE_LEASING;
        lease_get(ex->lane, &key, fingerprint, ex);
        return true;
    }
    return false;
}

void exchange_advance(struct exchange *ex) {
    if (ex->state != EXCHANGE_WAITING || !ex->upstream || ex->connecting || !ex->body_whole)
        return;
    if (borrow_for_guard(ex))
        return;
    if (ex->verdict.swap < 0) {
        send_launch(ex, NULL);
        return;
    }
    ex->state = EXCHANGE_LEASING;
    ex->leases_own = true;
    lease_get(ex->lane, &ex->upstream->key, ex->fingerprint, ex);
}

void exchange_connecting(struct exchange *ex, struct upstream *u) {
    ex->upstream = u;
    ex->dialed = true;
}

void exchange_connected(struct exchange *ex, struct upstream *u) {
    ex->upstream = u;
    ex->connecting = false;
    ex->connected_at = clock_mono();
    exchange_advance(ex);
}

void exchange_not_connected(struct exchange *ex, struct upstream *u, enum reason why,
                            struct view detail) {
    ex->upstream = NULL;
    ex->connecting = false;
    if (u) {
        ex->trail.address = view_str(u->dialing.address);
        ex->trail.aliases = view_str(u->dialing.aliases);
        ex->trail.client_certificate = view_str(u->shown);
    }
    exchange_refuse(ex, why, detail);
}

void exchange_lent(struct exchange *ex, struct lease *lease) {
    if (ex->leases_own) {
        send_launch(ex, lease);
        return;
    }
    ex->state = EXCHANGE_WAITING;
    exchange_advance(ex);
}

void exchange_not_lent(struct exchange *ex, enum reason why) {
    exchange_refuse(ex, why, (struct view){NULL, 0});
}

void exchange_readable(struct exchange *ex) {
    if (ex->state == EXCHANGE_RELAYING)
        answer_pump(ex);
    else
        (void)send_finds_silence(ex);
}

void exchange_writable(struct exchange *ex) {
    if (ex->state == EXCHANGE_RELAYING)
        send_pump(ex);
}

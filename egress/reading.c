#include "egress/reading.h"

#include "egress/request.h"
#include "egress/send.h"
#include "egress/share.h"
#include "policy/body_request.h"

#include <stdlib.h>

#define SECOND UINT64_C(1000000000)

struct reading {
    struct exchange *ex;
    struct inspection *job; /* while inspect reads */
    struct buf texts;       /* of the pointers that were asked for */
    struct view pointers[BODY_POINTERS_MAX];
    size_t n_pointers;
    bool graphql, rpc;
    uint64_t limit;
    size_t held;               /* of the body, in its sandbox's share */
    size_t offered;            /* handed to inspect */
    uint64_t acknowledged;     /* given back to proxy as credit */
    struct facts *facts;       /* NULL: not yet */
    struct body_facts judged;  /* the same, with a policy's indices */
    struct body_value *values; /* of judged */
};

void reading_free(struct reading *r) {
    if (!r)
        return;
    share_less(r->ex->lane, r->ex->share, SHARE_HELD, r->held);
    inspection_free(r->job);
    buf_free(&r->texts);
    facts_free(r->facts);
    free(r->values);
    free(r);
}

/* ---- the question ---- */

static bool keep_pointers(struct reading *r, const struct policy *p, const struct body_needs *n) {
    size_t at = 0;
    if (n->too_many)
        return false;
    for (size_t i = 0; i < n->n_pointers; i++) {
        struct view text = policy_body_pointer(p, n->pointers[i]);
        if (text.n > JSON_PATH_TEXT)
            return false;
        buf_put(&r->texts, text);
    }
    for (size_t i = 0; i < n->n_pointers; i++) {
        size_t length = policy_body_pointer(p, n->pointers[i]).n;
        r->pointers[i] = view_slice(buf_view(&r->texts), at, at + length);
        at += length;
    }
    r->n_pointers = n->n_pointers;
    return buf_ok(&r->texts);
}

static bool open_job(struct reading *r, enum body_source source) {
    struct body_wants wants = {.pointers = r->pointers,
                               .n_pointers = r->n_pointers,
                               .graphql = r->graphql,
                               .rpc = r->rpc,
                               .limit = r->limit};
    struct buf ask;
    buf_init(&ask, FACTS_ASK_MAX);
    facts_ask_write(source, &wants, &ask);
    if (buf_ok(&ask))
        r->job = inspection_new(r->ex, r->ex->lane, INSPECT_READ, buf_view(&ask), 0);
    buf_free(&ask);
    return r->job != NULL;
}

/* ---- the end ---- */

/* r->facts is known: judges by it, and goes on or refuses. */
static void decide(struct exchange *ex) {
    struct view why = view_str(facts_content(ex->reading->facts)->why);
    request_judge(ex);
    if (ex->undecided)
        exchange_refuse(ex, REASON_TOO_MANY, VIEW("memory"));
    else if (!ex->verdict.allow)
        exchange_refuse(ex, ex->verdict.reason, why);
    else
        exchange_decided(ex);
}

static void decide_unread(struct exchange *ex, enum body_fault fault) {
    ex->reading->facts = facts_unread(fault, ex->body_received);
    if (ex->reading->facts)
        decide(ex);
    else
        exchange_refuse(ex, REASON_TOO_MANY, VIEW("memory"));
}

/* ---- reading ---- */

static bool is_about_content(const struct reading *r) {
    return r->n_pointers > 0 || r->graphql || r->rpc;
}

static struct reading *reading_new(struct exchange *ex) {
    uint64_t most = ex->generation->limits.v[LIMIT_INSPECT_BODY];
    struct reading *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->ex = ex;
    r->graphql = ex->needs.graphql;
    r->rpc = ex->needs.rpc;
    r->limit = ex->needs.limit < most ? ex->needs.limit : most;
    buf_init(&r->texts, BODY_POINTERS_MAX * JSON_PATH_TEXT);
    return r;
}

/* Proxy may send as much again as was read, but for what it was told before. */
static void acknowledge(struct reading *r, size_t n) {
    struct exchange *ex = r->ex;
    r->acknowledged += n;
    if (r->acknowledged > ex->credit_ahead) {
        uint64_t more = r->acknowledged - ex->credit_ahead;
        ex->credit_ahead = r->acknowledged;
        send_credit(ex, (uint32_t)more);
    }
}

/* What is read: the body, as far as it has come, or of a request without one the query. */
static struct view content(const struct exchange *ex) {
    return ex->request.framing == FRAMING_NONE ? ex->target.query : buf_view(&ex->body);
}

static bool is_complete(const struct exchange *ex) {
    return ex->request.framing == FRAMING_NONE || ex->body_ended;
}

void reading_offer(struct exchange *ex) {
    struct reading *r = ex->reading;
    struct view all = content(ex);
    r->offered += inspection_offer(r->job, view_skip(all, r->offered));
    if (is_complete(ex) && r->offered == all.n)
        inspection_end(r->job);
}

/* False: the exchange is decided, or over. */
static bool take(struct exchange *ex, size_t n) {
    struct reading *r = ex->reading;
    bool room = share_has_room(ex->lane, ex->share, SHARE_HELD, READING_HELD_MAX);
    r->held += n;
    share_add(ex->lane, ex->share, SHARE_HELD, n);
    if (ex->body_received > r->limit) {
        decide_unread(ex, BODY_TOO_LARGE);
        return false;
    }
    if (!room) {
        exchange_refuse(ex, REASON_TOO_MANY, VIEW("bodies that are held"));
        return false;
    }
    if (r->job)
        reading_offer(ex);
    else
        acknowledge(r, n);
    return true;
}

void reading_came(struct exchange *ex, size_t n) {
    (void)take(ex, n);
}

void reading_left(struct reading *r, size_t n) {
    size_t left = n < r->held ? n : r->held;
    r->held -= left;
    share_less(r->ex->lane, r->ex->share, SHARE_HELD, left);
}

void reading_stop(struct reading *r) {
    if (!r)
        return;
    inspection_free(r->job);
    r->job = NULL;
}

void reading_ended(struct exchange *ex) {
    struct reading *r = ex->reading;
    ex->deadline = loop_now(ex->lane->loop) + ex->generation->limits.v[LIMIT_ASK_TIME] * SECOND;
    if (r->job)
        reading_offer(ex);
    else
        decide_unread(ex, BODY_FAULTLESS);
}

static void start(struct exchange *ex) {
    struct reading *r = ex->reading;
    const struct fields *f = &ex->request.fields;
    bool has_body = ex->request.framing != FRAMING_NONE;
    enum body_source source;
    if (ex->request.framing == FRAMING_LENGTH && ex->request.length > r->limit)
        decide_unread(ex, BODY_TOO_LARGE);
    else if (!keep_pointers(r, ex->generation->policy, &ex->needs))
        decide_unread(ex, BODY_TOO_MANY);
    else if (is_about_content(r) && !body_source_find(f->at, f->n, has_body, &source))
        decide_unread(ex, BODY_UNREAD);
    else if (is_about_content(r) && !open_job(r, source))
        exchange_refuse(ex, REASON_INSPECT_UNAVAILABLE, (struct view){NULL, 0});
    else if (!has_body)
        reading_ended(ex);
    else {
        exchange_invite(ex);
        if (take(ex, buf_len(&ex->body)) && ex->body_ended)
            reading_ended(ex);
    }
}

void reading_begin(struct exchange *ex) {
    reading_free(ex->reading);
    ex->reading = reading_new(ex);
    if (!ex->reading || !send_hold(ex, ex->reading->limit)) {
        exchange_refuse(ex, REASON_TOO_MANY, VIEW("memory"));
        return;
    }
    start(ex);
}

void reading_acknowledged(struct exchange *ex, uint32_t n) {
    if (ex->request.framing != FRAMING_NONE)
        acknowledge(ex->reading, n);
    reading_offer(ex);
}

int reading_told(struct exchange *ex, struct view message) {
    struct reading *r = ex->reading;
    int err = facts_read(message, r->n_pointers, &r->facts);
    if (err == ERR_MEMORY) {
        exchange_refuse(ex, REASON_TOO_MANY, VIEW("memory"));
        return 0;
    }
    if (err != 0)
        return err;
    struct body_facts *f = facts_content(r->facts);
    bool whole = is_complete(ex) && r->offered == content(ex).n && f->size == r->offered;
    if (!whole && !f->unclear)
        return ERR_BAD;
    facts_compare(r->facts, buf_view(&ex->body));
    /* Of what is sent, not of what was read. */
    f->size = ex->body_received;
    body_facts_doubt(f, ex->request.framing != FRAMING_NONE, &ex->target);
    decide(ex);
    return 0;
}

/* ---- facts ---- */

/* The index in the policy of what was asked for; false: it was not. */
static bool is_asked(const struct reading *r, struct view pointer) {
    for (size_t i = 0; i < r->n_pointers; i++)
        if (view_equal(r->pointers[i], pointer))
            return true;
    return false;
}

static bool answers(const struct reading *r, const struct policy *p, const struct body_needs *n) {
    /* Of what is unclear nothing is certain, whatever is asked. */
    if (facts_content(r->facts)->unclear)
        return true;
    if ((n->graphql && !r->graphql) || (n->rpc && !r->rpc))
        return false;
    for (size_t i = 0; i < n->n_pointers; i++)
        if (!is_asked(r, policy_body_pointer(p, n->pointers[i])))
            return false;
    return true;
}

static uint16_t index_in(const struct policy *p, const struct body_needs *n, struct view pointer) {
    for (size_t i = 0; i < n->n_pointers; i++)
        if (view_equal(policy_body_pointer(p, n->pointers[i]), pointer))
            return n->pointers[i];
    return UINT16_MAX;
}

const struct body_facts *reading_facts(struct reading *r, const struct policy *p,
                                       const struct body_needs *needs) {
    if (!r || !r->facts || !answers(r, p, needs))
        return NULL;
    const struct body_facts *f = facts_content(r->facts);
    free(r->values);
    r->values = calloc(f->n_values + 1, sizeof *r->values);
    if (!r->values)
        return NULL;
    for (size_t i = 0; i < f->n_values; i++) {
        r->values[i] = f->values[i];
        r->values[i].pointer = index_in(p, needs, r->pointers[f->values[i].pointer]);
    }
    r->judged = *f;
    r->judged.values = r->values;
    return &r->judged;
}

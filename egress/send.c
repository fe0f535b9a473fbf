#include "egress/send.h"

#include "egress/lane_messages.h"
#include "egress/reading.h"
#include "egress/substitute.h"

#include <string.h>

enum { WIRE_SIZE = 16 * 1024, HEAD_ROOM = 16 * 1024 };
#define SECOND UINT64_C(1000000000)

/* ---- connecting ---- */

void send_connect(struct exchange *ex, bool fresh) {
    struct upstream_key key;
    memset(&key, 0, sizeof key);
    key.authority = ex->authority;
    key.generation = ex->generation->number;
    key.tls = ex->tls;
    memcpy(key.sandbox, ex->sandbox, sizeof key.sandbox);
    if (ex->verdict.swap >= 0 &&
        view_cstr(verdict_credential(&ex->verdict), key.credential, sizeof key.credential) != 0) {
        exchange_refuse(ex, REASON_BROKER_UNAVAILABLE, VIEW("the credential's name is too long"));
        return;
    }
    key.proof = upstream_proof_of(ex->generation, ex->verdict.service);
    upstream_key_seal(&key);
    ex->retried = ex->retried || fresh;
    ex->connecting = true;
    upstream_get(ex->lane, &key, fresh, ex);
}

bool send_retry(struct exchange *ex) {
    static const char *const safe[] = {"GET", "HEAD", "OPTIONS"};
    struct upstream *u = ex->upstream;
    bool may = false;
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        may = may || view_equal(ex->request.method, view_str(safe[i]));
    if (!may || !u->reused || ex->retried || ex->request.framing != FRAMING_NONE ||
        tally_counts_uses(ex))
        return false;
    exchange_restart(ex, true);
    return true;
}

static void refuse_speech(struct exchange *ex, enum tls_result how) {
    const char *why = how == TLS_FAILED ? tls_error(ex->upstream->tls)
                                        : "the upstream spoke or ended before it was asked";
    if (how == TLS_NO_MEMORY)
        exchange_refuse(ex, REASON_TOO_MANY, VIEW("memory"));
    else
        exchange_refuse(ex, REASON_UPSTREAM_CLOSED, view_str(why));
}

bool send_finds_silence(struct exchange *ex) {
    uint8_t byte;
    size_t n = 0;
    enum tls_result result = upstream_read(ex->upstream, &byte, 1, &n);
    if (result == TLS_WANT_READ)
        return true;
    if (ex->upstream->reused && result != TLS_NO_MEMORY)
        exchange_restart(ex, true);
    else
        refuse_speech(ex, result);
    return false;
}

/* ---- the head ---- */

/* What exeat says in the client's place. */
static int adjust_fields(struct exchange *ex) {
    struct fields *f = &ex->request.fields;
    if (policy_sandbox_credentials(ex->generation->policy, view_str(ex->sandbox)) == 0)
        return 0;
    /* Answers are scanned: no coding that only an inspector could undo, no parts of a body (design 3, guard). */
    const struct view names[] = {VIEW("accept-encoding"), VIEW("range"),      VIEW("if-range"),
                                 VIEW("request-range"),   VIEW("x-ms-range"), VIEW("x-amz-range"),
                                 VIEW("x-range")};
    if (policy_guards_host(ex->generation->policy, view_str(ex->sandbox), &ex->authority))
        ex->ranges_dropped = true;
    fields_remove_any(f, names, ex->ranges_dropped ? sizeof names / sizeof *names : 1);
    return fields_add(f, VIEW("accept-encoding"), VIEW("identity"));
}

static void write_head(struct exchange *ex, struct view target, const struct fields *fields) {
    struct buf host;
    uint64_t length = ex->request.length;
    if (ex->has_gap)
        length = ex->body_received + buf_len(&ex->insert);
    buf_init(&host, HOST_SIZE + 8);
    authority_write(&ex->authority, ex->tls ? 443 : 80, &host);
    http1_write_request(&ex->head, ex->request.method, target, buf_view(&host), fields,
                        ex->request.framing, length, true);
    buf_free(&host);
}

/* From a copy: the record keeps the placeholder. */
static int write_head_with(struct exchange *ex, struct view secret) {
    const struct fields *f = &ex->request.fields;
    struct view target = buf_view(&ex->canonical);
    struct fields fields;
    struct buf values;
    memcpy(fields.at, f->at, f->n * sizeof *f->at);
    fields.n = f->n;
    buf_init_secret(&values, SUBSTITUTE_MAX);
    int result =
        substitute_request(&fields, &target, &ex->materials, ex->verdict.swaps, secret, &values);
    if (result == 0)
        write_head(ex, target, &fields);
    buf_free(&values);
    return result;
}

static enum reason serialise_with(struct exchange *ex, struct view secret) {
    const char *misfit = substitute_misfit(verdict_place(&ex->verdict)->place, secret);
    if (misfit) {
        ex->trail.detail = view_str(misfit);
        return REASON_SECRET_UNFIT;
    }
    if (ex->has_gap) {
        buf_init_secret(&ex->insert, SUBSTITUTE_MAX);
        substitute_spell(verdict_place(&ex->verdict)->place, secret, &ex->insert);
        write_head(ex, buf_view(&ex->canonical), &ex->request.fields);
        return buf_ok(&ex->insert) ? REASON_ALLOWED : REASON_TOO_MANY;
    }
    return write_head_with(ex, secret) == 0 ? REASON_ALLOWED : REASON_BROKER_UNAVAILABLE;
}

static enum reason serialise(struct exchange *ex, struct lease *lease) {
    size_t max = ex->generation->limits.v[LIMIT_HEAD_BYTES] + 4 * WIRE_SIZE;
    enum reason why = REASON_ALLOWED;
    if (adjust_fields(ex) != 0)
        return REASON_HEAD_TOO_LARGE;
    if (!lease) {
        buf_init(&ex->head, max);
        write_head(ex, buf_view(&ex->canonical), &ex->request.fields);
    } else {
        buf_init_secret(&ex->head, max);
        why = serialise_with(ex, lease_secret(lease));
    }
    return why == REASON_ALLOWED && !buf_ok(&ex->head) ? REASON_TOO_MANY : why;
}

/* ---- launching ---- */

/* The decision; for a request that is sent once more, perhaps to another address, an event. */
static int record_allow(struct exchange *ex) {
    struct upstream *u = ex->upstream;
    ex->trail.verdict = ex->verdict;
    for (size_t i = 0; i < ex->taken.n; i++)
        ex->trail.grants[i] = grant_position(ex->taken.grants[i]);
    ex->trail.n_grants = ex->taken.n;
    ex->trail.generation = ex->generation->number;
    ex->trail.address = view_str(u->dialing.address);
    ex->trail.aliases = view_str(u->dialing.aliases);
    ex->trail.country = view_str(u->dialing.country);
    ex->trail.asn = view_str(u->dialing.asn);
    ex->trail.client_certificate = view_str(u->shown);
    int result =
        ex->decided ? trail_again(ex->lane, &ex->trail) : trail_decide(ex->lane, &ex->trail, 0);
    ex->lane->observed += !ex->decided && ex->verdict.observed != REASON_ALLOWED;
    ex->decided = ex->decided || result == 0;
    return result;
}

void send_launch(struct exchange *ex, struct lease *lease) {
    /* What came in one piece with the handshake woke nobody. A pooled connection was looked at when it was taken. */
    if (!ex->upstream->reused && !send_finds_silence(ex))
        return;
    enum reason why = serialise(ex, lease);
    if (why == REASON_ALLOWED && !tally_take_head(ex, buf_len(&ex->head)))
        why = REASON_GRANT_BYTES;
    if (why == REASON_ALLOWED && record_allow(ex) != 0)
        why = REASON_AUDIT_UNAVAILABLE;
    if (why != REASON_ALLOWED) {
        buf_free(&ex->head);
        exchange_refuse(ex, why, (struct view){NULL, 0});
        return;
    }
    exchange_record(ex);
}

void send_begin(struct exchange *ex) {
    ex->state = EXCHANGE_RELAYING;
    ex->taken.sent = true;
    ex->deadline = loop_now(ex->lane->loop) + ex->generation->limits.v[LIMIT_BODY_STALL] * SECOND;
    http1_expect(ex->upstream->answers, view_equal(ex->request.method, VIEW("HEAD")));
    send_pump(ex);
}

/* ---- framing and writing ---- */

/* n bytes of the body are on their way. */
static void body_left(struct exchange *ex, size_t n) {
    size_t ahead = n < ex->credit_ahead ? n : (size_t)ex->credit_ahead;
    ex->body_framed += n;
    ex->credit_ahead -= ahead;
    window_pass(&ex->room, n - ahead);
    if (ex->reading)
        reading_left(ex->reading, n);
}

/* Moves judged bytes of the body, framed, behind what is to be written. */
static void frame(struct exchange *ex, struct buf *out, size_t room) {
    struct view piece = view_head(buf_view(&ex->body), send_judged(ex));
    piece = view_head(piece, room);
    if (piece.n == 0)
        return;
    if (ex->request.framing == FRAMING_CHUNKED)
        http1_write_chunk(out, piece);
    else
        buf_put(out, piece);
    body_left(ex, piece.n);
    buf_consume(&ex->body, piece.n);
}

static bool body_is_framed(const struct exchange *ex) {
    return ex->request.framing == FRAMING_NONE ||
           (ex->body_ended && buf_len(&ex->body) == 0 && buf_len(&ex->insert) == 0);
}

/* Fills the buffer that is written next: the head's while it is small, so that head and small body are one record. */
static struct buf *fill(struct exchange *ex) {
    struct buf *out = buf_len(&ex->head) > 0 ? &ex->head : &ex->wire;
    size_t size = out == &ex->head ? HEAD_ROOM : WIRE_SIZE;
    bool before = body_is_framed(ex);
    if (!before && buf_len(out) < size)
        frame(ex, out, size - buf_len(out));
    if (!ex->last_framed && body_is_framed(ex)) {
        ex->last_framed = true;
        if (ex->request.framing == FRAMING_CHUNKED)
            http1_write_last_chunk(out);
    }
    return out;
}

/* A counted body has nothing between its pieces: once the head is out, it is written from where it lies. */
static bool is_bare(const struct exchange *ex) {
    return ex->request.framing == FRAMING_LENGTH && buf_len(&ex->head) == 0 &&
           buf_len(&ex->wire) == 0;
}

/* The secret is due: all before it in the body has left. */
static bool is_at_gap(const struct exchange *ex) {
    return buf_len(&ex->insert) > 0 && ex->body_framed == ex->gap;
}

/* What is to be written next, and the buffer it lies in when that is not the body's own. ERR_MEMORY. */
static int next_bytes(struct exchange *ex, struct buf **out, struct view *v) {
    *out = NULL;
    if (is_bare(ex) && is_at_gap(ex)) {
        *out = &ex->insert;
        *v = buf_view(*out);
        return 0;
    }
    if (is_bare(ex) && !body_is_framed(ex)) {
        size_t n = send_judged(ex);
        /* TLS has made a record of what it was offered: it is offered again, whatever came since. */
        *v = view_head(buf_view(&ex->body), n > ex->offered ? n : ex->offered);
        return 0;
    }
    *out = fill(ex);
    *v = buf_view(*out);
    return buf_ok(*out) ? 0 : ERR_MEMORY;
}

static void written(struct exchange *ex, struct buf *out, size_t n) {
    if (!out) {
        body_left(ex, n);
        out = &ex->body;
    }
    buf_consume(out, n);
    if (out != &ex->wire && buf_len(out) == 0)
        buf_free(out);
}

static void send_number(struct exchange *ex, uint16_t type, uint32_t n) {
    buf_put_u32(channel_begin(ex->lane->proxy, type, ex->id, 0), n);
    channel_end(ex->lane->proxy);
}

void send_credit(struct exchange *ex, uint32_t n) {
    send_number(ex, LANE_BODY_CREDIT, n);
}

static void give_credit(struct exchange *ex) {
    size_t before = ex->room.more, n = window_credit(&ex->room, &ex->lane->windows_more);
    if (ex->room.more != before)
        send_number(ex, LANE_WINDOW, (uint32_t)(ex->room.size + ex->room.more));
    if (n > 0)
        send_credit(ex, (uint32_t)n);
}

static void request_complete(struct exchange *ex) {
    if (ex->request_sent)
        return;
    ex->request_sent = true;
    ex->deadline = loop_now(ex->lane->loop) + ex->generation->limits.v[LIMIT_ANSWER_TIME] * SECOND;
}

/* Writes some of v. False: not now; or not at all, but the upstream may have answered, and that is still read. */
static bool write_some(struct exchange *ex, struct view v, size_t *n) {
    enum tls_result result = upstream_write(ex->upstream, v, n);
    bool waits = result == TLS_WANT_READ || result == TLS_WANT_WRITE;
    if (waits)
        window_wait(&ex->room);
    ex->offered = waits ? v.n : 0;
    ex->send_failed = !waits && result != TLS_DONE;
    return result == TLS_DONE;
}

size_t send_at_once(struct exchange *ex, struct view piece) {
    size_t sent = 0, n;
    if (ex->state != EXCHANGE_RELAYING || ex->body_framed == 0 || ex->inspection ||
        ex->send_failed || buf_len(&ex->body) > 0 || !is_bare(ex))
        return 0;
    struct view v = view_head(piece, send_judged(ex));
    for (; sent < v.n && write_some(ex, view_skip(v, sent), &n); sent += n)
        body_left(ex, n);
    return sent;
}

void send_pump(struct exchange *ex) {
    while (!ex->send_failed) {
        struct buf *out;
        struct view v;
        size_t n = 0;
        int bad = next_bytes(ex, &out, &v);
        if (bad == 0 && v.n == 0) {
            if (ex->last_framed)
                request_complete(ex);
            break;
        }
        ex->send_failed = bad != 0;
        if (bad || !write_some(ex, v, &n))
            break;
        written(ex, out, n);
    }
    give_credit(ex);
}

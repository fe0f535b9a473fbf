#include "egress/send.h"

#include "egress/answer.h"
#include "egress/body_names.h"
#include "egress/lane_messages.h"
#include "egress/reading.h"
#include "egress/substitute.h"
#include "policy/media_type.h"
#include "policy/method.h"

#include <string.h>

/* A body of up to WHOLE bytes is judged whole before a byte leaves; a slower or longer one piece by piece. */
enum { WHOLE = 128 * 1024, WAIT_MS = 100, WIRE_SIZE = 16 * 1024, HEAD_ROOM = 16 * 1024 };
/* JSON may have blanks in front; with more of them a body is taken for JSON. */
enum { BLANKS_MAX = 4096 };
#define SECOND UINT64_C(1000000000)

/* ---- what is to be looked for in a body ---- */

static void ask_scan(const struct exchange *ex, struct view boundary, struct buf *ask) {
    struct watched watched;
    struct body_names names = {.n = 0, .n_way = 0};
    policy_watch(ex->generation->policy, &ex->authority, &watched);
    for (size_t i = 0; i < watched.n; i++)
        if (place_is_in_body(watched.at[i]->place))
            body_names_add(&names, watched.at[i]);
    if (ex->has_gap && verdict_place(&ex->verdict)->place == PLACE_JSON)
        body_names_lead(&names, verdict_place(&ex->verdict));
    buf_put_block(ask, boundary);
    body_names_write(&names, ask);
}

static enum inspect_job job_of(enum body_kind kind) {
    switch (kind) {
    case BODY_JSON:
        return INSPECT_JSON;
    case BODY_FORM:
        return INSPECT_FORM;
    case BODY_MULTIPART:
        return INSPECT_MULTIPART;
    case BODY_JSON_UNSAID:
        return INSPECT_JSON_UNSAID;
    case BODY_JSON_OR_FORM:
        break;
    }
    return INSPECT_JSON_OR_FORM;
}

static enum reason open_scan(struct exchange *ex, uint8_t first) {
    const struct fields *f = &ex->request.fields;
    struct media_scan scan;
    if (service_accepts_any(ex->verdict.service))
        return REASON_ALLOWED;
    enum reason why = media_type_judge(f->at, f->n, ex->request.method, first, &scan);
    if (why != REASON_ALLOWED || !scan.wanted)
        return why;
    struct buf ask;
    buf_init(&ask, SCAN_ASK_MAX);
    ask_scan(ex, scan.boundary, &ask);
    if (buf_ok(&ask))
        ex->inspection = inspection_new(ex, ex->lane, job_of(scan.kind), buf_view(&ask), 0);
    buf_free(&ask);
    return ex->inspection ? REASON_ALLOWED : REASON_INSPECT_UNAVAILABLE;
}

/* Nothing but blanks and their like has come yet: what the body is to be looked at for is not known. */
static bool is_blank_so_far(const struct exchange *ex) {
    return ex->body_received < BLANKS_MAX && buf_len(&ex->body) == ex->body_received &&
           media_type_lead(buf_view(&ex->body)) == ex->body_received;
}

/* Chooses the scan by the first byte that is no blank; it looks at all of the body. */
static enum reason choose_scan(struct exchange *ex) {
    struct view body = buf_view(&ex->body);
    size_t lead = media_type_lead(body);
    if (lead == body.n && body.n < BLANKS_MAX)
        return REASON_ALLOWED;
    return open_scan(ex, lead < body.n ? body.p[lead] : '{');
}

/* What finds no room before inspect stays in the body, and with it the client's credit. */
void send_offer(struct exchange *ex) {
    if (!ex->inspection)
        return;
    struct view rest = view_skip(buf_view(&ex->body), (size_t)(ex->body_offered - ex->body_framed));
    ex->body_offered += inspection_offer(ex->inspection, rest);
    if (ex->body_ended && ex->body_offered == ex->body_received)
        inspection_end(ex->inspection);
}

enum reason send_prepare(struct exchange *ex) {
    uint64_t most = ex->generation->limits.v[LIMIT_REQUEST_BODY];
    placeholder_stream_init(&ex->stream);
    ex->body_whole = ex->request.framing == FRAMING_NONE;
    if (most && ex->request.framing == FRAMING_LENGTH && ex->request.length > most)
        return REASON_BODY_TOO_LARGE;
    return REASON_ALLOWED;
}

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

/* ---- the body as it comes ---- */

static int refuse_body(struct exchange *ex, enum reason why, struct view detail) {
    exchange_refuse(ex, why, detail);
    return 0;
}

/* Bytes of ex->body that were judged and may leave. */
static size_t sendable(const struct exchange *ex) {
    if (!ex->body_ended && is_blank_so_far(ex))
        return 0;
    size_t held = ex->body_ended ? 0 : placeholder_stream_held(&ex->stream);
    uint64_t judged = ex->body_received - held;
    if (ex->inspection && ex->body_cleared < judged)
        judged = ex->body_cleared;
    if (buf_len(&ex->insert) > 0 && ex->gap < judged)
        judged = ex->gap;
    return judged > ex->body_framed ? (size_t)(judged - ex->body_framed) : 0;
}

static void on_body_waited(evutil_socket_t fd, short what, void *ctx) {
    struct exchange *ex = ctx;
    (void)fd;
    (void)what;
    if (ex->body_ended) {
        exchange_refuse(ex, REASON_INSPECT_UNAVAILABLE, VIEW("the body was not looked at in time"));
        return;
    }
    ex->body_whole = true;
    exchange_advance(ex);
}

/*
 * A client that sends bit by bit is not held up for long. Once all has come it is inspect that is
 * waited for, which may have to be started first.
 */
static void wait_for_body(struct exchange *ex) {
    struct timeval t = {0, WAIT_MS * 1000};
    if (ex->body_ended)
        t = (struct timeval){(time_t)lane_limit(ex->lane, LIMIT_ASK_TIME), 0};
    if (!ex->body_wait)
        ex->body_wait = event_new(loop_base(ex->lane->loop), -1, 0, on_body_waited, ex);
    if (ex->body_wait && (ex->body_ended || !event_pending(ex->body_wait, EV_TIMEOUT, NULL)))
        event_add(ex->body_wait, &t);
}

static void stop_waiting(struct exchange *ex) {
    ex->body_whole = true;
    if (ex->body_wait)
        event_del(ex->body_wait);
}

static void body_came(struct exchange *ex) {
    bool judged_whole = ex->body_ended && sendable(ex) == buf_len(&ex->body);
    if (ex->state == EXCHANGE_RELAYING) {
        send_pump(ex);
        return;
    }
    uint64_t half = (uint64_t)ex->window / 2;
    if (judged_whole || buf_len(&ex->body) >= (half < WHOLE ? half : WHOLE))
        stop_waiting(ex);
    else if (!ex->body_whole)
        wait_for_body(ex);
    exchange_advance(ex);
}

static size_t send_at_once(struct exchange *ex, struct view piece);

int send_body(struct exchange *ex, struct view piece) {
    uint64_t most = ex->generation->limits.v[LIMIT_REQUEST_BODY];
    bool counted = ex->request.framing == FRAMING_LENGTH;
    if (ex->body_ended || ex->request.framing == FRAMING_NONE || piece.n == 0 ||
        (counted && piece.n > ex->request.length - ex->body_received))
        return ERR_BAD;
    /* Its credit is that of the window it began with, which another generation may have changed. */
    if (piece.n > buf_room(&ex->body))
        return ERR_BAD;
    if (most && ex->body_received + piece.n > most)
        return refuse_body(ex, REASON_BODY_TOO_LARGE, (struct view){NULL, 0});
    bool chosen = !is_blank_so_far(ex);
    /* A body that is read may have a placeholder where one belongs: it is searched once that is known. */
    ex->unsearched = ex->unsearched || (ex->undecided && ex->needs.credential);
    if (!ex->unsearched && placeholder_stream_feed(&ex->stream, piece))
        return refuse_body(ex, REASON_PLACEHOLDER_WRONG_PLACE, VIEW("in the body"));
    ex->deadline = loop_now(ex->lane->loop) + ex->generation->limits.v[LIMIT_BODY_STALL] * SECOND;
    ex->body_received += piece.n;
    buf_put(&ex->body, view_skip(piece, send_at_once(ex, piece)));
    if (!buf_ok(&ex->body))
        return refuse_body(ex, REASON_TOO_MANY, VIEW("memory"));
    if (ex->undecided) {
        reading_came(ex, piece.n);
        return 0;
    }
    enum reason why = chosen ? REASON_ALLOWED : choose_scan(ex);
    if (why == REASON_ALLOWED && !tally_take_body(ex, piece.n))
        why = REASON_GRANT_BYTES;
    if (why != REASON_ALLOWED)
        return refuse_body(ex, why, (struct view){NULL, 0});
    send_offer(ex);
    body_came(ex);
    return 0;
}

int send_end(struct exchange *ex, struct view trailers) {
    if (ex->body_ended ||
        (ex->request.framing == FRAMING_LENGTH && ex->body_received != ex->request.length))
        return ERR_BAD;
    if (placeholder_inside(trailers) || placeholder_inside_name(trailers))
        return refuse_body(ex, REASON_PLACEHOLDER_WRONG_PLACE, VIEW("in a trailer"));
    ex->body_ended = true;
    if (ex->undecided) {
        reading_ended(ex);
        return 0;
    }
    send_offer(ex);
    body_came(ex);
    return 0;
}

/* ---- a body that is held ---- */

bool send_hold(struct exchange *ex, uint64_t limit) {
    buf_raise(&ex->body, (size_t)(limit + (uint64_t)ex->window));
    return buf_ok(&ex->body);
}

/* Fields that tell a digest of what the sandbox sent, and would be wrong of what leaves (PH-09). */
static bool has_digest(const struct fields *f) {
    static const char *const names[] = {"content-md5", "digest", "content-digest", "repr-digest",
                                        "x-amz-content-sha256"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (fields_find(f, view_str(names[i]), NULL) > 0)
            return true;
    for (size_t i = 0; i < f->n; i++)
        if (view_search(f->at[i].name, VIEW("checksum")) < f->at[i].name.n)
            return true;
    return false;
}

/*
 * Takes the placeholder that the verdict speaks of out of the body, which is complete: what is left is searched and
 * looked at like any body, and the secret is written where it stood. So its length is known.
 */
static enum reason open_gap(struct exchange *ex) {
    const struct material *m = ex->verdict.swap >= 0 ? &ex->materials.at[ex->verdict.swap] : NULL;
    struct view body = buf_view(&ex->body);
    if (!m || !place_is_in_body(m->place))
        return REASON_ALLOWED;
    if (has_digest(&ex->request.fields)) {
        ex->trail.detail = VIEW("a field tells a digest of the body that a secret goes into");
        return REASON_PLACEHOLDER_WRONG_PLACE;
    }
    ex->gap = (uint64_t)(m->raw.p - body.p);
    buf_init(&ex->placeholder, m->raw.n);
    buf_put(&ex->placeholder, m->raw);
    if (!buf_ok(&ex->placeholder))
        return REASON_TOO_MANY;
    ex->has_gap = true;
    ex->request.framing = FRAMING_LENGTH;
    ex->request.length = ex->body_received;
    ex->body_received -= m->raw.n;
    buf_replace(&ex->body, (size_t)ex->gap, m->raw.n, (struct view){NULL, 0});
    return REASON_ALLOWED;
}

void send_mend(struct exchange *ex) {
    struct view sent = buf_view(&ex->placeholder);
    buf_replace(&ex->body, (size_t)ex->gap, 0, sent);
    ex->body_received += sent.n;
    ex->has_gap = false;
    ex->unsearched = true;
    buf_free(&ex->placeholder);
}

/* The bytes that came while the body was read; a gap parts them. */
static bool holds_placeholder(struct exchange *ex) {
    struct view body = buf_view(&ex->body);
    size_t before = ex->has_gap ? (size_t)ex->gap : body.n;
    placeholder_stream_init(&ex->stream);
    return placeholder_stream_feed(&ex->stream, view_head(body, before)) ||
           (ex->has_gap && (placeholder_stream_feed(&ex->stream, VIEW("\"")) ||
                            placeholder_stream_feed(&ex->stream, view_skip(body, before))));
}

static enum reason examine_held(struct exchange *ex) {
    enum reason why = open_gap(ex);
    if (why == REASON_ALLOWED && ex->unsearched && holds_placeholder(ex)) {
        ex->trail.detail = VIEW("in the body");
        why = REASON_PLACEHOLDER_WRONG_PLACE;
    }
    ex->unsearched = false;
    return why == REASON_ALLOWED && ex->body_received > 0 ? choose_scan(ex) : why;
}

bool send_held(struct exchange *ex) {
    if (ex->body_received == 0 && !ex->body_ended)
        return true;
    enum reason why = examine_held(ex);
    if (why != REASON_ALLOWED) {
        exchange_refuse(ex, why, (struct view){NULL, 0});
        return false;
    }
    send_offer(ex);
    body_came(ex);
    return true;
}

/* ---- inspect's answers ---- */

void send_cleared(struct exchange *ex, uint32_t n) {
    ex->body_cleared += n;
    send_offer(ex);
    body_came(ex);
}

void send_scanned(struct exchange *ex) {
    inspection_free(ex->inspection);
    ex->inspection = NULL;
    body_came(ex);
}

void send_found(struct exchange *ex, struct view name, struct view value) {
    struct materials *m = &ex->materials;
    if (m->n < MATERIALS_MAX)
        m->at[m->n++] = (struct material){.place = PLACE_BODY, .name = name, .token = value};
    if (method_is_override_name(name)) {
        exchange_refuse(ex, REASON_METHOD_OVERRIDE, VIEW("in a field of the body"));
        return;
    }
    exchange_refuse(ex, REASON_FOREIGN_CREDENTIAL,
                    VIEW("a field of the body would be read as a credential"));
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
    struct view piece = view_head(buf_view(&ex->body), sendable(ex));
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
        size_t n = sendable(ex);
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

/*
 * A piece of a body that is under way, with nothing before it that waits, is written from where it lies; how much of it
 * was. What is left comes into ex->body, and is offered again from there.
 */
static size_t send_at_once(struct exchange *ex, struct view piece) {
    size_t sent = 0, n;
    if (ex->state != EXCHANGE_RELAYING || ex->body_framed == 0 || ex->inspection ||
        ex->send_failed || buf_len(&ex->body) > 0 || !is_bare(ex))
        return 0;
    struct view v = view_head(piece, sendable(ex));
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

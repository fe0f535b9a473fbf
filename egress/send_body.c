#include "egress/send.h"

#include "egress/body_names.h"
#include "egress/reading.h"
#include "policy/media_type.h"
#include "policy/method.h"

/* A body of up to WHOLE bytes is judged whole before a byte leaves; a slower or longer one piece by piece. */
enum { WHOLE = 128 * 1024, WAIT_MS = 100 };
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

/* ---- the body as it comes ---- */

static int refuse_body(struct exchange *ex, enum reason why, struct view detail) {
    exchange_refuse(ex, why, detail);
    return 0;
}

size_t send_judged(const struct exchange *ex) {
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
    bool judged_whole = ex->body_ended && send_judged(ex) == buf_len(&ex->body);
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

#include "egress/answer.h"

#include "egress/lane_messages.h"
#include "egress/send.h"

#include <string.h>

enum {
    READ_SIZE = 16 * 1024,
    DECODE_AHEAD = 16 * 1024,
    PLAIN_AHEAD = 64 * 1024,
    PLAIN_PIECE = 64 * 1024
};
enum {
    NAME_LOOKED_AT = 1024,      /* a longer field name is taken out of a scanned answer */
    INTERIM_MAX = 8,            /* 1xx heads of one answer */
    PROXY_UNSENT_MAX = 4 << 20, /* more waits for proxy: no more is read from upstreams */
};
#define SECOND UINT64_C(1000000000)

/* ---- fields ---- */

#define NAME(text)                                                                                 \
    { (const uint8_t *)(text), sizeof(text) - 1 }

/* Hints that would lead clients past exeat, and what speaks of us (RS-10, AD-10). */
static const struct view dropped[] = {
    NAME(REFUSAL_FIELD),
    NAME("alt-svc"),
    NAME("alt-used"),
    NAME("proxy-authenticate"),
    NAME("proxy-authentication-info"),
    NAME("proxy-status"),
    NAME("public-key-pins"),
    NAME("nel"),
    NAME("report-to"),
};
/* What described the bytes before they were changed. */
static const struct view dropped_when_changed[] = {
    NAME("etag"),        NAME("digest"),        NAME("content-digest"), NAME("repr-digest"),
    NAME("content-md5"), NAME("last-modified"), NAME("accept-ranges"),
};

/* A name cannot be masked, only taken out; it is in small letters, which the guard knows as well. */
static bool name_holds_secret(const struct exchange *ex, struct view name) {
    uint8_t copy[NAME_LOOKED_AT];
    if (name.n > sizeof copy)
        return true;
    view_copy(name, copy);
    return guard_mask_more(ex->guard.set, copy, name.n) > 0;
}

/*
 * Masks values. They lie in the connection's buffer, which is ours to write: the
 * head was parsed from it and is sent from these very bytes.
 */
static size_t mask_fields(struct exchange *ex, struct fields *f) {
    size_t masked = 0, kept = 0;
    for (size_t i = 0; ex->guard.set && i < f->n; i++) {
        masked += (i == 0 ? guard_mask : guard_mask_more)(
            ex->guard.set, (uint8_t *)(uintptr_t)f->at[i].value.p, f->at[i].value.n);
        if (name_holds_secret(ex, f->at[i].name))
            masked++;
        else
            f->at[kept++] = f->at[i];
    }
    if (ex->guard.set)
        f->n = kept;
    return masked;
}

/* ---- sending on ---- */

/* Credit bounds each exchange; this bounds all of them together. Asked before every piece and head. */
static bool is_crowded(struct exchange *ex) {
    if (channel_unsent(ex->lane->proxy) <= PROXY_UNSENT_MAX)
        return false;
    ex->lane->crowded = ex->crowded = true;
    return true;
}

/* Bytes that may be fed now: what is held back already has a claim on the credit. */
static size_t credit_left(const struct exchange *ex) {
    int64_t held = (int64_t)guard_stream_held(&ex->guard);
    return ex->credit > held ? (size_t)(ex->credit - held) : 0;
}

/* A piece of plain body, scanned on its way into the channel's buffer. */
static int pass_on(struct exchange *ex, struct view piece, bool last) {
    struct channel *proxy = ex->lane->proxy;
    struct buf *b = channel_begin(proxy, LANE_ANSWER_BODY, ex->id, 0);
    size_t before = buf_len(b);
    int result = 0;
    if (ex->guard.set && !guard_stream_idle(&ex->guard))
        result = (last ? guard_stream_end : guard_stream_feed)(&ex->guard, piece, b);
    else
        buf_put(b, piece);
    size_t sent = buf_len(b) - before;
    channel_end(proxy);
    ex->credit -= (int64_t)sent;
    ex->answer_bytes += sent;
    return result;
}

static int release_held(struct exchange *ex) {
    if (!ex->guard.set || guard_stream_held(&ex->guard) == 0)
        return 0;
    struct channel *proxy = ex->lane->proxy;
    struct buf *b = channel_begin(proxy, LANE_ANSWER_BODY, ex->id, 0);
    size_t before = buf_len(b);
    int result = guard_stream_release(&ex->guard, b);
    size_t sent = buf_len(b) - before;
    channel_end(proxy);
    ex->credit -= (int64_t)sent;
    ex->answer_bytes += sent;
    return result;
}

/* The guard could not do its work, or has seen too much. */
static void end_unguarded(struct exchange *ex, int why) {
    if (why == ERR_DENIED)
        exchange_suspend(ex);
    else
        exchange_refuse(ex, REASON_TOO_MANY, VIEW("memory of the guard"));
}

/* ---- the head ---- */

static void send_head(struct exchange *ex, struct answer_head *h) {
    struct buf *b = channel_begin(ex->lane->proxy, LANE_ANSWER, ex->id, 0);
    buf_put_u8(b, 0);
    answer_write(h, b);
    channel_end(ex->lane->proxy);
}

/* How the body's coding is to be undone before it is scanned. REASON_ALLOWED, or why it cannot be. */
static enum reason plan_decoding(struct exchange *ex, struct answer_head *h) {
    struct view coding;
    size_t n = fields_find(&h->fields, VIEW("content-encoding"), &coding);
    if (n == 0 || view_equal_nocase(coding, VIEW("identity")) || h->framing == FRAMING_NONE ||
        (h->framing == FRAMING_LENGTH && h->length == 0))
        return n > 1 ? REASON_ANSWER_CODING : REASON_ALLOWED;
    bool gzip =
        view_equal_nocase(coding, VIEW("gzip")) || view_equal_nocase(coding, VIEW("x-gzip"));
    if (n > 1 || (!gzip && !view_equal_nocase(coding, VIEW("deflate"))))
        return REASON_ANSWER_CODING;
    uint64_t most = ex->generation->limits.v[LIMIT_ANSWER_BODY];
    ex->decoding = inspection_new(ex, ex->lane, gzip ? INSPECT_GUNZIP : INSPECT_INFLATE,
                                  (struct view){NULL, 0}, most ? most : UINT64_MAX);
    if (!ex->decoding)
        return REASON_INSPECT_UNAVAILABLE;
    fields_remove(&h->fields, VIEW("content-encoding"));
    h->framing = FRAMING_CHUNKED;
    h->length = 0;
    return REASON_ALLOWED;
}

/* Answers to a sandbox that has credentials are scanned. */
static void plan_guard(struct exchange *ex) {
    struct guard_set *set = lease_guard(ex->lane, view_str(ex->sandbox));
    if (set)
        guard_stream_init(&ex->guard, set);
}

static bool is_exceeded(const struct exchange *ex) {
    return ex->guard.set && guard_set_exceeded(ex->guard.set);
}

static enum reason check_head(struct exchange *ex, struct answer_head *h) {
    uint64_t most = ex->generation->limits.v[LIMIT_ANSWER_BODY];
    if (h->status == 407 || (h->status == 206 && ex->ranges_dropped))
        return REASON_MALFORMED_ANSWER;
    if (most && h->framing == FRAMING_LENGTH && h->length > most)
        return REASON_ANSWER_TOO_LARGE;
    return ex->guard.set ? plan_decoding(ex, h) : REASON_ALLOWED;
}

static int final_head(struct exchange *ex, struct answer_head *h) {
    plan_guard(ex);
    enum reason why = check_head(ex, h);
    if (why != REASON_ALLOWED) {
        struct view detail = h->status == 407   ? VIEW("407 from an origin")
                             : h->status == 206 ? VIEW("206 that was not asked for")
                                                : (struct view){NULL, 0};
        exchange_refuse(ex, why, detail);
        return ERR_CLOSED;
    }
    fields_remove_any(&h->fields, dropped, sizeof dropped / sizeof *dropped);
    ex->masked += mask_fields(ex, &h->fields);
    if (is_exceeded(ex)) {
        exchange_suspend(ex);
        return ERR_CLOSED;
    }
    ex->first_at = clock_mono();
    ex->reusable = h->keep_alive && h->framing != FRAMING_CLOSE;
    ex->status = h->status;
    /* Whether the body will be masked is not known yet; where it may be, validators go (design 3, guard). */
    if (ex->guard.set && guard_set_count(ex->guard.set) > 0)
        fields_remove_any(&h->fields, dropped_when_changed,
                          sizeof dropped_when_changed / sizeof *dropped_when_changed);
    send_head(ex, h);
    return 0;
}

/* 100 was for us; others are the client's (RFC 9110 15.2), if it speaks HTTP/1.1. */
static int interim_head(struct exchange *ex, struct answer_head *h) {
    ex->interim = true;
    if (++ex->n_interim > INTERIM_MAX) {
        exchange_refuse(ex, REASON_MALFORMED_ANSWER, VIEW("too many interim answers"));
        return ERR_CLOSED;
    }
    if (h->status == 100 || ex->request.minor == 0)
        return 0;
    plan_guard(ex);
    fields_remove_any(&h->fields, dropped, sizeof dropped / sizeof *dropped);
    ex->masked += mask_fields(ex, &h->fields);
    if (is_exceeded(ex)) {
        exchange_suspend(ex);
        return ERR_CLOSED;
    }
    guard_stream_free(&ex->guard);
    ex->guard = (struct guard_stream){.set = NULL};
    send_head(ex, h);
    return 0;
}

static int take_head(struct exchange *ex) {
    /* A copy of the facts: fields are taken out of it. */
    static struct answer_head h;
    answer_copy(http1_answer(ex->upstream->answers), &h);
    if (h.status >= 200)
        return final_head(ex, &h);
    return interim_head(ex, &h);
}

/* ---- the body and the end ---- */

static int take_body(struct exchange *ex, struct view piece, bool last) {
    uint64_t most = ex->generation->limits.v[LIMIT_ANSWER_BODY];
    ex->deadline = loop_now(ex->lane->loop) + ex->generation->limits.v[LIMIT_BODY_STALL] * SECOND;
    ex->answer_taken += piece.n;
    if (most && ex->answer_taken > most) {
        exchange_refuse(ex, REASON_ANSWER_TOO_LARGE, (struct view){NULL, 0});
        return ERR_CLOSED;
    }
    if (ex->decoding) {
        inspection_feed(ex->decoding, piece);
        return 0;
    }
    int result = pass_on(ex, piece, last);
    if (result == 0)
        return 0;
    end_unguarded(ex, result);
    return ERR_CLOSED;
}

/* ---- reading and not reading ---- */

static void pause(struct exchange *ex) {
    if (!ex->paused)
        upstream_pause(ex->upstream);
    ex->paused = true;
}

static void resume(struct exchange *ex) {
    if (ex->paused)
        upstream_resume(ex->upstream);
    ex->paused = false;
}

/* Everything was handed to proxy. */
static void complete(struct exchange *ex) {
    int result = release_held(ex);
    if (result != 0) {
        end_unguarded(ex, result);
        return;
    }
    channel_send(ex->lane->proxy, LANE_ANSWER_END, ex->id, 0, (struct view){NULL, 0});
    exchange_finish(ex, REASON_ALLOWED, (struct view){NULL, 0});
}

static int take_end(struct exchange *ex) {
    if (ex->interim) {
        ex->interim = false;
        return 0;
    }
    ex->answer_ended = true;
    if (ex->decoding) {
        inspection_end(ex->decoding);
        /* The connection has nothing more for this exchange, which goes on with what is decoded. */
        pause(ex);
        return ERR_CLOSED;
    }
    complete(ex);
    return ERR_CLOSED;
}

/* ---- decoded bodies ---- */

static void drain_plain(struct exchange *ex) {
    while (buf_len(&ex->plain) > 0) {
        size_t may = credit_left(ex);
        if (may == 0 || is_crowded(ex))
            return;
        struct view piece = view_head(buf_view(&ex->plain), may < PLAIN_PIECE ? may : PLAIN_PIECE);
        size_t n = piece.n;
        int result = pass_on(ex, piece, false);
        if (result != 0) {
            end_unguarded(ex, result);
            return;
        }
        buf_consume(&ex->plain, n);
    }
    if (ex->decoded_all)
        complete(ex);
    else
        inspection_resume(ex->decoding);
}

void answer_decoded(struct exchange *ex, struct view plain) {
    buf_put(&ex->plain, plain);
    if (!buf_ok(&ex->plain)) {
        exchange_refuse(ex, REASON_ANSWER_TOO_LARGE, VIEW("decoded faster than it can be taken"));
        return;
    }
    answer_pump(ex);
}

void answer_decoded_all(struct exchange *ex) {
    ex->decoded_all = true;
    drain_plain(ex);
}

/* ---- the pump ---- */

/* What may be taken in now: nothing while proxy or inspect are behind. */
static size_t room(struct exchange *ex) {
    if (is_crowded(ex))
        return 0;
    if (ex->decoding)
        return inspection_waiting(ex->decoding) > DECODE_AHEAD || buf_len(&ex->plain) > PLAIN_AHEAD
                   ? 0
                   : SIZE_MAX;
    return credit_left(ex);
}

/*
 * The next event within `may` bytes of body. Chunk lines and trailers must lie whole and take no
 * credit: where they use nothing of what they are shown, they are shown the rest.
 */
static struct http1_event next_event(struct upstream *u, size_t may) {
    struct view in = buf_view(&u->in);
    struct http1_event e = http1_next(u->answers, view_head(in, may));
    if (e.what == HTTP1_MORE && e.used == 0 && in.n > may)
        e = http1_next(u->answers, in);
    return e;
}

/* Handles what is in the buffer. 0: more must be read; ERR_AGAIN: no room; ERR_CLOSED: the exchange is gone or at its end. */
static int take_events(struct exchange *ex) {
    struct upstream *u = ex->upstream;
    for (;;) {
        size_t may = room(ex);
        if (may == 0)
            return ERR_AGAIN;
        struct http1_event e = next_event(u, ex->status ? may : SIZE_MAX);
        int result = 0;
        if (e.what == HTTP1_HEAD)
            result = take_head(ex);
        else if (e.what == HTTP1_BODY)
            result = take_body(ex, e.body, e.last);
        if (result != 0)
            return result;
        buf_consume(&u->in, e.used);
        if (e.what == HTTP1_END && (result = take_end(ex)) != 0)
            return result;
        if (e.what == HTTP1_BAD) {
            exchange_refuse(ex, REASON_MALFORMED_ANSWER, view_str(e.why));
            return ERR_CLOSED;
        }
        if (e.what == HTTP1_MORE && (e.used == 0 || buf_len(&u->in) == 0))
            return buf_room(&u->in) > 0 ? 0 : ERR_AGAIN;
    }
}

static void ended(struct exchange *ex, enum tls_result how) {
    struct upstream *u = ex->upstream;
    u->ended = true;
    if (!ex->status && !ex->interim && buf_len(&u->in) == 0 && send_retry(ex))
        return;
    /* A close without close_notify may be an attacker's cut (RFC 8446 6.1). */
    struct http1_event e = {.what = HTTP1_BAD, .why = "the connection was cut"};
    if (how == TLS_EOF && ex->status)
        e = http1_eof(u->answers);
    if (e.what == HTTP1_END)
        take_end(ex);
    else if (ex->status)
        exchange_refuse(ex, REASON_UPSTREAM_CLOSED, view_str(e.why));
    else
        exchange_refuse(ex, REASON_UPSTREAM_CLOSED, VIEW("no answer"));
}

/* One read. 0: bytes came; ERR_AGAIN: none for now; ERR_CLOSED: the end. */
static int read_more(struct exchange *ex) {
    struct upstream *u = ex->upstream;
    size_t want = buf_room(&u->in) < READ_SIZE ? buf_room(&u->in) : READ_SIZE, n = 0;
    uint8_t *p = buf_reserve(&u->in, want);
    if (!p) {
        exchange_refuse(ex, REASON_TOO_MANY, VIEW("memory"));
        return ERR_CLOSED;
    }
    enum tls_result result = upstream_read(u, p, want, &n);
    switch (result) {
    case TLS_DONE:
        upstream_touch(u, p, n);
        buf_commit(&u->in, n);
        return 0;
    case TLS_WANT_READ:
    case TLS_WANT_CERTIFICATE:
        return ERR_AGAIN;
    case TLS_WANT_WRITE:
        event_add(u->writable, NULL);
        return ERR_AGAIN;
    case TLS_FAILED:
        exchange_refuse(ex, REASON_UPSTREAM_CLOSED, view_str(tls_error(u->tls)));
        return ERR_CLOSED;
    case TLS_NO_MEMORY:
        exchange_refuse(ex, REASON_TOO_MANY, VIEW("memory"));
        return ERR_CLOSED;
    case TLS_EOF:
    case TLS_CUT:
        ended(ex, result);
        return ERR_CLOSED;
    }
    return ERR_CLOSED;
}

void answer_pump(struct exchange *ex) {
    ex->crowded = false;
    if (ex->decoding) {
        uint32_t id = ex->id;
        struct lane *l = ex->lane;
        drain_plain(ex);
        if (table_get(&l->exchanges, id) != ex)
            return;
    }
    if (ex->answer_ended || !ex->upstream)
        return;
    for (;;) {
        int result = take_events(ex);
        if (result == ERR_AGAIN) {
            pause(ex);
            return;
        }
        if (result != 0)
            return;
        resume(ex);
        result = read_more(ex);
        if (result != 0)
            return;
    }
}

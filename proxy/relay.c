#include "proxy/relay.h"

#include "proxy/say.h"

#include <stdlib.h>

#define SECOND UINT64_C(1000000000)
/* Read behind a request that is over. */
enum { NOTICED = 16 * 1024 };

static enum reason reason_of(uint16_t status) {
    switch (status) {
    case 403:
        return REASON_PEER_NOT_ALLOWED;
    case 405:
    case 501:
        return REASON_METHOD_REFUSED;
    case 408:
        return REASON_REQUEST_TIMEOUT;
    case 413:
        return REASON_BODY_TOO_LARGE;
    case 414:
        return REASON_TARGET_TOO_LONG;
    case 417:
        return REASON_EXPECTATION;
    case 431:
        return REASON_HEAD_TOO_LARGE;
    default:
        return REASON_MALFORMED_REQUEST;
    }
}

static uint64_t seconds(const struct relay *x, enum limit which) {
    return x->client->proxy->limits.v[which] * SECOND;
}

static uint64_t now_of(const struct relay *x) {
    return loop_now(x->client->proxy->loop);
}

/* ---- life ---- */

static struct relay *relay_new(struct client *c) {
    struct proxy *p = c->proxy;
    struct relay *x = p->spare;
    if (x)
        p->spare = x->next_spare;
    else
        x = malloc(sizeof *x);
    if (!x)
        return NULL;
    uint64_t now = loop_now(p->loop);
    *x = (struct relay){.client = c, .heard = now, .wrote = now};
    x->id = ++p->last_exchange;
    x->window = x->request_window = x->credit = (size_t)p->limits.v[LIMIT_WINDOW];
    if (table_put(&p->relays, x->id, x) != 0) {
        free(x);
        return NULL;
    }
    c->relay = x;
    return x;
}

static void release(struct relay *x) {
    struct proxy *p = x->client->proxy;
    table_take(&p->relays, x->id);
    client_parser_done(x->client);
    x->client->relay = NULL;
    x->next_spare = p->spare;
    p->spare = x;
}

void relay_free_spare(struct proxy *p) {
    while (p->spare) {
        struct relay *x = p->spare;
        p->spare = x->next_spare;
        free(x);
    }
}

void relay_lost(struct relay *x) {
    struct client *c = x->client;
    /* Only a close-delimited answer does not show by itself that something is missing. */
    if (x->answer == ANSWER_BODY && x->framing == FRAMING_CLOSE)
        c->reset = true;
    if (x->answer != ANSWER_OVER || x->request == REQUEST_BODY)
        say_gone(c->proxy, x->id, REASON_CLIENT_CLOSED, "the client's connection ended");
    release(x);
}

/* ---- the request ---- */

void relay_begin(struct client *c, const struct request_head *h) {
    struct relay *x = relay_new(c);
    if (!x) {
        client_drop(c);
        return;
    }
    x->until = now_of(x) + seconds(x, LIMIT_REQUEST_TIME);
    x->is_head = view_equal(h->method, VIEW("HEAD"));
    x->is_old = h->minor == 0;
    x->expects = h->expect_continue && !x->is_old;
    x->keep = h->keep_alive;
    say_request(c, x->id, h);
    client_enter(c, CLIENT_EXCHANGE);
}

enum client_step relay_refuse(struct client *c, uint16_t status, const char *why,
                              struct view *input) {
    struct view bytes = *input;
    struct relay *x = relay_new(c);
    *input = view_skip(*input, input->n);
    if (!x) {
        client_drop(c);
        return STEP_WAIT;
    }
    x->until = now_of(x) + seconds(x, LIMIT_HEAD_TIME);
    x->request = REQUEST_REFUSED;
    say_malformed(c, x->id, status, reason_of(status), why, bytes);
    client_parser_done(c);
    client_enter(c, CLIENT_EXCHANGE);
    return STEP_WAIT;
}

/* The request broke off. While no answer has begun the client can still be told why. */
static enum client_step broken(struct relay *x, uint16_t status, const char *why,
                               struct view *input) {
    struct client *c = x->client;
    say_gone(c->proxy, x->id, reason_of(status), why);
    if (x->answer == ANSWER_DUE) {
        /* Egress answers this very exchange: one decision, one record. */
        *input = view_skip(*input, input->n);
        x->until = now_of(x) + seconds(x, LIMIT_HEAD_TIME);
        x->request = REQUEST_REFUSED;
        x->keep = false;
        client_parser_done(c);
        return STEP_WAIT;
    }
    bool reset = x->answer == ANSWER_BODY && x->framing == FRAMING_CLOSE;
    release(x);
    client_cut(c, reset);
    return STEP_WAIT;
}

/* Ends the exchange once nothing of the answer is left; true when it has ended. */
static bool settle(struct relay *x) {
    struct client *c = x->client;
    if (x->answer != ANSWER_OVER || buf_len(&c->wire.out) > 0)
        return false;
    bool keep = x->keep && x->request == REQUEST_OVER && !c->wire.ended && !c->proxy->stopping;
    if (x->request == REQUEST_BODY)
        say_gone(c->proxy, x->id, REASON_CLIENT_CLOSED, "the answer ended before the request");
    release(x);
    if (keep)
        client_enter(c, CLIENT_IDLE);
    else
        client_shut(c);
    return true;
}

/* The next piece of the request, of which egress has credit for every body byte. */
static struct http1_event next_piece(struct relay *x, struct view input) {
    struct http1 *parser = x->client->parser;
    struct http1_event e = http1_next(parser, view_head(input, x->credit));
    /* Only trailers use nothing of what they are given: they must lie whole, and need no credit. */
    if (e.what == HTTP1_MORE && e.used == 0 && x->credit > 0 && input.n > x->credit)
        e = http1_next(parser, input);
    return e;
}

enum client_step relay_step(struct client *c, struct view *input) {
    struct relay *x = c->relay;
    while (x->request == REQUEST_BODY) {
        struct view before = *input;
        struct http1_event e = next_piece(x, *input);
        *input = view_skip(*input, e.used);
        switch (e.what) {
        case HTTP1_BODY:
            say_body(c->proxy, x->id, e.body);
            x->credit -= e.body.n;
            x->heard = now_of(x);
            x->expects = false;
            break;
        case HTTP1_END:
            say_end(c->proxy, x->id, http1_trailers(c->parser));
            x->request = REQUEST_OVER;
            client_parser_done(c);
            return settle(x) ? STEP_NEXT : STEP_WAIT;
        case HTTP1_MORE:
            if (e.used == 0 || input->n == 0)
                return STEP_WAIT;
            break;
        case HTTP1_BAD:
            *input = before;
            return broken(x, e.status, e.why, input);
        case HTTP1_HEAD:
            return broken(x, 400, "a head inside a body", input);
        }
    }
    return STEP_WAIT;
}

bool relay_wants_input(const struct relay *x) {
    switch (x->request) {
    case REQUEST_BODY:
        return x->credit > 0;
    case REQUEST_OVER:
        /* Once, to notice the end; a next request waits for its turn. */
        return buf_len(&x->client->in) == 0;
    case REQUEST_REFUSED:
        break;
    }
    return false;
}

size_t relay_piece(const struct relay *x) {
    if (x->request != REQUEST_BODY)
        return NOTICED;
    /* While egress has the one half the other one is read. */
    size_t half = (x->request_window + 1) / 2;
    return x->credit < half ? x->credit : half;
}

void relay_ended(struct client *c) {
    struct relay *x = c->relay;
    /* Half-closed after a whole request: the answer is still wanted. */
    if (x->request == REQUEST_BODY)
        client_drop(c);
}

void relay_credit(struct relay *x, size_t n) {
    if (x->credit == 0)
        x->heard = now_of(x);
    size_t room = x->request_window > x->credit ? x->request_window - x->credit : 0;
    x->credit += n < room ? n : room;
    client_wake(x->client);
}

void relay_window(struct relay *x, size_t n) {
    x->request_window = n;
}

/* ---- the answer ---- */

void relay_continue(struct relay *x) {
    if (!x->expects || x->answer != ANSWER_DUE)
        return;
    x->expects = false;
    x->heard = now_of(x);
    buf_put(client_out(x->client), VIEW("HTTP/1.1 100 Continue\r\n\r\n"));
}

static bool has_no_body(const struct relay *x, uint16_t status) {
    return x->is_head || status == 204 || status == 304;
}

/* Which framing this client understands, and in which a cut shows. */
static void choose_framing(const struct relay *x, struct answer_head *h) {
    if (has_no_body(x, h->status)) {
        h->has_length = h->has_length || (h->framing == FRAMING_LENGTH && h->status != 204);
        h->framing = FRAMING_NONE;
        return;
    }
    h->has_length = false;
    if (h->framing == FRAMING_NONE) {
        h->framing = FRAMING_LENGTH;
        h->length = 0;
    }
    if (h->framing != FRAMING_LENGTH)
        h->framing = x->is_old ? FRAMING_CLOSE : FRAMING_CHUNKED;
}

static void put_interim(struct relay *x, const struct answer_head *h) {
    if (h->status == 100)
        relay_continue(x);
    else if (!x->is_old && x->request != REQUEST_REFUSED)
        http1_write_answer(client_out(x->client), h, true);
}

void relay_answer(struct relay *x, struct answer_head *h, bool end) {
    if (x->answer != ANSWER_DUE || h->status == 101) {
        relay_answer_cut(x);
        return;
    }
    if (h->status < 200) {
        put_interim(x, h);
        return;
    }
    choose_framing(x, h);
    x->answer = ANSWER_BODY;
    x->framing = h->framing;
    x->left = h->framing == FRAMING_LENGTH ? h->length : 0;
    x->wrote = now_of(x);
    /* A client that waits for 100 has not sent its body, and now will not. */
    x->keep = x->keep && !end && !x->client->proxy->stopping && h->framing != FRAMING_CLOSE &&
              x->request != REQUEST_REFUSED && !(x->expects && x->request == REQUEST_BODY);
    http1_write_answer(client_out(x->client), h, x->keep);
}

void relay_answer_body(struct relay *x, struct view v) {
    if (v.n == 0)
        return;
    /* Egress may pass its credit by what its guard held back, and not by more. */
    if (x->answer != ANSWER_BODY || v.n > 2 * x->window - x->owed ||
        (x->framing == FRAMING_LENGTH && v.n > x->left)) {
        relay_answer_cut(x);
        return;
    }
    struct buf *out = client_out(x->client);
    if (buf_len(out) == 0)
        x->wrote = now_of(x);
    x->owed += v.n;
    switch (x->framing) {
    case FRAMING_NONE:
        break;
    case FRAMING_LENGTH:
        x->left -= v.n;
        buf_put(out, v);
        break;
    case FRAMING_CLOSE:
        buf_put(out, v);
        break;
    case FRAMING_CHUNKED:
        http1_write_chunk(out, v);
        break;
    }
}

void relay_answer_end(struct relay *x) {
    if (x->answer != ANSWER_BODY || x->left > 0) {
        relay_answer_cut(x);
        return;
    }
    struct buf *out = client_out(x->client);
    if (x->framing == FRAMING_CHUNKED)
        http1_write_last_chunk(out);
    x->answer = ANSWER_OVER;
}

void relay_answer_cut(struct relay *x) {
    struct client *c = x->client;
    bool reset = x->answer == ANSWER_BODY && x->framing == FRAMING_CLOSE;
    release(x);
    client_cut(c, reset);
}

/* ---- back-pressure ---- */

static void give_credit(struct relay *x) {
    /* Of the bytes that are still gathered each may be body: what is surely written is the rest. */
    size_t gathered = buf_len(&x->client->wire.out);
    size_t written = x->owed > gathered ? x->owed - gathered : 0;
    x->owed -= written;
    x->passed += written;
    if (x->answer == ANSWER_OVER || x->passed < x->window / 4)
        return;
    say_credit(x->client->proxy, x->id, x->passed);
    x->passed = 0;
}

void relay_flushed(struct relay *x) {
    struct client *c = x->client;
    x->wrote = now_of(x);
    give_credit(x);
    if (settle(x))
        client_wake(c);
}

/* ---- deadlines ---- */

static bool body_is_late(const struct relay *x, uint64_t now) {
    /* While the client waits for 100, or we for credit, it is not the client that is slow. */
    return x->request == REQUEST_BODY && !x->expects && x->credit > 0 &&
           now >= x->heard + seconds(x, LIMIT_BODY_STALL);
}

void relay_sweep(struct relay *x, uint64_t now) {
    struct client *c = x->client;
    struct view input = buf_view(&c->in);
    bool unread = buf_len(&c->wire.out) > 0;
    if (now >= x->until || (unread && now >= x->wrote + seconds(x, LIMIT_BODY_STALL))) {
        client_drop(c);
        return;
    }
    if (!body_is_late(x, now))
        return;
    broken(x, 408, "the body stopped", &input);
    buf_reset(&c->in);
}

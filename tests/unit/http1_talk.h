/*
 * One side of an HTTP/1 connection, told as text: what the parser takes, piece by piece, and what it
 * refuses. A case is an input and the whole talk, or the status of its refusal; it must come out the
 * same wherever the input is cut.
 */
#ifndef TESTS_UNIT_HTTP1_TALK_H
#define TESTS_UNIT_HTTP1_TALK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http1.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The defaults; set by limits_setup. */
static struct limits limits;

/* ---- one connection, told as text ---- */

static void put_view(struct buf *out, struct view v) {
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] < 0x20 || v.p[i] >= 0x7f)
            buf_printf(out, "\\x%02x", v.p[i]);
        else
            buf_put_u8(out, v.p[i]);
}

static void put_fields(struct buf *out, const struct fields *f) {
    for (size_t i = 0; i < f->n; i++) {
        put_view(out, f->at[i].name);
        buf_put_str(out, "=");
        put_view(out, f->at[i].value);
        buf_put_str(out, ";");
    }
}

static void put_framing(struct buf *out, enum framing framing, uint64_t length) {
    static const char *const names[] = {"none", "length", "chunked", "close"};
    buf_printf(out, " %s:%llu", names[framing], (unsigned long long)length);
}

static void put_request(struct buf *out, const struct request_head *h) {
    static const char *const forms[] = {"origin", "absolute", "authority", "asterisk"};
    put_view(out, h->method);
    buf_printf(out, " %s%s [", forms[h->form], h->https ? "+https" : "");
    put_view(out, h->authority);
    buf_put_str(out, "] [");
    put_view(out, h->target);
    buf_put_str(out, h->has_host ? "] host=" : "] nohost");
    put_view(out, h->host);
    put_framing(out, h->framing, h->length);
    buf_printf(out, " 1.%u%s%s%s ", h->minor, h->keep_alive ? " keep" : "",
               h->expect_continue ? " expect" : "", h->upgrade ? " upgrade" : "");
    put_fields(out, &h->fields);
}

static void put_answer(struct buf *out, const struct answer_head *h) {
    buf_printf(out, "%u", h->status);
    put_framing(out, h->framing, h->length);
    buf_printf(out, " 1.%u%s%s ", h->minor, h->keep_alive ? " keep" : "",
               h->has_length ? " told" : "");
    put_fields(out, &h->fields);
}

struct talk {
    struct http1 *h;
    enum http1_side side;
    struct buf in, out;
    bool in_body, over, bad, last, counted;
    uint16_t status;
};

static void talk_open(struct talk *t, enum http1_side side, bool head_request) {
    memset(t, 0, sizeof *t);
    t->side = side;
    t->h = http1_new(side, &limits);
    assert_non_null(t->h);
    buf_init(&t->in, 4 << 20);
    buf_init(&t->out, 8 << 20);
    if (side == HTTP1_ANSWERS)
        http1_expect(t->h, head_request);
}

static void talk_close(struct talk *t) {
    http1_free(t->h);
    buf_free(&t->in);
    buf_free(&t->out);
}

static bool has_counted_body(const struct talk *t) {
    if (t->side == HTTP1_REQUESTS)
        return http1_request(t->h)->framing == FRAMING_LENGTH && http1_request(t->h)->length > 0;
    return http1_answer(t->h)->framing == FRAMING_LENGTH && http1_answer(t->h)->length > 0;
}

static void tell(struct talk *t, struct http1_event e) {
    if (e.what == HTTP1_BODY && !t->in_body)
        buf_put_str(&t->out, "<");
    if (e.what != HTTP1_BODY && e.what != HTTP1_MORE && t->in_body)
        buf_put_str(&t->out, ">");
    if (e.what == HTTP1_END)
        assert_int_equal(t->last, t->counted);
    if (e.what != HTTP1_MORE) {
        assert_true(!t->last || e.what == HTTP1_END);
        t->in_body = e.what == HTTP1_BODY;
        t->last = e.what == HTTP1_BODY && e.last;
    }
    switch (e.what) {
    case HTTP1_MORE:
        break;
    case HTTP1_HEAD:
        t->counted = has_counted_body(t);
        if (t->side == HTTP1_REQUESTS)
            put_request(&t->out, http1_request(t->h));
        else
            put_answer(&t->out, http1_answer(t->h));
        break;
    case HTTP1_BODY:
        assert_true(e.body.n > 0);
        assert_true(e.body.p >= buf_view(&t->in).p);
        assert_true(e.body.p + e.body.n <= buf_view(&t->in).p + e.used);
        put_view(&t->out, e.body);
        break;
    case HTTP1_END:
        buf_put_str(&t->out, "END{");
        put_fields(&t->out, http1_trailers(t->h));
        buf_put_str(&t->out, "}");
        break;
    case HTTP1_BAD:
        t->bad = t->over = true;
        t->status = e.status;
        assert_non_null(e.why);
        buf_printf(&t->out, "BAD %u", e.status);
        break;
    }
}

static void talk_give(struct talk *t, struct view v) {
    buf_put(&t->in, v);
    assert_true(buf_ok(&t->in));
    while (!t->over) {
        struct http1_event e = http1_next(t->h, buf_view(&t->in));
        assert_true(e.used <= buf_len(&t->in));
        tell(t, e);
        buf_consume(&t->in, e.used);
        if (e.what == HTTP1_MORE)
            break;
    }
}

static void talk_eof(struct talk *t) {
    if (t->over)
        return;
    struct http1_event e = http1_eof(t->h);
    tell(t, e);
    if (e.what == HTTP1_MORE)
        buf_put_str(&t->out, "EOF");
}

struct case_of {
    const char *input;
    size_t n;
    const char *expect; /* the whole talk, or NULL when only the status matters */
    uint16_t status;    /* of the refusal, 0 for none */
    bool head_request;
};

#define TAKEN(input, expect)                                                                       \
    { input, sizeof(input) - 1, expect, 0, false }
#define REFUSED(input, status)                                                                     \
    { input, sizeof(input) - 1, NULL, status, false }

/* The talk when the input comes in pieces: [0, a), [a, a + step), ... */
static void talk_cut(struct talk *t, const struct case_of *c, enum http1_side side, size_t a,
                     size_t step) {
    talk_open(t, side, c->head_request);
    struct view v = view_of(c->input, c->n);
    talk_give(t, view_head(v, a));
    for (size_t at = a; at < v.n; at += step)
        talk_give(t, view_slice(v, at, at + step));
    talk_eof(t);
    buf_put_u8(&t->out, 0);
    assert_true(buf_ok(&t->out));
}

static void check_same(const struct case_of *c, const struct talk *whole, size_t a, size_t step,
                       enum http1_side side) {
    struct talk t;
    talk_cut(&t, c, side, a, step);
    if (!view_equal(buf_view(&t.out), buf_view(&whole->out)))
        fail_msg("cut at %zu step %zu of:\n%s\nwhole: %s\ncut:   %s", a, step, c->input,
                 (char *)buf_view(&whole->out).p, (char *)buf_view(&t.out).p);
    talk_close(&t);
}

static void check(const struct case_of *c, enum http1_side side) {
    struct talk whole;
    talk_cut(&whole, c, side, c->n, 1);
    const char *text = (const char *)buf_view(&whole.out).p;
    if (whole.status != c->status)
        fail_msg("status %u, not %u, for:\n%s\n%s", whole.status, c->status, c->input, text);
    if (c->expect && strcmp(text, c->expect) != 0)
        fail_msg("for:\n%s\nexpected: %s\ngot:      %s", c->input, c->expect, text);
    for (size_t a = 1; a < c->n; a++)
        check_same(c, &whole, a, c->n, side);
    check_same(c, &whole, 0, 1, side);
    talk_close(&whole);
}

__attribute__((unused)) static void check_all(const struct case_of *c, size_t n,
                                              enum http1_side side) {
    for (size_t i = 0; i < n; i++)
        check(&c[i], side);
}

#define CHECK_REQUESTS(cases) check_all(cases, COUNT(cases), HTTP1_REQUESTS)
#define CHECK_ANSWERS(cases) check_all(cases, COUNT(cases), HTTP1_ANSWERS)

/* A request with the given lines after a Host. */
#define GET(lines) "GET / HTTP/1.1\r\nHost: a\r\n" lines "\r\n"
#define POST(lines) "POST / HTTP/1.1\r\nHost: a\r\n" lines "\r\n"
#define CHUNKED(body) POST("Transfer-Encoding: chunked\r\n") body
#define PLAIN "GET origin [] [/] host=a none:0 1.1 keep "

static int limits_setup(void **state) {
    (void)state;
    limits_default(&limits);
    return 0;
}

#endif

/*
 * One HTTP/1 connection for fuzzing: the input whole, and the same input in
 * pieces of a size that the input chooses, must tell the same; and every head
 * that the parser lets through must survive as a record and on the wire.
 */
#ifndef FUZZ_HTTP1_TALK_H
#define FUZZ_HTTP1_TALK_H

#include "fuzz/require.h"
#include "http/http1.h"

#include <stdlib.h>

struct talk {
    struct http1 *h;
    enum http1_side side;
    struct buf in, told;
    bool in_body, over;
};

/* A record is read back by its reader, and written for the wire is parsed to the same record. */
static void check_request(const struct request_head *h, const struct limits *limits) {
    static struct request_head back;
    if (fields_find(&h->fields, VIEW("proxy-authorization"), NULL) > 0)
        return;
    struct buf record, expected, again, wire;
    buf_init(&record, 1 << 20);
    buf_init(&expected, 1 << 20);
    buf_init(&again, 1 << 20);
    buf_init(&wire, 1 << 20);
    request_write(h, &record);
    struct reader r = reader_of(buf_view(&record));
    REQUIRE(request_read(&r, &back) == 0 && read_done(&r));
    if (h->form == FORM_ORIGIN && h->minor == 1 && !h->upgrade && !h->expect_continue) {
        http1_write_request(&wire, back.method, back.target, back.host, &back.fields, back.framing,
                            back.length, back.keep_alive);
        struct http1 *p = http1_new(HTTP1_REQUESTS, limits);
        REQUIRE(p && buf_ok(&wire));
        /* Of a placeholder in what is dropped the record alone tells. */
        back.placeholder_dropped = false;
        request_write(&back, &expected);
        /* The rewritten head may pass a limit of size or number that the original did not. */
        if (http1_next(p, buf_view(&wire)).what == HTTP1_HEAD) {
            request_write(http1_request(p), &again);
            REQUIRE(view_equal(buf_view(&expected), buf_view(&again)));
        } else {
            REQUIRE(buf_len(&wire) > limits->v[LIMIT_HEAD_BYTES] / 2 ||
                    h->fields.n + 3 > limits->v[LIMIT_HEAD_FIELDS]);
        }
        http1_free(p);
    }
    buf_free(&record);
    buf_free(&expected);
    buf_free(&again);
    buf_free(&wire);
}

static void check_answer(const struct answer_head *h) {
    static struct answer_head back;
    struct buf record, wire;
    buf_init(&record, 1 << 20);
    buf_init(&wire, 1 << 20);
    answer_write(h, &record);
    struct reader r = reader_of(buf_view(&record));
    REQUIRE(answer_read(&r, &back) == 0 && read_done(&r));
    http1_write_answer(&wire, &back, back.keep_alive);
    REQUIRE(buf_ok(&wire));
    buf_free(&record);
    buf_free(&wire);
}

static void tell(struct talk *t, struct http1_event e, const struct limits *limits) {
    if (e.what == HTTP1_MORE)
        return;
    if (!(t->in_body && e.what == HTTP1_BODY))
        buf_put_u8(&t->told, (uint8_t)e.what);
    t->in_body = e.what == HTTP1_BODY;
    if (e.what == HTTP1_BODY)
        buf_put(&t->told, e.body);
    if (e.what == HTTP1_BAD)
        buf_put_u16(&t->told, e.status);
    if (e.what == HTTP1_END)
        buf_put_u16(&t->told, (uint16_t)http1_trailers(t->h)->n);
    if (e.what == HTTP1_HEAD && t->side == HTTP1_REQUESTS) {
        request_write(http1_request(t->h), &t->told);
        check_request(http1_request(t->h), limits);
    }
    if (e.what == HTTP1_HEAD && t->side == HTTP1_ANSWERS) {
        answer_write(http1_answer(t->h), &t->told);
        check_answer(http1_answer(t->h));
    }
    t->over = e.what == HTTP1_BAD;
}

static void talk_run(struct talk *t, enum http1_side side, bool head_request, struct view v,
                     size_t piece, const struct limits *limits) {
    *t = (struct talk){.side = side, .h = http1_new(side, limits)};
    REQUIRE(t->h);
    buf_init(&t->in, 4 << 20);
    buf_init(&t->told, 64 << 20);
    if (side == HTTP1_ANSWERS)
        http1_expect(t->h, head_request);
    for (size_t at = 0; at < v.n && !t->over; at += piece) {
        buf_put(&t->in, view_slice(v, at, at + piece));
        struct http1_event e;
        do {
            e = http1_next(t->h, buf_view(&t->in));
            tell(t, e, limits);
            buf_consume(&t->in, e.used);
        } while (e.what != HTTP1_MORE && e.what != HTTP1_BAD);
    }
    if (!t->over)
        tell(t, http1_eof(t->h), limits);
}

static void talk_end(struct talk *t) {
    http1_free(t->h);
    buf_free(&t->in);
    buf_free(&t->told);
}

/* The first byte chooses the pieces and whether a HEAD was asked. */
static void talk_fuzz(enum http1_side side, const uint8_t *data, size_t size) {
    static struct limits limits;
    struct talk whole, cut;
    if (size < 2)
        return;
    limits_default(&limits);
    limits.v[LIMIT_HEAD_BYTES] = 1024;
    limits.v[LIMIT_TARGET_BYTES] = 256;
    limits.v[LIMIT_HEAD_FIELDS] = 16;
    limits.v[LIMIT_TRAILER_BYTES] = 64;
    limits.v[LIMIT_CHUNK_OVERHEAD] = 1024;
    struct view v = view_of(data + 1, size - 1);
    bool head_request = data[0] & 0x80;
    talk_run(&whole, side, head_request, v, v.n, &limits);
    talk_run(&cut, side, head_request, v, (data[0] & 0x7f) + 1u, &limits);
    REQUIRE(buf_ok(&whole.told) && view_equal(buf_view(&whole.told), buf_view(&cut.told)));
    talk_end(&whole);
    talk_end(&cut);
}

#endif

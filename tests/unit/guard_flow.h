/*
 * A guard over secrets of several forms, texts with what of them must be masked, and streams that are
 * fed by pieces.
 */
#ifndef TESTS_UNIT_GUARD_FLOW_H
#define TESTS_UNIT_GUARD_FLOW_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/secret.h"
#include "egress/guard.h"
#include "egress/spelling.h"

#include <stdio.h>
#include <string.h>

enum { RUN = 16 };

/* The vendor's prefix, then 35 characters nobody can know. */
static const char secret[] = "key-Zx9+Tq/4mBv=7LrW2sKd8hYn0cPf5gJt\"Ea";
static const char other[] = "f5gJt\"Ea_N3uQ6wXe1RiVo9ZkMb4yHlSd7pC";
static const char jwt[] = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
                          "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";

static struct guard_set *set_of(const char *a, const char *b) {
    struct guard_set *set = guard_set_new(8, RUN, 0x1234567890abcdef);
    assert_non_null(set);
    assert_int_equal(guard_set_add(set, view_str(a), VIEW("key"), 4, 100), 0);
    if (b)
        assert_int_equal(guard_set_add(set, view_str(b), VIEW("key"), 0, 100), 0);
    return set;
}

/* A stream over a set, and what has come out of it. */
struct flow {
    struct guard_stream stream;
    struct buf out;
};

static void flow_open(struct flow *f, struct guard_set *set) {
    buf_init(&f->out, 1 << 20);
    guard_stream_init(&f->stream, set);
}

static void flow_close(struct flow *f) {
    guard_stream_free(&f->stream);
    buf_free(&f->out);
}

static void feed(struct flow *f, struct view v) {
    assert_int_equal(guard_stream_feed(&f->stream, v, &f->out), 0);
}

static void release(struct flow *f) {
    assert_int_equal(guard_stream_release(&f->stream, &f->out), 0);
}

static size_t held(const struct flow *f) {
    return guard_stream_held(&f->stream);
}

static void check_output(struct flow *f, struct view expected) {
    assert_int_equal(buf_len(&f->out), expected.n);
    if (expected.n)
        assert_memory_equal(buf_view(&f->out).p, expected.p, expected.n);
    buf_reset(&f->out);
}

/* Every way to cut text in two, and one byte at a time, must give expected. */
static void check_all_cuts(struct guard_set *set, struct view text, struct view expected) {
    struct flow f;
    for (size_t cut = 0; cut <= text.n; cut++) {
        flow_open(&f, set);
        feed(&f, view_head(text, cut));
        feed(&f, view_skip(text, cut));
        release(&f);
        check_output(&f, expected);
        flow_close(&f);
        flow_open(&f, set);
        feed(&f, view_head(text, cut));
        assert_int_equal(guard_stream_end(&f.stream, view_skip(text, cut), &f.out), 0);
        assert_int_equal(held(&f), 0);
        check_output(&f, expected);
        flow_close(&f);
    }
    flow_open(&f, set);
    for (size_t i = 0; i < text.n; i++)
        feed(&f, view_slice(text, i, i + 1));
    release(&f);
    assert_int_equal(held(&f), 0);
    check_output(&f, expected);
    flow_close(&f);
}

struct text {
    uint8_t in[8192], out[8192];
    size_t n;
};

static void put(struct text *t, struct view v, bool masked) {
    memcpy(t->in + t->n, v.p, v.n);
    memcpy(t->out + t->n, v.p, v.n);
    if (masked)
        memset(t->out + t->n, '*', v.n);
    t->n += v.n;
}

static inline void check_text(struct guard_set *set, const struct text *t) {
    check_all_cuts(set, view_of(t->in, t->n), view_of(t->out, t->n));
}

static inline const char *fragment_at(size_t from, size_t to, char text[128]) {
    snprintf(text, 128, "id %.*s ok", (int)(to - from), secret + from);
    return text;
}

/* ---- groups of tests ---- */

static int open_arena(void **state) {
    (void)state;
    return secret_arena_open((size_t)4 << 20);
}

static int nothing_is_left(void **state) {
    (void)state;
    return secret_in_use() == 0 ? 0 : -1;
}

#define TEST(f) cmocka_unit_test_teardown(f, nothing_is_left)

#endif

/* The guard's search around a place finds what the search of all finds there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/secret.h"
#include "egress/guard_index.h"

#include <stdlib.h>
#include <string.h>

enum { N_PATTERNS = 6, SIZE = 90, TEXT = 400, RUNS_MAX = 256 };

static unsigned seed = 1;

static size_t below(size_t n) {
    seed = seed * 1103515245 + 12345;
    return (seed >> 8) % n;
}

struct runs {
    struct guard_run at[RUNS_MAX];
    size_t n;
};

static void note(void *ctx, const struct guard_run *run) {
    struct runs *r = ctx;
    assert_true(r->n < RUNS_MAX);
    r->at[r->n++] = *run;
}

static bool has(const struct runs *r, const struct guard_run *run) {
    for (size_t i = 0; i < r->n; i++)
        if (r->at[i].pattern == run->pattern && r->at[i].from == run->from &&
            r->at[i].to == run->to)
            return true;
    return false;
}

static void fill(uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)('a' + below(26));
}

/* Spellings of all lengths, some with a head that does not count. */
static void build(struct guard_index *x, uint8_t (*texts)[SIZE]) {
    struct guard_pattern *patterns = secret_alloc(N_PATTERNS * sizeof *patterns);
    assert_non_null(patterns);
    memset(patterns, 0, N_PATTERNS * sizeof *patterns);
    for (size_t i = 0; i < N_PATTERNS; i++) {
        size_t n = 40 + below(SIZE - 40), head = below(20);
        fill(texts[i], n);
        patterns[i] = (struct guard_pattern){
            .text = texts[i], .n = n, .head = head, .need = GUARD_GRAM + below(12)};
    }
    assert_int_equal(guard_index_build(x, patterns, N_PATTERNS, 0x9e3779b97f4a7c15), 0);
}

/* Pieces of the spellings between other letters. */
static void compose(const struct guard_index *x, uint8_t text[TEXT]) {
    fill(text, TEXT);
    for (size_t at = below(30); at < TEXT; at += below(40)) {
        const struct guard_pattern *p = &x->patterns[below(x->n)];
        size_t from = below(p->n), n = 1 + below(p->n - from);
        n = n < TEXT - at ? n : TEXT - at;
        memcpy(text + at, p->text + from, n);
        at += n;
    }
}

static size_t check_places(const struct guard_index *x, struct view text) {
    static struct runs all, some;
    size_t checked = 0;
    all.n = 0;
    guard_index_scan(x, text, note, &all);
    for (size_t from = 0; from < text.n; from++) {
        size_t to = from + 1 + below(4);
        some.n = 0;
        guard_index_scan_at(x, text, from, to, note, &some);
        for (size_t i = 0; i < all.n; i++) {
            if (all.at[i].from >= to || all.at[i].to <= from)
                continue;
            assert_true(has(&some, &all.at[i]));
            checked++;
        }
    }
    return checked;
}

static void rf_01_around_a_place_all_runs_are_found_that_hold_it(void **state) {
    static uint8_t texts[N_PATTERNS][SIZE], text[TEXT];
    size_t checked = 0;
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct guard_index x;
        build(&x, texts);
        compose(&x, text);
        checked += check_places(&x, view_of(text, TEXT));
        guard_index_free(&x);
    }
    assert_true(checked > 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rf_01_around_a_place_all_runs_are_found_that_hold_it),
    };
    return secret_arena_open(1 << 20) == 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

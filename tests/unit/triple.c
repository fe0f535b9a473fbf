#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/triple.h"

#include <stdlib.h>

static size_t next_slowly(const struct triple *t, struct view v, size_t at) {
    for (; at + 2 < v.n; at++)
        if (t->kinds[0][v.p[at]] & t->kinds[1][v.p[at + 1]] & t->kinds[2][v.p[at + 2]])
            return at;
    return v.n;
}

static uint32_t random_next(uint32_t *x) {
    *x = *x * 1664525 + 1013904223;
    return *x >> 8;
}

/* Bytes of few and of all values, so that places are many and none. */
static void check_random(uint32_t seed, uint8_t values) {
    struct triple t = {0};
    for (int k = 0; k < 12; k++)
        for (size_t i = 0; i < 3; i++)
            t.kinds[i][random_next(&seed) % values] |= (uint8_t)(1u << k % 8);
    triple_prepare(&t);
    for (size_t n = 0; n <= 150; n++) {
        uint8_t *p = malloc(n + 1); /* exactly as long as the text: sanitizers see a byte too far */
        for (size_t i = 0; i < n; i++)
            p[1 + i] = (uint8_t)(random_next(&seed) % values);
        struct view v = view_of(p + 1, n);
        for (size_t at = 0; at <= n; at++)
            assert_int_equal(triple_next(&t, v, at), next_slowly(&t, v, at));
        free(p);
    }
}

static void every_place_is_found_in_order_and_no_other(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 40; seed++) {
        check_random(seed, 4);
        check_random(seed, 40);
        check_random(seed, 255);
    }
}

static void a_place_is_found_wherever_it_stands(void **state) {
    (void)state;
    static const uint8_t wanted[] = {0xff, 0, 'x'};
    struct triple t = {0};
    uint8_t text[130];
    for (size_t i = 0; i < 3; i++)
        t.kinds[i][wanted[i]] = 0x80;
    triple_prepare(&t);
    memset(text, 'a', sizeof text);
    assert_int_equal(triple_next(&t, view_of(text, sizeof text), 0), sizeof text);
    for (size_t at = 0; at + 3 <= sizeof text; at++) {
        memset(text, 'a', sizeof text);
        memcpy(text + at, wanted, sizeof wanted);
        assert_int_equal(triple_next(&t, view_of(text, sizeof text), 0), at);
        assert_int_equal(triple_next(&t, view_of(text, sizeof text), at), at);
        assert_int_equal(triple_next(&t, view_of(text, sizeof text), at + 1), sizeof text);
        assert_int_equal(triple_next(&t, view_of(text, at + 2), 0), at + 2);
        assert_int_equal(triple_kinds(&t, text + at), 0x80);
    }
}

/* Halves of bytes that are of a kind make up others that are not. */
static void bytes_that_share_their_halves_with_others_are_no_places(void **state) {
    (void)state;
    struct triple t = {0};
    uint8_t text[256 + 2];
    for (size_t i = 0; i < 3; i++)
        t.kinds[i][0x12] = t.kinds[i][0x34] = 1;
    triple_prepare(&t);
    memset(text, 0x14, sizeof text);
    assert_int_equal(triple_next(&t, view_of(text, sizeof text), 0), sizeof text);
    memset(text + 100, 0x32, 60);
    memset(text + 200, 0x34, 3);
    assert_int_equal(triple_next(&t, view_of(text, sizeof text), 0), 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_is_found_in_order_and_no_other),
        cmocka_unit_test(a_place_is_found_wherever_it_stands),
        cmocka_unit_test(bytes_that_share_their_halves_with_others_are_no_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

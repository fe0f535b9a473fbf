#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/fold.h"

#include <stdlib.h>

enum { TEXT_MAX = 512 };

static size_t without_folds(struct view text, uint8_t *out) {
    static bool gone[TEXT_MAX];
    size_t n = fold_remove(text, out, gone), kept = 0;
    if (n == text.n)
        return n;
    for (size_t i = 0; i < text.n; i++)
        if (!gone[i])
            assert_int_equal(text.p[i], out[kept++]);
    assert_int_equal(kept, n);
    return n;
}

static void check(struct view text, struct view expected) {
    uint8_t out[TEXT_MAX];
    size_t n = without_folds(text, out);
    if (n == text.n) {
        assert_int_equal(n, expected.n);
        return;
    }
    if (!view_equal(view_of(out, n), expected))
        fail_msg("got %.*s", VIEW_ARG(view_of(out, n)));
}

static void folds_are_taken_out_and_other_line_ends_stay(void **state) {
    (void)state;
    static const struct {
        struct view text, expected;
    } cases[] = {
        {VIEW("0123456789abcdef\n0123"), VIEW("0123456789abcdef0123")},
        {VIEW("0123456789abcdef\r\n \t0123"), VIEW("0123456789abcdef0123")},
        {VIEW("0123456789abcdef\r"), VIEW("0123456789abcdef")},
        {VIEW("0123456789abcde\n0123"), VIEW("0123456789abcde\n0123")},
        {VIEW("0123456789abcdef\n\n0123"), VIEW("0123456789abcdef\n\n0123")},
        {VIEW("0123456789abcdef}\n0123"), VIEW("0123456789abcdef}\n0123")},
        {VIEW("ab=\r\ncd"), VIEW("abcd")},
        {VIEW("\\nab%0Acd\\\\r\\\\nef%0d%0a gh\\n"), VIEW("abcdefgh")},
        {VIEW("%0"), VIEW("%0")},
        {VIEW("ab\\"), VIEW("ab\\")},
        {VIEW("\n"), VIEW("\n")},
        {VIEW(""), VIEW("")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].text, cases[i].expected);
}

static size_t put(uint8_t *to, size_t n, const char *piece) {
    memcpy(to + n, piece, strlen(piece));
    return n + strlen(piece);
}

static const char *const pieces[] = {"0123456789abcdefg",
                                     "0123456789abcdef",
                                     "x",
                                     " ",
                                     "=",
                                     "\n",
                                     "\r\n",
                                     "\r",
                                     "%0D",
                                     "%0a",
                                     "\\n",
                                     "\\\\r\\\\n",
                                     "%",
                                     "\\",
                                     "\x80",
                                     "}",
                                     "\t",
                                     "0",
                                     "\r\n ",
                                     "n"};

static size_t compose(uint8_t *text, uint32_t *seed) {
    size_t n = 0;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * 1664525 + 1013904223;
        n = put(text, n, pieces[(*seed >> 8) % (sizeof pieces / sizeof *pieces)]);
    }
    return n;
}

/* Where a text stands does not matter: bytes are looked at many at once, and each of them the same way. */
static void rf_05_words_before_and_behind_a_text_change_nothing(void **state) {
    (void)state;
    uint8_t text[TEXT_MAX], moved[TEXT_MAX], out[TEXT_MAX], moved_out[TEXT_MAX];
    uint32_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        size_t n = put(text, compose(text, &seed), " z"), before = (size_t)round % 50;
        memset(moved, ' ', before);
        memcpy(moved + before, text, n);
        memset(moved + before + n, '-', 40);
        size_t plain = without_folds(view_of(text, n), out);
        size_t m = without_folds(view_of(moved, before + n + 40), moved_out);
        const uint8_t *got = m == before + n + 40 ? moved : moved_out;
        assert_int_equal(m, before + plain + 40);
        assert_memory_equal(got + before, plain == n ? text : out, plain);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds_are_taken_out_and_other_line_ends_stay),
        cmocka_unit_test(rf_05_words_before_and_behind_a_text_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

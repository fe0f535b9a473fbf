/*
 * The byte check alone: which bytes it lets through, that it looks at each once,
 * and where it says that a head ends. What heads are refused is tested in http1.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "http/strict.h"

static void test_every_byte_is_in_the_classes_of_the_rfc(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        uint8_t byte = (uint8_t)c;
        struct view v = view_of(&byte, 1);
        bool visible = c > 0x20 && c < 0x7f;
        assert_int_equal(strict_is_token(v), is_tchar(byte));
        assert_int_equal(strict_is_name(v), is_tchar(byte) && !(c >= 'A' && c <= 'Z'));
        assert_int_equal(strict_is_value(v), visible || c >= 0x80);
        assert_int_equal(strict_is_target(v), visible && c != '#' && c != '\\');
        assert_int_equal(strict_is_authority(v),
                         is_alnum(byte) || (c != 0 && strchr("-._:[]", c) != NULL));
    }
}

static void test_a_bad_byte_is_found_at_every_place_of_a_value(void **state) {
    (void)state;
    static const uint8_t bad[] = {0, 1, 8, 10, 13, 0x1f, 0x7f};
    uint8_t value[40];
    for (size_t at = 0; at < sizeof value; at++) {
        for (size_t b = 0; b < sizeof bad; b++) {
            memset(value, 0xff, sizeof value);
            value[at] = bad[b];
            assert_false(strict_is_value(view_of(value, sizeof value)));
        }
        memset(value, '\t', sizeof value);
        value[0] = value[sizeof value - 1] = 0x80;
        assert_true(strict_is_value(view_of(value, sizeof value)));
    }
}

static void test_empty_views_are_values_and_nothing_else(void **state) {
    (void)state;
    struct view empty = {NULL, 0};
    assert_true(strict_is_value(empty));
    assert_false(strict_is_token(empty));
    assert_false(strict_is_name(empty));
    assert_false(strict_is_target(empty));
    assert_false(strict_is_authority(empty));
}

static void test_a_head_ends_behind_its_empty_line(void **state) {
    (void)state;
    static const char head[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    static const char input[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET";
    struct strict_head s;
    strict_head_init(&s, STRICT_REQUEST, 1000, 100, 10);
    for (size_t n = 0; n < sizeof head - 1; n++) {
        assert_int_equal(strict_head_scan(&s, view_of(input, n)), ERR_AGAIN);
        assert_int_equal(s.at, n);
    }
    assert_int_equal(strict_head_scan(&s, view_of(input, sizeof input - 1)), 0);
    assert_int_equal(s.at, sizeof head - 1);
    assert_int_equal(s.fields, 1);
}

static void test_fields_are_split_at_the_first_colon(void **state) {
    (void)state;
    struct view lines = VIEW("A: b:c \r\nD:\r\n\r\nrest"), name, value;
    assert_true(strict_field(&lines, &name, &value));
    assert_true(view_equal(name, VIEW("A")));
    assert_true(view_equal(value, VIEW("b:c")));
    assert_true(strict_field(&lines, &name, &value));
    assert_true(view_equal(name, VIEW("D")));
    assert_int_equal(value.n, 0);
    assert_false(strict_field(&lines, &name, &value));
    assert_true(view_equal(lines, VIEW("rest")));
}

static void test_a_head_without_end_is_refused_at_its_limit(void **state) {
    (void)state;
    static const char input[] = "HTTP/1.1 200 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct strict_head s;
    strict_head_init(&s, STRICT_ANSWER, 30, 0, 10);
    assert_int_equal(strict_head_scan(&s, view_of(input, 29)), ERR_AGAIN);
    assert_int_equal(strict_head_scan(&s, view_of(input, 31)), ERR_BAD);
    assert_int_equal(s.status, 431);
    assert_int_equal(s.at, 30);
}

static void test_a_large_chunk_is_counted_not_kept(void **state) {
    (void)state;
    struct strict_chunks c;
    uint8_t piece[1000] = {0};
    size_t used;
    struct view data;
    strict_chunks_init(&c, 100);
    assert_int_equal(strict_chunks_next(&c, VIEW("7fffffffffffffff\r\n"), &used, &data),
                     STRICT_MORE);
    assert_int_equal(used, 18);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(strict_chunks_next(&c, view_of(piece, sizeof piece), &used, &data),
                         STRICT_DATA);
        assert_ptr_equal(data.p, piece);
        assert_int_equal(data.n, sizeof piece);
    }
    assert_int_equal(c.left, INT64_MAX - 1000000);
}

static void check_line(size_t number, struct view line, enum strict_piece wanted) {
    struct strict_chunks c;
    size_t used;
    struct view data;
    strict_chunks_init(&c, 100);
    if (strict_chunks_next(&c, line, &used, &data) != wanted)
        fail_msg("case %zu: %.*s", number, (int)line.n, (const char *)line.p);
}

static void test_a_chunk_that_no_body_can_hold_is_refused(void **state) {
    (void)state;
    static const struct {
        struct view line;
        enum strict_piece piece;
    } cases[] = {
        {VIEW("7fffffffffffffff\r\n"), STRICT_MORE},
        {VIEW("8000000000000000\r\n"), STRICT_BAD},
        {VIEW("ffffffffffffffff\r\n"), STRICT_BAD},
        {VIEW("0000000000000001\r\n"), STRICT_MORE},
        {VIEW("00000000000000001\r\n"), STRICT_BAD},
        {VIEW("1;\x7f\r\n"), STRICT_BAD},
        {VIEW("1;\x80\r\n"), STRICT_BAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_line(i, cases[i].line, cases[i].piece);
}

static void test_sm_14_a_chunk_extension_is_one_name_with_at_most_one_value(void **state) {
    (void)state;
    static const struct view good[] = {
        VIEW("a"), VIEW("a=b"), VIEW("a=\"\""), VIEW("a=\"b;c=, \t\""), VIEW("!#~=|"),
    };
    static const struct view bad[] = {
        VIEW(""),      VIEW(";"),         VIEW(";a"),         VIEW("=b"),
        VIEW("a="),    VIEW("a;b"),       VIEW("a=b;c"),      VIEW("a=b;c=d"),
        VIEW("a=b=c"), VIEW("a=\"b\";c"), VIEW("a=\"\\\"\""), VIEW("a=\"\\a\""),
        VIEW("a=\"b"), VIEW("a=\"b\"c"),  VIEW("a=b\""),      VIEW(" a"),
        VIEW("a =b"),  VIEW("a= b"),      VIEW("a "),         VIEW("a=\"b\" "),
        VIEW("\"a\""), VIEW("a@"),        VIEW("a=\"\x01\""), VIEW("a=\"\x80\""),
        VIEW("\ta"),
    };
    char line[64];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(line, sizeof line, "1;%.*s\r\n", (int)good[i].n, (const char *)good[i].p);
        check_line(i, view_str(line), STRICT_MORE);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(line, sizeof line, "1;%.*s\r\n", (int)bad[i].n, (const char *)bad[i].p);
        check_line(i, view_str(line), STRICT_BAD);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_is_in_the_classes_of_the_rfc),
        cmocka_unit_test(test_a_bad_byte_is_found_at_every_place_of_a_value),
        cmocka_unit_test(test_empty_views_are_values_and_nothing_else),
        cmocka_unit_test(test_a_head_ends_behind_its_empty_line),
        cmocka_unit_test(test_fields_are_split_at_the_first_colon),
        cmocka_unit_test(test_a_head_without_end_is_refused_at_its_limit),
        cmocka_unit_test(test_a_large_chunk_is_counted_not_kept),
        cmocka_unit_test(test_a_chunk_that_no_body_can_hold_is_refused),
        cmocka_unit_test(test_sm_14_a_chunk_extension_is_one_name_with_at_most_one_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

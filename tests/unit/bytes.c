#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct view none = {NULL, 0};

/* ---- views ---- */

static void views_compare_like_bytes(void **state) {
    (void)state;
    assert_true(view_equal(none, VIEW("")));
    assert_true(view_equal(VIEW("a\0b"), VIEW("a\0b")));
    assert_false(view_equal(VIEW("a\0b"), VIEW("a\0c")));
    assert_false(view_equal(VIEW("a"), VIEW("ab")));
    assert_true(view_equal_nocase(VIEW("HoSt"), VIEW("hOsT")));
    assert_false(view_equal_nocase(VIEW("[@"), VIEW("{`"))); /* 0x20 apart, but no letters */
    assert_false(view_equal_nocase(VIEW("\xc9"), VIEW("\xe9")));
    assert_true(view_compare(VIEW("a"), VIEW("ab")) < 0);
    assert_true(view_compare(VIEW("b"), VIEW("ab")) > 0);
    assert_true(view_compare(VIEW("\xff"), VIEW("a")) > 0);
    assert_int_equal(view_compare(none, VIEW("")), 0);
    assert_true(view_starts(VIEW("abc"), VIEW("ab")) && view_starts(VIEW("abc"), none));
    assert_false(view_starts(VIEW("ab"), VIEW("abc")));
    assert_true(view_ends(VIEW("abc"), VIEW("bc")) && view_ends(VIEW("abc"), none));
    assert_false(view_ends(VIEW("bc"), VIEW("abc")));
}

static void parts_of_views_stay_inside(void **state) {
    struct view v = VIEW("abc");
    (void)state;
    assert_true(view_equal(view_skip(v, 1), VIEW("bc")));
    assert_int_equal(view_skip(v, SIZE_MAX).n, 0);
    assert_int_equal(view_skip(none, 5).n, 0);
    assert_true(view_equal(view_head(v, SIZE_MAX), v));
    assert_true(view_equal(view_slice(v, 1, 2), VIEW("b")));
    assert_int_equal(view_slice(v, 2, 1).n, 0);
    assert_int_equal(view_slice(v, SIZE_MAX, SIZE_MAX).n, 0);
    assert_true(view_equal(view_slice(v, 1, SIZE_MAX), VIEW("bc")));
    assert_int_equal(view_find(v, 'c'), 2);
    assert_int_equal(view_find(v, 'x'), 3);
    assert_int_equal(view_find(none, 0), 0);
    assert_int_equal(view_search(VIEW("aabc"), VIEW("abc")), 1);
    assert_int_equal(view_search(v, none), 0);
    assert_int_equal(view_search(v, VIEW("abcd")), 3);
    assert_int_equal(view_search(none, v), 0);
    assert_true(view_equal(view_trim(VIEW(" \t a b\t ")), VIEW("a b")));
    assert_int_equal(view_trim(VIEW(" \t ")).n, 0);
    assert_true(view_equal(view_trim(VIEW("\n a")), VIEW("\n a"))); /* not OWS */
}

/* memcpy and printf must not see a NULL, not even for no bytes (C17 7.1.4): the sanitizers look here. */
static void views_of_nothing_are_copied_and_printed_as_nothing(void **state) {
    uint8_t out[] = {1, 2, 3};
    char text[8];
    struct buf b;
    (void)state;
    view_copy(none, out);
    assert_int_equal(out[0], 1);
    view_copy(VIEW("ab"), out);
    assert_memory_equal(out, "ab\3", 3);
    assert_int_equal(snprintf(text, sizeof text, "%.*s", VIEW_ARG(none)), 0);
    assert_int_equal(view_cstr(none, text, sizeof text), 0);
    assert_null(view_skip(none, 5).p);
    buf_init(&b, 8);
    buf_put(&b, none);
    assert_true(buf_ok(&b) && buf_len(&b) == 0);
    buf_free(&b);
}

static void cuts_give_before_and_leave_behind(void **state) {
    struct view v = VIEW("a=b=c");
    (void)state;
    assert_true(view_equal(view_cut(&v, '='), VIEW("a")));
    assert_true(view_equal(v, VIEW("b=c")));
    assert_true(view_equal(view_cut(&v, '!'), VIEW("b=c")));
    assert_true(view_is_empty(v));
    v = VIEW("=");
    assert_true(view_is_empty(view_cut(&v, '=')));
    assert_true(view_is_empty(v));
}

static void numbers_are_digits_within_a_limit(void **state) {
    static const struct {
        struct view text;
        uint64_t max;
        int result;
        uint64_t value;
    } cases[] = {
        {VIEW("0"), 0, 0, 0},
        {VIEW("007"), 7, 0, 7},
        {VIEW("18446744073709551615"), UINT64_MAX, 0, UINT64_MAX},
        {VIEW("18446744073709551616"), UINT64_MAX, ERR_LIMIT, 0},
        {VIEW("99999999999999999999999"), UINT64_MAX, ERR_LIMIT, 0},
        {VIEW("8"), 7, ERR_LIMIT, 0},
        {VIEW(""), 7, ERR_BAD, 0},
        {VIEW("+1"), 7, ERR_BAD, 0},
        {VIEW("-1"), 7, ERR_BAD, 0},
        {VIEW(" 1"), 7, ERR_BAD, 0},
        {VIEW("1 "), 7, ERR_BAD, 0},
        {VIEW("1\0"), 7, ERR_BAD, 0},
        {VIEW("0x1"), 7, ERR_BAD, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t x = 1234;
        int result = view_number(cases[i].text, cases[i].max, &x);
        if (result != cases[i].result || x != (result ? 1234 : cases[i].value))
            fail_msg("case %zu", i);
    }
}

static void c_strings_hold_no_nul_and_fit(void **state) {
    char out[4];
    (void)state;
    assert_int_equal(view_cstr(VIEW("abc"), out, sizeof out), 0);
    assert_string_equal(out, "abc");
    assert_int_equal(view_cstr(VIEW("abcd"), out, sizeof out), ERR_LIMIT);
    assert_int_equal(view_cstr(VIEW("a\0b"), out, sizeof out), ERR_BAD);
    assert_int_equal(view_cstr(none, out, 1), 0);
    assert_int_equal(view_cstr(none, out, 0), ERR_LIMIT);
}

/* ---- buffers ---- */

static void a_buffer_grows_to_its_maximum_and_no_further(void **state) {
    struct buf b;
    (void)state;
    buf_init(&b, 1000);
    for (int i = 0; i < 1000; i++)
        buf_put_u8(&b, (uint8_t)i);
    assert_true(buf_ok(&b));
    assert_int_equal(buf_len(&b), 1000);
    assert_int_equal(buf_room(&b), 0);
    buf_put_u8(&b, 1);
    assert_false(buf_ok(&b));
    assert_int_equal(buf_len(&b), 1000);
    /* Sticky, also for what would fit. */
    buf_consume(&b, 1000);
    buf_put_u8(&b, 1);
    assert_int_equal(buf_len(&b), 0);
    assert_null(buf_reserve(&b, 1));
    buf_reset(&b);
    buf_put_u8(&b, 1);
    assert_true(buf_ok(&b));
    assert_null(buf_reserve(&b, SIZE_MAX));
    buf_free(&b);
    assert_true(buf_ok(&b));
}

static void what_is_cut_from_the_end_makes_room(void **state) {
    struct buf b;
    (void)state;
    buf_init(&b, 8);
    buf_put_str(&b, "abcdefgh");
    buf_consume(&b, 2);
    buf_truncate(&b, 3);
    assert_true(view_equal(buf_view(&b), VIEW("cde")));
    buf_truncate(&b, 3);
    buf_put_str(&b, "XYZVW");
    assert_true(view_equal(buf_view(&b), VIEW("cdeXYZVW")));
    buf_truncate(&b, 0);
    assert_int_equal(buf_len(&b), 0);
    buf_free(&b);
}

static void room_is_counted_by_unread_bytes(void **state) {
    struct buf b;
    (void)state;
    buf_init(&b, 600);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 50; i++)
            buf_put_u64(&b, (uint64_t)(round * 50 + i));
        struct reader r = reader_of(buf_view(&b));
        for (int i = 0; i < 50; i++)
            assert_int_equal(read_u64(&r), round * 50 + i);
        assert_true(read_done(&r));
        buf_consume(&b, 392);
        buf_consume(&b, 8);
    }
    assert_true(buf_ok(&b));
    buf_free(&b);
}

static void what_puts_write_reads_read(void **state) {
    struct buf b;
    (void)state;
    buf_init(&b, 1000);
    buf_put_u8(&b, 0xab);
    buf_put_u16(&b, 0x1234);
    buf_put_u32(&b, 0xdeadbeef);
    buf_put_u64(&b, 0x0123456789abcdef);
    buf_put_block(&b, VIEW("block"));
    buf_put_block(&b, none);
    buf_printf(&b, "%s %d", "text", 42);
    assert_memory_equal(buf_view(&b).p, "\xab\x12\x34\xde\xad\xbe\xef", 7);
    struct reader r = reader_of(buf_view(&b));
    assert_int_equal(read_u8(&r), 0xab);
    assert_int_equal(read_u16(&r), 0x1234);
    assert_int_equal(read_u32(&r), 0xdeadbeef);
    assert_true(read_u64(&r) == 0x0123456789abcdef);
    assert_true(view_equal(read_block(&r, 5), VIEW("block")));
    assert_true(view_is_empty(read_block(&r, 0)));
    assert_true(view_equal(read_bytes(&r, 7), VIEW("text 42")));
    assert_true(read_done(&r));
    buf_patch_u32(&b, 3, 7);
    assert_memory_equal(buf_view(&b).p + 3, "\0\0\0\7", 4);
    buf_free(&b);
}

static void a_reader_that_ran_out_gives_nothing_more(void **state) {
    struct reader r = reader_of(VIEW("\0\0\0\5abc"));
    (void)state;
    assert_true(view_is_empty(read_block(&r, 100)));
    assert_true(r.bad);
    assert_int_equal(read_u8(&r), 0);
    assert_true(view_is_empty(read_bytes(&r, 0)));
    assert_false(read_done(&r));
    r = reader_of(VIEW("\0\0\0\3abc"));
    assert_true(view_is_empty(read_block(&r, 2)));
    assert_true(r.bad);
    r = reader_of(VIEW("\xff\xff\xff\xff"));
    assert_true(view_is_empty(read_block(&r, SIZE_MAX)));
    assert_true(r.bad);
    r = reader_of(none);
    assert_true(read_done(&r));
    assert_int_equal(read_u16(&r), 0);
    assert_true(r.bad);
}

static void a_block_fits_whole_or_not_at_all(void **state) {
    struct buf b;
    (void)state;
    buf_init(&b, 8);
    buf_put_block(&b, VIEW("abcde"));
    assert_false(buf_ok(&b));
    assert_int_equal(buf_len(&b), 0);
    buf_reset(&b);
    buf_put_block(&b, VIEW("abcd"));
    assert_true(buf_ok(&b));
    buf_free(&b);
}

static void a_buffer_that_is_given_back_may_be_used_again(void **state) {
    struct buf b;
    (void)state;
    buf_init(&b, 2);
    for (int had_memory = 0; had_memory < 2; had_memory++) {
        if (had_memory)
            buf_put_u8(&b, 'a');
        buf_put(&b, VIEW("abc"));
        assert_false(buf_ok(&b));
        buf_free(&b);
        assert_true(buf_ok(&b));
        assert_int_equal(buf_room(&b), 2);
    }
    buf_put(&b, VIEW("ab"));
    assert_true(view_equal(buf_view(&b), VIEW("ab")));
    buf_free(&b);
}

static void a_cleared_buffer_leaves_nothing_behind(void **state) {
    struct buf b;
    (void)state;
    buf_init_cleared(&b, 64);
    buf_put(&b, VIEW("0123456789"));
    uint8_t *p = b.p;
    buf_consume(&b, 4);
    assert_memory_equal(p, "\0\0\0\000456789", 10);
    assert_non_null(buf_reserve(&b, 58)); /* moves */
    p = b.p;
    assert_memory_equal(p, "456789\0\0\0\0", 10);
    buf_consume(&b, 6);
    assert_memory_equal(p, "\0\0\0\0\0\0\0\0\0\0", 10);
    buf_put(&b, VIEW("0123"));
    buf_reset(&b);
    assert_memory_equal(b.p, "\0\0\0\0", 4);
    buf_free(&b);
}

static void a_secret_buffer_leaves_nothing_behind(void **state) {
    struct buf b;
    (void)state;
    if (secret_arena_open(1 << 16) != 0)
        skip();
    buf_init_secret(&b, 4096);
    for (int i = 0; i < 100; i++)
        buf_put(&b, VIEW("a secret of some length "));
    assert_true(secret_owns(b.p));
    uint8_t *p = b.p;
    buf_consume(&b, 240);
    for (size_t i = 0; i < 240; i++)
        assert_int_equal(p[i], 0);
    assert_non_null(buf_reserve(&b, b.cap - buf_len(&b))); /* moves the rest to the front */
    for (size_t i = buf_len(&b); i < b.cap; i++)
        assert_int_equal(b.p[i], 0);
    buf_reset(&b);
    for (size_t i = 0; i < b.cap; i++)
        assert_int_equal(b.p[i], 0);
    buf_free(&b);
    assert_int_equal(secret_in_use(), 0);
}

/* ---- characters ---- */

static void decimal_digits_are_those_of_the_number(void **state) {
    static const struct {
        uint64_t number;
        const char *text;
    } numbers[] = {{0, "0"}, {9, "9"}, {10, "10"}, {UINT64_MAX, "18446744073709551615"}};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct buf b;
        buf_init(&b, 20);
        buf_put_decimal(&b, numbers[i].number);
        assert_true(view_equal(buf_view(&b), view_str(numbers[i].text)));
        buf_free(&b);
    }
}

static void classes_of_characters(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        bool digit = c >= '0' && c <= '9';
        bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool other = c != 0 && strchr("!#$%&'*+-.^_`|~", c);
        assert_int_equal(is_digit((uint8_t)c), digit);
        assert_int_equal(is_alpha((uint8_t)c), alpha);
        assert_int_equal(is_alnum((uint8_t)c), digit || alpha);
        assert_int_equal(is_tchar((uint8_t)c), digit || alpha || other);
        assert_int_equal(to_lower((uint8_t)c), c >= 'A' && c <= 'Z' ? c + 32 : c);
        assert_int_equal(hex_value((uint8_t)c) >= 0,
                         digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
    }
}

static void hexadecimal_goes_both_ways_and_nothing_else_is_read(void **state) {
    uint8_t bytes[2];
    char text[5];
    (void)state;
    hex_encode(VIEW("\x0f\xa0"), text);
    assert_string_equal(text, "0fa0");
    for (size_t n = 0; n <= 9; n++)
        for (unsigned c = 0; c < 256; c++) {
            uint8_t many[9];
            char got[19], expected[19] = "";
            for (size_t i = 0; i < n; i++) {
                many[i] = (uint8_t)(c + 37 * i);
                snprintf(expected + 2 * i, 3, "%02x", many[i]);
            }
            hex_encode(view_of(many, n), got);
            assert_string_equal(got, expected);
        }
    assert_int_equal(hex_decode(VIEW("0FA0"), bytes, 2), 0);
    assert_memory_equal(bytes, "\x0f\xa0", 2);
    assert_int_equal(hex_decode(VIEW("0fa"), bytes, 2), ERR_BAD);
    assert_int_equal(hex_decode(VIEW("0fa00"), bytes, 2), ERR_BAD);
    assert_int_equal(hex_decode(VIEW("0fag"), bytes, 2), ERR_BAD);
    assert_int_equal(hex_decode(VIEW("0x0f"), bytes, 2), ERR_BAD);
    assert_int_equal(hex_decode(none, bytes, 0), 0);
    uint32_t number;
    assert_int_equal(hex_number(VIEW("0100007F"), &number), 0);
    assert_int_equal(number, 0x0100007f);
    assert_int_equal(hex_number(VIEW("fffffFFF"), &number), 0);
    assert_int_equal(number, UINT32_MAX);
    assert_int_equal(hex_number(VIEW("a"), &number), 0);
    assert_int_equal(number, 10);
    assert_int_equal(hex_number(VIEW("100000000"), &number), ERR_BAD);
    assert_int_equal(hex_number(VIEW("0x1"), &number), ERR_BAD);
    assert_int_equal(hex_number(none, &number), ERR_BAD);
}

static void bytes_inside_of_a_buffer_are_replaced(void **state) {
    struct buf b;
    (void)state;
    buf_init(&b, 8);
    buf_put(&b, VIEW("xabcdef"));
    buf_consume(&b, 1);
    buf_replace(&b, 2, 2, VIEW(""));
    assert_true(view_equal(buf_view(&b), VIEW("abef")));
    buf_replace(&b, 2, 0, VIEW("1234"));
    assert_true(view_equal(buf_view(&b), VIEW("ab1234ef")));
    buf_replace(&b, 0, 8, VIEW("z"));
    assert_true(view_equal(buf_view(&b), VIEW("z")));
    buf_replace(&b, 1, 0, VIEW("12345678"));
    assert_false(buf_ok(&b));
    assert_true(view_equal(buf_view(&b), VIEW("z")));
    buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_compare_like_bytes),
        cmocka_unit_test(parts_of_views_stay_inside),
        cmocka_unit_test(views_of_nothing_are_copied_and_printed_as_nothing),
        cmocka_unit_test(cuts_give_before_and_leave_behind),
        cmocka_unit_test(numbers_are_digits_within_a_limit),
        cmocka_unit_test(c_strings_hold_no_nul_and_fit),
        cmocka_unit_test(a_buffer_grows_to_its_maximum_and_no_further),
        cmocka_unit_test(what_is_cut_from_the_end_makes_room),
        cmocka_unit_test(room_is_counted_by_unread_bytes),
        cmocka_unit_test(what_puts_write_reads_read),
        cmocka_unit_test(a_reader_that_ran_out_gives_nothing_more),
        cmocka_unit_test(a_block_fits_whole_or_not_at_all),
        cmocka_unit_test(a_buffer_that_is_given_back_may_be_used_again),
        cmocka_unit_test(a_cleared_buffer_leaves_nothing_behind),
        cmocka_unit_test(a_secret_buffer_leaves_nothing_behind),
        cmocka_unit_test(decimal_digits_are_those_of_the_number),
        cmocka_unit_test(classes_of_characters),
        cmocka_unit_test(bytes_inside_of_a_buffer_are_replaced),
        cmocka_unit_test(hexadecimal_goes_both_ways_and_nothing_else_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

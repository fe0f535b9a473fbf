#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"

/* What is put is text; what lies between and beyond is none. */
static void every_code_point_is_written_and_read(void **state) {
    (void)state;
    for (uint32_t point = 0; point <= 0x10ffff; point += point < 0x3000 ? 1 : 61) {
        struct buf b;
        if (point >= 0xd800 && point <= 0xdfff)
            continue;
        buf_init(&b, 4);
        utf8_put(&b, point);
        assert_true(buf_ok(&b));
        assert_int_equal(buf_len(&b), point < 0x80      ? 1
                                      : point < 0x800   ? 2
                                      : point < 0x10000 ? 3
                                                        : 4);
        assert_true(utf8_is_text(buf_view(&b)));
        assert_int_equal(utf8_is_text(view_head(buf_view(&b), buf_len(&b) - 1)), buf_len(&b) == 1);
        buf_free(&b);
    }
}

static void what_is_no_utf_8_is_found(void **state) {
    static const char *const bad[] = {
        "\x80",         "\xc0\xaf",     "\xc1\xbf",         "\xe0\x80\xaf",     "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff",         "\xc3(",        "a\xe2\x82",        "\xc3\xa9\x80",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(utf8_is_text(view_str(bad[i])));
    assert_true(utf8_is_text(VIEW("a\xc3\xa9\0\xf4\x8f\xbf\xbf")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_is_written_and_read),
        cmocka_unit_test(what_is_no_utf_8_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

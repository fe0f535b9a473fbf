#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/eight.h"

/* Each byte at each place, among others that are next to what is asked for. */
static void each_byte_is_told_at_each_place(void **state) {
    static const uint8_t others[] = {0x20, 0x21, '#', '[', ']', '~', 0x81, 0xfe};
    (void)state;
    for (size_t k = 0; k < sizeof others; k++)
        for (size_t place = 0; place < 8; place++)
            for (unsigned c = 0; c < 256; c++) {
                uint8_t p[8];
                memset(p, others[k], sizeof p);
                p[place] = (uint8_t)c;
                uint64_t x = eight_at(p);
                assert_int_equal(eight_below(x, 0x20) != 0, c < 0x20);
                assert_int_equal(eight_below(x, 0x21) != 0, c < 0x21 || others[k] < 0x21);
                assert_int_equal(eight_below(x, 0x80) != 0, c < 0x80 || others[k] < 0x80);
                assert_int_equal(eight_control(x) != 0, c < 0x20 || c == 0x7f);
                assert_int_equal(eight_is(x, '"') != 0, c == '"');
                assert_int_equal(eight_is(x, 0xff) != 0, c == 0xff);
                assert_int_equal(eight_beyond_ascii(x) != 0, c >= 0x80 || others[k] >= 0x80);
            }
}

static void letters_and_nothing_else_become_lower_case(void **state) {
    (void)state;
    for (unsigned c = 0; c < 256; c++)
        for (unsigned other = 0; other < 256; other++) {
            uint8_t p[8];
            for (size_t i = 0; i < sizeof p; i++)
                p[i] = (uint8_t)(i % 3 ? other : c);
            uint64_t lower = eight_lower(eight_at(p));
            for (size_t i = 0; i < sizeof p; i++)
                assert_int_equal(((uint8_t *)&lower)[i], to_lower(p[i]));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_is_told_at_each_place),
        cmocka_unit_test(letters_and_nothing_else_become_lower_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

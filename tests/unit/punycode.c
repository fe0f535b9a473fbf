#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/punycode.h"

static void check(const char *name, const char *shown) {
    struct buf out;
    buf_init(&out, 1024);
    bool differs = punycode_show(view_str(name), &out);
    assert_true(buf_ok(&out));
    if (!view_equal(buf_view(&out), view_str(shown)) || differs != (strcmp(name, shown) != 0))
        fail_msg("%s: %.*s", name, VIEW_ARG(buf_view(&out)));
    buf_free(&out);
}

static void hc_09_an_a_label_is_shown_with_its_letters(void **state) {
    (void)state;
    check("xn--bcher-kva.allowed.test", "b\xc3\xbc"
                                        "cher.allowed.test");
    check("xn--80ak6aa92e.test", "\xd0\xb0\xd1\x80\xd1\x80\xd3\x8f\xd0\xb5.test");
    check("a.xn--n8jub8754b", "a.\xe7\xbe\x8e\xe3\x81\x97\xe3\x81\x84");
    check("xn--a.test", "\xc2\x80.test");
    check("xn--ls8h.test", "\xf0\x9f\x92\xa9.test");
    check("xn--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-544655a.test",
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xf3\xa0\x81\x81.test");
    check("api.allowed.test", "api.allowed.test");
    check("", "");
    check(".", ".");
}

static void hc_08_what_is_no_punycode_stays(void **state) {
    (void)state;
    static const char *const names[] = {
        "xn--",
        "xn--abc-.test",

        "xn--99999999999999999999.test",
        "xn--\x80",
        "xn--9999999.x.test",
        "axn--bcher-kva",
        "xn--a_b.test",
        "xn--zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz.test",
        "xn--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check(names[i], names[i]);
}

/* Whatever the bytes, nothing is written beyond the label, and what is shown is text. */
static void hc_08_any_label_is_decoded_within_its_bounds(void **state) {
    (void)state;
    static const char digits[] = "abyz019-";
    uint32_t seed = 20261130;
    for (int turn = 0; turn < 20000; turn++) {
        char name[64] = "xn--";
        size_t n = 4 + (seed >> 8) % 59;
        for (size_t i = 4; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            name[i] = digits[(seed >> 16) % (sizeof digits - 1)];
        }
        struct buf out;
        buf_init(&out, 1024);
        (void)punycode_show(view_of(name, n), &out);
        assert_true(buf_ok(&out) && buf_len(&out) <= 4 * n);
        buf_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hc_09_an_a_label_is_shown_with_its_letters),
        cmocka_unit_test(hc_08_what_is_no_punycode_stays),
        cmocka_unit_test(hc_08_any_label_is_decoded_within_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

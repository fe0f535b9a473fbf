/* Methods, and names under which servers take another one (PN-09). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/method.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void pn_09_override_names_in_any_spelling(void **state) {
    static const char *const names[] = {
        "_method",
        "_Method",
        "__method",
        ".method",
        "[method",
        " _method",
        " method",
        "_method[]",
        "_method[0]",
        "_method[x",
        "_method.",
        "$httpMethod",
        "_http_method",
        "x-http-method",
        "x-http-method-override",
        "X_HTTP_Method_Override",
        "XHttpMethodOverride",
        "x-method-override",
        "method_override",
        "_methodOverride",
        "http-method-override",
        "x-http-method-override[x]",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        if (!method_is_override_name(view_str(names[i])))
            fail_msg("'%s' is none", names[i]);
    assert_true(method_is_override_name(VIEW("_method\0x")));
}

static void ordinary_names_are_none(void **state) {
    static const char *const names[] = {
        "",
        "method",
        "Method",
        "httpMethod",
        "http_method",
        "method[]",
        "methods",
        "_methods",
        "a_method",
        "_method1",
        "x[_method]",
        "payment_method",
        "[",
        "[]",
        "_",
        "x-method",
        "override",
        "x-http-methods",
        "-",
        "shipping.method",
        "x-http-method-override-of-something-else",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        if (method_is_override_name(view_str(names[i])))
            fail_msg("'%s' is one", names[i]);
}

static void wc_09_each_method_is_one_bit_and_compares_with_case(void **state) {
    uint64_t all = 0;
    (void)state;
    for (size_t i = 0; method_at(i).n > 0; i++) {
        uint64_t bit = method_bit(method_at(i));
        assert_true(bit != 0 && (bit & (bit - 1)) == 0 && (all & bit) == 0);
        all |= bit;
    }
    assert_true(method_bit(VIEW("GET")) & methods_grantable());
    assert_false(method_bit(VIEW("TRACE")) & methods_grantable());
    assert_int_equal(method_bit(VIEW("get")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pn_09_override_names_in_any_spelling),
        cmocka_unit_test(ordinary_names_are_none),
        cmocka_unit_test(wc_09_each_method_is_one_bit_and_compares_with_case),
    };
    return cmocka_run_group_tests_name("method", tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/idna.h"
#include "policy/layout.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static int convert(const char *name, char *out, size_t size, const char **why) {
    struct buf b;
    buf_init(&b, 256);
    *why = NULL;
    int err = idna_to_ascii(view_str(name), &b, why);
    if (err == 0)
        assert_int_equal(view_cstr(buf_view(&b), out, size), 0);
    buf_free(&b);
    return err;
}

static void hc_names_outside_ascii_become_a_labels(void **state) {
    static const char *const cases[][2] = {
        {"a.test", "a.test"},
        {"*.A.test.", "*.A.test."},
        {"192.0.2.1", "192.0.2.1"},
        {"[2001:db8::1]", "[2001:db8::1]"},
        {"bücher.test", "xn--bcher-kva.test"},
        {"**.bücher.test", "**.xn--bcher-kva.test"},
        {"straße.test", "xn--strae-oqa.test"},
        {"api.日本語ひらがな.test", "api.xn--v8j0cwa6g1563acvb2w6i.test"},
        {"пример.test", "xn--e1afmkfd.test"},
        {"XN--Bcher-KVA.test", "xn--bcher-kva.test"},
    };
    char out[256];
    const char *why;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(convert(cases[i][0], out, sizeof out, &why), 0);
        assert_string_equal(out, cases[i][1]);
    }
}

static void hc_labels_that_mislead_or_are_invalid_are_refused(void **state) {
    static const char *const cases[][2] = {
        {"раypal.test", "mixes scripts"},   /* Cyrillic er and a */
        {"exаmple1.test", "mixes scripts"}, /* Cyrillic a */
        {"αbc.test", "mixes scripts"},      /* Greek and Latin */
        {"日本a.test", "mixes scripts"},
        {"ひ한.test", "mixes scripts"},
        {"Bücher.test", "upper-case"},
        {"☃.test", "script"},
        {"a_ü.test", "script"},
        {"xn--a.test", "disallowed"},
        {"xn--abc-.test", "punycode"},
        {"bu\xcc\x88"
         "cher.test",
         "NFC"},
        {"b\xffx.test", "not UTF-8"},
        {"b\xc3.test", "not UTF-8"},
        {"。test", "script"},
    };
    char out[256];
    const char *why;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(convert(cases[i][0], out, sizeof out, &why), ERR_BAD);
        assert_non_null(why);
        if (!strstr(why, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], why);
    }
    char longest[300];
    memset(longest, 'a', sizeof longest);
    memcpy(longest, "\xc3\xbc", 2);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(convert(longest, out, sizeof out, &why), ERR_BAD);
}

/* ---- in a policy ---- */

static int load(const char *text, char *error, size_t size) {
    static struct policy_errors errors;
    struct policy *p = NULL;
    int err = policy_load(view_str(text), "policy", &p, &errors);
    if (err == ERR_BAD)
        assert_int_equal(view_cstr(view_str(errors.at[0].text), error, size), 0);
    policy_free(p);
    return err;
}

static void hosts_may_be_written_as_they_read(void **state) {
    char error[256] = "";
    (void)state;
    assert_int_equal(load("service a { host \"bücher.test\" *.bücher.test wide # ü\n"
                          "operation r { GET / }\n"
                          "expect allow GET https://xn--bcher-kva.test/\n"
                          "expect allow GET https://a.xn--bcher-kva.test/ }",
                          error, sizeof error),
                     0);
}

static void the_layout_keeps_names_as_they_are_written(void **state) {
    static struct policy_errors errors;
    struct view text = VIEW("service a {\n    host bücher.test *.пример.test wide # ü\n"
                            "    operation r { GET / }\n}\n");
    struct buf out;
    (void)state;
    buf_init(&out, 1000);
    assert_int_equal(policy_format(text, "policy", &out, &errors), 0);
    assert_true(view_equal(buf_view(&out), text));
    buf_free(&out);
}

static void other_words_are_ascii_and_hosts_do_not_deceive(void **state) {
    static const char *const cases[][2] = {
        {"service a { host a.test; operation ü { GET / } }", "expected ASCII"},
        {"service a { host a.test; operation r { GET /ü } }", "expected ASCII"},
        {"service a { host a.test\nport ü", "expected ASCII"},
        {"service a { host a.test; operation r { GET \"/ü\" } }", "expected ASCII"},
        {"service a { host a\xe2\x80\x8b.test; operation r { GET / } }", "read differently"},
        {"service a { host \"a\xe2\x80\x8b.test\"; operation r { GET / } }", "read differently"},
        {"service a { host \"exаmple.test\"; operation r { GET / } }", "mixes scripts"},
        {"service a { host exаmple.test; operation r { GET / } }", "mixes scripts"},
        {"service a { host *.рф; operation r { GET / } }", "wide"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char error[256] = "";
        assert_int_equal(load(cases[i][0], error, sizeof error), ERR_BAD);
        if (!strstr(error, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], error);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hc_names_outside_ascii_become_a_labels),
        cmocka_unit_test(hc_labels_that_mislead_or_are_invalid_are_refused),
        cmocka_unit_test(hosts_may_be_written_as_they_read),
        cmocka_unit_test(the_layout_keeps_names_as_they_are_written),
        cmocka_unit_test(other_words_are_ascii_and_hosts_do_not_deceive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/escape.h"

#include <string.h>

enum { TEXT_MAX = 256 };

/* What is left of the text, and as many bytes as are not gone. */
static void check(const char *text, const char *expected) {
    uint8_t out[TEXT_MAX];
    bool gone[TEXT_MAX];
    struct view v = view_str(text), wanted = view_str(expected);
    size_t n = escape_undo(v, out, gone), kept = 0;
    if (n == v.n) {
        assert_string_equal(text, expected);
        return;
    }
    if (!view_equal(view_of(out, n), wanted))
        fail_msg("%s: got %.*s", text, VIEW_ARG(view_of(out, n)));
    assert_false(gone[0]);
    for (size_t i = 0; i < v.n; i++)
        kept += !gone[i];
    assert_int_equal(kept, n);
}

static void escapes_are_undone_once(void **state) {
    static const char *const cases[][2] = {
        {"a%2Fb%2fc%25%32%35", "a/b/c%25"},
        {"\\x2f\\x2F\\u002f\\u002F", "////"},
        {"\\057\\u{2f}\\u{00002F}\\U0000002f%u002F", "/////"},
        {"\\0577\\377\\u{e9}", "/7\xff\xc3\xa9"},
        {"\\\"\\'\\/\\\\\\-\\_\\.", "\"'/\\-_."},
        {"&amp;&lt;&gt;&quot;&apos;", "&<>\"'"},
        {"&AMP;&excl;&num;&dollar;&percnt;&lpar;&rpar;&ast;&plus;&comma;&period;&sol;",
         "&!#$%()*+,./"},
        {"&colon;&semi;&equals;&quest;&commat;&lsqb;&bsol;&rsqb;&Hat;&lowbar;&UnderBar;&grave;",
         ":;=?@[\\]^__`"},
        {"&lcub;&vert;&verbar;&rcub;&lbrack;&rbrack;&lbrace;&rbrace;&midast;", "{||}[]{}*"},
        {"&#39;&#039;&#0000039;&#x27;&#X027;", "'''''"},
        {"it''s \"\"x\"\"", "it's \"x\""},
        {"it'\\''s", "it's"},
        {"it'\"'\"'s", "it's"},
        {"\\u00e9%C3%A9&#233;\\xe9", "\xc3\xa9\xc3\xa9\xc3\xa9\xe9"},
        {"\\u20AC&#8364;&#x20ac;", "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"},
        {"&amp;#39;", "&#39;"},
        {"x%41", "xA"},
        {"\\'", "'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i][0], cases[i][1]);
}

static void what_is_no_escape_stays(void **state) {
    static const char *const cases[] = {
        "",           "%",           "%4",     "100%",        "%zz",       "%00",
        "\\",         "\\n",         "\\u0",   "\\ud83d",     "\\udc00",   "\\x0",
        "\\x00",      "\\ ",         "&",      "&amp",        "&#39",      "&#;",
        "&#x;",       "&#65536;",    "&#0;",   "&lt",         "&unknown;", "'a'",
        "\"a\" 'b'",  "plain",       "\\u{27", "&#00000039;", "\\u{}",     "\\u{0000027}",
        "\\U0000002", "\\U0001f600", "\\05",   "\\400",       "\\000",     "\\089",
        "%u002",      "%u0000",      "&sol",   "&Sol;",       "&solar;",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i], cases[i]);
}

/* Whether many bytes are looked at together or not must not matter. */
static void escapes_are_found_wherever_they_stand(void **state) {
    static const char *const escapes[] = {"%2F", "\\x2f", "\\/", "&#47;", "\\u002F"};
    (void)state;
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
        for (size_t before = 0; before < 80; before++)
            for (size_t after = 0; after < 40; after += 13) {
                char text[TEXT_MAX] = "", expected[TEXT_MAX] = "";
                memset(text, 'a', before);
                strcat(text, escapes[i]);
                memset(text + strlen(text), 'b', after);
                memset(expected, 'a', before);
                strcat(expected, "/");
                memset(expected + before + 1, 'b', after);
                check(text, expected);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_undone_once),
        cmocka_unit_test(what_is_no_escape_stays),
        cmocka_unit_test(escapes_are_found_wherever_they_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

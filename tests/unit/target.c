/* Targets: one canonical form or a refusal (theme PN). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "policy/target.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct buf out;

static int parse(struct view raw, struct target *t, const char **why) {
    buf_free(&out);
    buf_init(&out, 64 * 1024);
    return target_parse(raw, 64, &out, t, why);
}

static void check_refused(struct view raw) {
    struct target t;
    const char *why = NULL;
    if (parse(raw, &t, &why) != ERR_BAD)
        fail_msg("'%.*s' was taken", VIEW_ARG(raw));
    assert_non_null(why);
    assert_int_equal(buf_len(&out), 0);
}

static void check_all_refused(const char *const *cases, size_t n) {
    for (size_t i = 0; i < n; i++)
        check_refused(view_str(cases[i]));
}

static void check_canonical(const char *raw, const char *canonical) {
    struct target t;
    const char *why = "";
    if (parse(view_str(raw), &t, &why) != 0)
        fail_msg("'%s' was refused: %s", raw, why);
    struct view got = buf_view(&out);
    if (!view_equal(got, view_str(canonical)))
        fail_msg("'%s' became '%.*s', not '%s'", raw, VIEW_ARG(got), canonical);
    struct view path = got, query;
    query = got;
    path = view_cut(&query, '?');
    assert_true(view_equal(t.path, path));
    assert_int_equal(t.has_query, path.n < got.n);
    assert_true(view_equal(t.query, query));
}

static void pn_01_dot_segments_are_refused(void **state) {
    static const char *const cases[] = {
        "/public/../secret",
        "/public/./../secret",
        "/public/..",
        "/../x",
        "/..",
        "/../",
        "/a/../",
        "/..?x",
        "/./..",
        "/.././",
        "/./.%2e",
        "/..;/./",
    };
    (void)state;
    check_all_refused(cases, COUNT(cases));
    check_canonical("/.well-known/x", "/.well-known/x");
    check_canonical("/a..b/..c/d..", "/a..b/..c/d..");
}

static void pn_02_what_becomes_dots_is_refused(void **state) {
    static const char *const cases[] = {
        "/...",
        "/a/.../b",
        "/a/..././b",
        "/a/..%20/b",
        "/a/%20../b",
        "/a/.%20.",
        "/a/..+/b",
        "/a/..%C2%A0/b",
        "/a/..%E2%80%83/b",
        "/a/%E2%80%AF../b",
        "/a/.%C2%85./b",
        "/a/..%20%EF%BB%BF/b",
        "/a/%E2%81%9F%EF%BC%8E%EF%BC%8E/b",
        "/a/..%3f/b",
        "/a/..%3Fx=/b",
        "/a/..%23/b",
        "/a/..%20;x/b",
        "/a/%ef%bc%8e%ef%bc%8e/b",
        "/a/%E2%80%A5/b",
        "/a/%E2%80%A6/b",
        "/a/%EF%B9%92%EF%B9%92/b",
        "/a/x%E2%81%84..",
        "/a/.%E2%80%A4/b",
        "/a/x%EF%BC%8F..%EF%BC%8Fb",
        "/a/..%EF%BC%BCb",
        "/a/x%E2%88%95..",
    };
    (void)state;
    check_all_refused(cases, COUNT(cases));
    check_canonical("/a/%20", "/a/%20");
    check_canonical("/a/%E2%80%83", "/a/%E2%80%83");
    check_canonical("/a/x%E2%80%83..", "/a/x%E2%80%83..");
    check_canonical("/a/+", "/a/+");
    check_canonical("/a/%3Fx", "/a/%3Fx");
    check_canonical("/a/x..%20", "/a/x..%20");
    check_canonical("/a/..x%3f", "/a/..x%3F");
    check_canonical("/a/b%ef%bc%8fc.", "/a/b%EF%BC%8Fc.");
    check_canonical("/a/main...dev", "/a/main...dev");
    check_canonical("/a/%E3%80%82", "/a/%E3%80%82");
}

static void pn_01_single_dot_segments_are_taken_out(void **state) {
    static const char *const cases[][2] = {
        {"/./Packages", "/Packages"},
        {"/.", "/"},
        {"/./", "/"},
        {"/./.", "/"},
        {"/./././", "/"},
        {"/.?x", "/?x"},
        {"/./?x=/./", "/?x=/./"},
        {"/a/.", "/a/"},
        {"/a/./", "/a/"},
        {"/a/./.", "/a/"},
        {"/a/./b", "/a/b"},
        {"/a/././b/.", "/a/b/"},
        {"/a./.b/./c", "/a./.b/c"},
    };
    struct target t;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_canonical(cases[i][0], cases[i][1]);
        check_canonical(cases[i][1], cases[i][1]);
    }
    assert_int_equal(parse(VIEW("/./a/./"), &t, NULL), 0);
    assert_int_equal(t.n_segments, 1);
    assert_true(t.trailing_slash);
    assert_int_equal(parse(VIEW("/a/./.."), &t, NULL), ERR_BAD);
    assert_int_equal(parse(VIEW("/.//x"), &t, NULL), ERR_BAD);
    assert_int_equal(parse(VIEW("/a/.//"), &t, NULL), ERR_BAD);
    assert_int_equal(parse(VIEW("/.;x"), &t, NULL), ERR_BAD);
    assert_int_equal(parse(VIEW("."), &t, NULL), ERR_BAD);
    assert_int_equal(parse(VIEW("./a"), &t, NULL), ERR_BAD);
}

static void pn_02_encoded_dot_segments_are_refused(void **state) {
    static const char *const cases[] = {
        "/public/%2e%2e/secret", "/.%2e/",   "/%2E./",   "/%2e",    "/%2e/", "/a/%2e%2E",
        "/%2e%2e%3bx/y",         "/./%2e/x", "/%2e/./x", "/a/%2e/b"};
    (void)state;
    check_all_refused(cases, COUNT(cases));
    check_canonical("/a%2eb", "/a.b");
}

static void pn_03_encoded_slashes_are_refused_in_the_path_only(void **state) {
    static const char *const cases[] = {
        "/repos/me%2f..%2fother", "/a%2Fb", "/%2f", "/a%5cb", "/a%5C..%5Cb", "/a\\b", "/x?a\\b"};
    (void)state;
    check_all_refused(cases, COUNT(cases));
    check_canonical("/x?path=a%2fb%5cc", "/x?path=a%2Fb%5Cc");
    check_canonical("/x?path=a/../b//c", "/x?path=a/../b//c");
}

static void pn_04_empty_segments_are_refused(void **state) {
    static const char *const cases[] = {"//evil.test/x", "/a//b", "//", "/a//", "///", "/a//?x"};
    (void)state;
    check_all_refused(cases, COUNT(cases));
}

static void pn_05_parameters_are_part_of_their_segment(void **state) {
    static const char *const cases[] = {"/admin;x=/../public",
                                        "/public/..;/admin",
                                        "/..;x=1/y",
                                        "/.;x/y",
                                        "/;/admin",
                                        "/a/;x/b",
                                        "/a/;",
                                        "/%2e%2e;/x"};
    struct target t;
    struct view rest, segment;
    (void)state;
    check_all_refused(cases, COUNT(cases));
    check_canonical("/a;jsessionid=1", "/a;jsessionid=1");
    assert_int_equal(parse(VIEW("/a;x=1/b"), &t, NULL), 0);
    assert_true(t.parameters);
    rest = t.path;
    assert_true(target_segment(&rest, &segment));
    assert_true(view_equal(segment, VIEW("a;x=1")));
    assert_int_equal(parse(VIEW("/a%3bx/b"), &t, NULL), 0);
    assert_true(t.parameters);
    assert_int_equal(parse(VIEW("/a/b?x;y"), &t, NULL), 0);
    assert_false(t.parameters);
}

static void pn_06_encodings_have_one_spelling_and_case_counts(void **state) {
    (void)state;
    check_canonical("/%72epos/x", "/repos/x");
    check_canonical("/Repos/x", "/Repos/x");
    check_canonical("/%52epos", "/Repos");
    check_canonical("/%7eme/%2d%5f", "/~me/-_");
    check_canonical("/a%20b%c3%bc%40", "/a%20b%C3%BC%40");
    check_canonical("/x?%61pi%5fkey=%2b%2B", "/x?api_key=%2B%2B");
}

static void pn_07_fragments_are_refused(void **state) {
    static const char *const cases[] = {"/public#/../secret", "/#", "/x?a#b", "#"};
    (void)state;
    check_all_refused(cases, COUNT(cases));
    check_canonical("/public%23x", "/public%23x");
}

static void pn_08_control_characters_are_refused(void **state) {
    static const char *const cases[] = {
        "/a%00",       "/a%0d%0ab",        "/a%7f",     "/a%1f",   "/a%09",   "/x?mode%00=1",
        "/x?mode=%00", "/x?a=1&mode%0a=2", "/x?a=%7f",  "/x?%0d",  "/a b",    "/a\tb",
        "/x?a b",      "/a\x7f",           "/\xc3\xbc", "/a\r\nb", "/x?\x80",
    };
    (void)state;
    check_all_refused(cases, COUNT(cases));
    check_refused(VIEW("/a\0b"));
    check_refused(VIEW("/a?b\0"));
    check_canonical("/x?query=a%0ab%09c%0d", "/x?query=a%0Ab%09c%0D");
}

static void pn_08_pairs_are_split_at_ampersands_only(void **state) {
    static const char *const wanted[][2] = {
        {"mode", "read"}, {"mode", "write;mode=x"}, {"a", "b=c"}, {"empty", ""}, {"bare", ""},
        {"", "x"},
    };
    struct target t;
    struct view rest, name, value;
    size_t n = 0;
    (void)state;
    assert_int_equal(parse(VIEW("/x?mode=read&mode=write;mode=x&&a=b=c&empty=&bare&=x&"), &t, NULL),
                     0);
    rest = t.query;
    while (target_pair(&rest, &name, &value)) {
        assert_true(n < COUNT(wanted));
        assert_true(view_equal(name, view_str(wanted[n][0])));
        assert_true(view_equal(value, view_str(wanted[n][1])));
        n++;
    }
    assert_int_equal(n, COUNT(wanted));
}

static void pn_10_segments_are_counted_and_limited(void **state) {
    static const struct {
        const char *raw;
        unsigned n;
        bool slash;
    } cases[] = {{"/", 0, false},    {"", 0, false},           {"?x", 0, false},
                 {"/a", 1, false},   {"/a/", 1, true},         {"/a/b", 2, false},
                 {"/a/b/", 2, true}, {"/a/b/c?d/e", 3, false}, {"/a/?x", 1, true}};
    char deep[4096];
    struct target t;
    const char *why = NULL;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(parse(view_str(cases[i].raw), &t, NULL), 0);
        assert_int_equal(t.n_segments, cases[i].n);
        assert_int_equal(t.trailing_slash, cases[i].slash);
        struct view rest = t.path, segment;
        size_t n = 0;
        while (target_segment(&rest, &segment)) {
            assert_true(segment.n > 0);
            n++;
        }
        assert_int_equal(n, cases[i].n);
    }
    for (size_t i = 0; i < sizeof deep; i++)
        deep[i] = i % 2 ? 'a' : '/';
    assert_int_equal(parse(view_of(deep, 128), &t, &why), 0);
    assert_int_equal(t.n_segments, 64);
    assert_int_equal(parse(view_of(deep, 130), &t, &why), ERR_LIMIT);
    assert_int_equal(buf_len(&out), 0);
    assert_int_equal(parse(view_of(deep, sizeof deep), &t, &why), ERR_LIMIT);
}

static void pn_11_an_empty_path_is_the_root_and_a_final_slash_stays(void **state) {
    (void)state;
    check_canonical("", "/");
    check_canonical("?a=1", "/?a=1");
    check_canonical("/?", "/?");
    check_canonical("/x/", "/x/");
    check_canonical("/x", "/x");
}

static void double_encodings_are_refused_in_the_path_only(void **state) {
    static const char *const cases[] = {"/%252e%252e/x", "/%2561",    "/a%252fb", "/%25%36%31",
                                        "/%2525",        "/%25%2530", "/%%32%65"};
    (void)state;
    check_all_refused(cases, COUNT(cases));
    check_canonical("/100%25", "/100%25");
    check_canonical("/100%25zz", "/100%25zz");
    check_canonical("/x?a=%252e&b=%25%36%31", "/x?a=%252e&b=%2561");
}

static void overlong_utf_8_is_refused_in_the_path(void **state) {
    static const char *const cases[] = {"/%c0%ae%c0%ae/x",    "/a%c0%afb",     "/%C1%9C",
                                        "/%e0%80%af",         "/%f0%80%80%af", "/%f8%80%80%80%af",
                                        "/%fc%80%80%80%80%af"};
    (void)state;
    check_all_refused(cases, COUNT(cases));
    check_canonical("/%e0%a4%b9%f0%9f%98%80", "/%E0%A4%B9%F0%9F%98%80");
}

static void bad_encodings_and_other_forms_are_refused(void **state) {
    static const char *const cases[] = {
        "/%", "/%2", "/%zz", "/%2x",           "/x?%",       "/x?a=%4", "/x?%g0",
        "*",  "x",   "x/y",  "http://a.test/", "a.test:443", "/%u002e"};
    (void)state;
    check_all_refused(cases, COUNT(cases));
}

static void nothing_is_appended_without_room(void **state) {
    struct buf small;
    struct target t;
    const char *why = NULL;
    (void)state;
    buf_init(&small, 8);
    assert_int_equal(target_parse(VIEW("/12345678"), 64, &small, &t, &why), ERR_LIMIT);
    assert_non_null(why);
    assert_true(buf_ok(&small));
    assert_int_equal(target_parse(VIEW("/123456"), 64, &small, &t, &why), 0);
    assert_int_equal(buf_len(&small), 7);
    buf_free(&small);
}

static void the_views_point_behind_what_was_there_before(void **state) {
    struct target t;
    (void)state;
    buf_free(&out);
    buf_init(&out, 1024);
    buf_put_str(&out, "before");
    assert_int_equal(target_parse(VIEW("/a%62?c"), 64, &out, &t, NULL), 0);
    assert_true(view_equal(buf_view(&out), VIEW("before/ab?c")));
    assert_true(view_equal(t.path, VIEW("/ab")));
    assert_true(view_equal(t.query, VIEW("c")));
}

static void decoding_is_exact(void **state) {
    static const struct {
        const char *text;
        bool plus;
        const char *decoded; /* NULL: refused */
    } cases[] = {
        {"a%62c", false, "abc"}, {"a+b", false, "a+b"}, {"a+b%2b", true, "a b+"},
        {"%2541", false, "%41"}, {"", false, ""},       {"%", false, NULL},
        {"a%4", false, NULL},    {"%xx", true, NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        buf_free(&out);
        buf_init(&out, 64);
        int rc = percent_decode(view_str(cases[i].text), cases[i].plus, &out);
        assert_int_equal(rc, cases[i].decoded ? 0 : ERR_BAD);
        assert_true(view_equal(buf_view(&out), view_str(cases[i].decoded)));
    }
    buf_free(&out);
    buf_init(&out, 3);
    assert_int_equal(percent_decode(VIEW("abcd"), false, &out), ERR_LIMIT);
    buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pn_01_dot_segments_are_refused),
        cmocka_unit_test(pn_02_what_becomes_dots_is_refused),
        cmocka_unit_test(pn_01_single_dot_segments_are_taken_out),
        cmocka_unit_test(pn_02_encoded_dot_segments_are_refused),
        cmocka_unit_test(pn_03_encoded_slashes_are_refused_in_the_path_only),
        cmocka_unit_test(pn_04_empty_segments_are_refused),
        cmocka_unit_test(pn_05_parameters_are_part_of_their_segment),
        cmocka_unit_test(pn_06_encodings_have_one_spelling_and_case_counts),
        cmocka_unit_test(pn_07_fragments_are_refused),
        cmocka_unit_test(pn_08_control_characters_are_refused),
        cmocka_unit_test(pn_08_pairs_are_split_at_ampersands_only),
        cmocka_unit_test(pn_10_segments_are_counted_and_limited),
        cmocka_unit_test(pn_11_an_empty_path_is_the_root_and_a_final_slash_stays),
        cmocka_unit_test(double_encodings_are_refused_in_the_path_only),
        cmocka_unit_test(overlong_utf_8_is_refused_in_the_path),
        cmocka_unit_test(bad_encodings_and_other_forms_are_refused),
        cmocka_unit_test(nothing_is_appended_without_room),
        cmocka_unit_test(the_views_point_behind_what_was_there_before),
        cmocka_unit_test(decoding_is_exact),
    };
    return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}

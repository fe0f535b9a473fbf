#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/method.h"
#include "policy/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- hosts ---- */

static bool host_matches(const char *pattern, const char *host) {
    struct host_pattern p;
    struct authority a;
    const char *why = NULL;
    assert_int_equal(host_pattern_parse(view_str(pattern), &p, &why), 0);
    assert_int_equal(authority_parse_host(view_str(host), 443, &a, &why), 0);
    struct host_facts facts = host_facts_of(&a);
    return host_pattern_match(&p, &facts);
}

struct host_case {
    const char *pattern, *host;
    bool match;
};

static const struct host_case host_cases[] = {
    {"allowed.test", "allowed.test", true},
    {"Allowed.Test", "allowed.test", true},
    {"allowed.test.", "allowed.test", true},
    {"allowed.test", "ALLOWED.test.", true},
    {"allowed.test", "evilallowed.test", false},
    {"allowed.test", "allowed.test.evil.test", false},
    {"allowed.test", "a.allowed.test", false},
    {"*.allowed.test", "allowed.test", false},
    {"*.allowed.test", "a.allowed.test", true},
    {"*.allowed.test", "a.b.allowed.test", false},
    {"*.allowed.test", "evilallowed.test", false},
    {"**.allowed.test", "allowed.test", false},
    {"**.allowed.test", "a.allowed.test", true},
    {"**.allowed.test", "a.b.allowed.test", true},
    {"**.allowed.test", "a.b.evilallowed.test", false},
    {"192.0.2.1", "192.0.2.1", true},
    {"192.0.2.1", "192.0.2.10", false},
    {"[2001:db8::1]", "[2001:0db8:0::1]", true},
    {"[2001:db8::1]", "[2001:db8::2]", false},
};

static void wc_01_wc_02_hosts_match_whole_labels_and_no_apex(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof host_cases / sizeof host_cases[0]; i++) {
        const struct host_case *c = &host_cases[i];
        if (host_matches(c->pattern, c->host) != c->match)
            fail_msg("%s %s %s", c->pattern, c->match ? "must match" : "must not match", c->host);
    }
}

static void hosts_with_the_same_mark_are_told_apart(void **state) {
    (void)state;
    struct authority a, b;
    assert_int_equal(authority_parse_host(VIEW("glbvs.test"), 443, &a, NULL), 0);
    assert_int_equal(authority_parse_host(VIEW("yacxa.test"), 443, &b, NULL), 0);
    assert_int_equal(host_facts_of(&a).mark, host_facts_of(&b).mark);
    assert_false(host_matches("glbvs.test", "yacxa.test"));
    assert_false(host_matches("*.glbvs.test", "x.yacxa.test"));
    assert_true(host_matches("*.glbvs.test", "x.glbvs.test"));
}

static void wc_04_bare_and_partial_stars_are_no_host_patterns(void **state) {
    (void)state;
    static const char *const bad[] = {
        "*",       "**",         "*test",      "a.*.test",       "a*.b.test",  "*.",
        "**.",     "*.*.b.test", "***.b.c",    "*.1.2.3.4",      "*.[::1].x",  "",
        ".b.test", "a..test",    "a.test:443", "user@a.test",    "*.b.test:1", "a b",
        "0x7f.1",  "127.1",      "a/b",        "https://a.test",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct host_pattern p;
        const char *why = NULL;
        if (host_pattern_parse(view_str(bad[i]), &p, &why) != ERR_BAD)
            fail_msg("'%s' must be refused", bad[i]);
        assert_non_null(why);
    }
}

static struct view label_of(struct view *rest) {
    return view_cut(rest, '.');
}

/* The obvious meaning, label by label. */
static bool slow_host(struct view pattern, struct view host) {
    if (pattern.n == 0 || host.n == 0)
        return pattern.n == 0 && host.n == 0;
    struct view p = pattern, h = host;
    struct view first = label_of(&p), label = label_of(&h);
    if (view_equal(first, VIEW("**")))
        return slow_host(p, h) || slow_host(pattern, h);
    return (view_equal(first, VIEW("*")) || view_equal(first, label)) && slow_host(p, h);
}

static void random_labels(char *out, unsigned n) {
    out[0] = '\0';
    for (unsigned i = 0; i < n; i++) {
        strcat(out, i ? "." : "");
        strcat(out, rand() % 2 ? "a" : "b");
    }
}

static void hosts_match_as_the_slow_reference_says(void **state) {
    (void)state;
    static const char *const stars[] = {"", "*.", "**."};
    unsigned matched = 0;
    for (int i = 0; i < 50000; i++) {
        char labels[32], pattern[40], host[32];
        random_labels(labels, 2 + (unsigned)rand() % 3);
        snprintf(pattern, sizeof pattern, "%s%s", stars[rand() % 3], labels);
        random_labels(host, 1 + (unsigned)rand() % 5);
        bool match = host_matches(pattern, host);
        if (match != slow_host(view_str(pattern), view_str(host)))
            fail_msg("%s and %s", pattern, host);
        matched += match;
    }
    assert_true(matched > 1000);
}

static void hosts_overlap_when_some_host_matches_both_and_cover_when_all_do(void **state) {
    (void)state;
    static const char *const patterns[] = {
        "a.a",     "b.a",     "a.a.a",    "b.a.a",     "*.a.a",    "**.a.a",
        "*.b.a",   "**.b.a",  "*.a.a.a",  "**.a.a.a",  "*.b.a.a",  "**.b.a.a",
        "a.b.a.a", "*.a.b.a", "**.a.b.a", "a.a.a.b.a", "b.b.b.a.a"};
    enum { N = sizeof patterns / sizeof patterns[0] };
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++) {
            struct host_pattern a, b;
            const char *why;
            assert_int_equal(host_pattern_parse(view_str(patterns[i]), &a, &why), 0);
            assert_int_equal(host_pattern_parse(view_str(patterns[k]), &b, &why), 0);
            bool both = false, only = false;
            for (unsigned n = 1; n <= 6; n++)
                for (unsigned bits = 0; bits < 1u << n; bits++) {
                    char host[16] = "";
                    for (unsigned l = 0; l < n; l++) {
                        strcat(host, l ? "." : "");
                        strcat(host, bits >> l & 1 ? "a" : "b");
                    }
                    bool first = slow_host(view_str(patterns[i]), view_str(host));
                    bool second = slow_host(view_str(patterns[k]), view_str(host));
                    both = both || (first && second);
                    only = only || (!first && second);
                }
            if (host_patterns_overlap(&a, &b) != both)
                fail_msg("%s and %s %s", patterns[i], patterns[k],
                         both ? "overlap" : "do not overlap");
            if (host_pattern_covers(&a, &b) == only)
                fail_msg("%s %s %s", patterns[i], only ? "does not cover" : "covers", patterns[k]);
        }
}

/* ---- paths ---- */

static bool path_matches(const char *pattern, const char *path, bool widely) {
    struct path_pattern p;
    const char *why = NULL;
    struct target t = {.path = view_str(path)};
    if (path_pattern_parse(view_str(pattern), true, &p, &why) != 0)
        fail_msg("%s: %s", pattern, why);
    return path_pattern_match(&p, &t, widely);
}

struct path_case {
    const char *pattern, *path;
    bool match, widely;
};

static const struct path_case path_cases[] = {
    {"/v1/items", "/v1/items", true, true},
    {"/v1/items", "/v1/items/", false, true},
    {"/v1/items/", "/v1/items", false, true},
    {"/v1/items", "/v1/items/7", false, false},
    {"/v1/items", "/V1/items", false, true},
    {"/v1/items", "/v1/itemsx", false, false},
    {"/v1/items", "/v1/items;x=1", false, true},
    {"/v1/*", "/v1/items;x=1", true, true},
    {"/v1/items/*", "/v1/items/7", true, true},
    {"/v1/items/*", "/v1/items", false, false},
    {"/v1/items/*", "/v1/items/", false, false},
    {"/v1/items/*", "/v1/items/7/", false, true},
    {"/v1/items/*", "/v1/items/7/x", false, false},
    {"/v1/items/*/", "/v1/items/7/", true, true},
    {"/v1/items/**", "/v1/items/7", true, true},
    {"/v1/items/**", "/v1/items/7/", true, true},
    {"/v1/items/**", "/v1/items/7/x/y", true, true},
    {"/v1/items/**", "/v1/items", false, false},
    {"/v1/items/**", "/v1/items/", false, false},
    {"/v1/items/**/", "/v1/items/7", false, true},
    {"/v1/items/**/", "/v1/items/7/", true, true},
    {"/**/edit", "/a/edit", true, true},
    {"/**/edit", "/a/b/edit", true, true},
    {"/**/edit", "/a/edit/edit", true, true},
    {"/**/edit", "/edit", false, false},
    {"/**/edit", "/a/edit/", false, true},
    {"/**/edit", "/a/edit;v=2/", false, true},
    {"/**/a/**/b", "/x/a/y/b", true, true},
    {"/**/a/**/b", "/a/a/a/b/b", true, true},
    {"/**/a/**/b", "/x/a/b", false, false},
    {"/", "/", true, true},
    {"/", "/a", false, false},
    {"/**", "/", false, false},
    {"/**", "/a", true, true},
    {"/**", "*", false, false},
    {"/", "*", false, false},
    {"/a%2Bb", "/a%2Bb", true, true},
    {"/a/*/share", "/a/7/share/", false, true},
    {"/a/*/share", "/a/7/shared", false, false},
    /* a server decodes what RFC 3986 2.2 calls another spelling */
    {"/@evil/**", "/%40evil/x", false, true},
    {"/%40evil/**", "/@evil/x", false, true},
    {"/@evil/**", "/@evil/x", true, true},
    {"/@evil/**", "/%40evi/x", false, false},
    {"/@evil/**", "/%40evil%20/x", false, true},
    {"/@evil/**", "/%40evil%20x/x", false, false},
    {"/a/*/share", "/a/7/share;x", false, true},
    {"/a/*/share", "/a/7/share%3Bx=1", false, true},
    {"/a/*/share", "/a/7/share%3B", false, true},
    {"/a/*/share", "/a/7/shar%3Be", false, false},
    {"/@a", "/%40a%3Bx;y", false, true},
    {"/a;v=1", "/a;v=1", true, true},
    {"/a;v=1", "/a%3Bv%3D1", false, true},
    {"/a;v=1", "/a;v=1;w", false, true},
    {"/a;v=1", "/a;v=2", false, false},
    {"/a;v=1", "/a", false, false},
    {"/a%3Bv", "/a;v", false, true},
    {"/**/x@y/*", "/a/x%40y;q/b", false, true},
    {"/a%2Ab", "/a*b", false, true},
    {"/%2A", "/*", false, true},
    {"/%2A", "/b", false, false}, /* an encoded star is no star */
    {"/50%25", "/50%25", true, true},
    {"/50%25", "/50%25;a", false, true},
    {"/50%25x", "/50%25y", false, false},
    /* PN-06: operations compare with case, refusals cover servers that do not */
    {"/Share", "/share", false, true},
    {"/share", "/SH%61RE", false, true},
    {"/%C3%A9", "/%C3%89", false, false}, /* letters of ASCII only */
    /* GF-01, and frameworks that take a format from the path */
    {"/a/*/share", "/a/7/share.json", false, true},
    {"/a/*/share", "/a/7/share%2Ejson", false, true},
    {"/a/*/share", "/a/7/share.", false, true},
    {"/a/*/share", "/a/7/share%20", false, true},
    {"/a/*/share", "/a/7/share%20.", false, true},
    {"/a/*/share", "/a/7/share%20x", false, false},
    {"/a/*/share", "/a/7/share%C2%A0", false, true},
    {"/a/*/share", "/a/7/share%E3%80%80%20%EF%BB%BF.x", false, true},
    {"/a/*/share", "/a/7/%20share", false, true},
    {"/a/*/share", "/a/7/%C2%A0%20share%20", false, true},
    {"/a/*/share", "/a/7/x%20share", false, false},
    {"/a/*/share", "/a/7/share+", false, true},
    {"/a/*/share", "/a/7/+share%20+.json", false, true},
    {"/a/*/share", "/a/7/share%2B", false, false},
    {"/a/*/share", "/a/7/share+x", false, false},
    {"/a/*/c++", "/a/7/c++", true, true},
    {"/a/*/share", "/a/7/share%3Fx=1", false, true},
    {"/a/*/share", "/a/7/share%23", false, true},
    {"/a/*/share", "/a/7/%3Fshare", false, false},
    {"/%20share", "/%20share", true, true},
    {"/a/*/share", "/a/7/share%C2%A1", false, false},
    {"/a/*/share", "/a/7/share%C2", false, false},
    {"/a/*/share", "/a/7/share-x", false, false},
    {"/a/*/share", "/a/7/.share", false, false},
    {"/o/r/**", "/O/R.git/info/refs", false, true},
    {"/o/r.git/**", "/o/r/info/refs", false, false},
};

static void pn_05_pn_06_pn_10_pn_11_paths_match_whole_segments(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof path_cases / sizeof path_cases[0]; i++) {
        const struct path_case *c = &path_cases[i];
        if (path_matches(c->pattern, c->path, false) != c->match)
            fail_msg("%s and %s", c->pattern, c->path);
        if (path_matches(c->pattern, c->path, true) != c->widely)
            fail_msg("%s and %s, widely", c->pattern, c->path);
    }
}

static void paths_that_are_not_canonical_are_no_patterns(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",        "a",     "*",       "/a*",   "/*a",   "/a/***", "/a?b=1",
        "/a/../b", "/a//b", "/%2e%2e", "/a%41", "/%2a",  "/a#b",   "/a b",
        "/a%2fb",  "/a\\b", "/./a",    "/a/.",  "/a%zz", "//a",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct path_pattern p;
        const char *why = NULL;
        if (path_pattern_parse(view_str(bad[i]), true, &p, &why) != ERR_BAD)
            fail_msg("'%s' must be refused", bad[i]);
        assert_non_null(why);
    }
}

static void a_pattern_has_at_most_64_segments(void **state) {
    (void)state;
    char text[2 * (PATH_PARTS_MAX + 1) + 1];
    const char *why;
    struct path_pattern p;
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = i % 2 ? 'a' : '/';
    text[sizeof text - 1] = '\0';
    assert_int_equal(path_pattern_parse(view_str(text), true, &p, &why), ERR_BAD);
    text[sizeof text - 3] = '\0';
    assert_int_equal(path_pattern_parse(view_str(text), true, &p, &why), 0);
}

/* The obvious meaning: segments in arrays, recursion. */
static bool slow_parts(char **pattern, size_t n, char **path, size_t m) {
    if (n == 0 || m == 0)
        return n == 0 && m == 0;
    if (strcmp(pattern[0], "**") == 0)
        return slow_parts(pattern + 1, n - 1, path + 1, m - 1) ||
               slow_parts(pattern, n, path + 1, m - 1);
    return (strcmp(pattern[0], "*") == 0 || strcmp(pattern[0], path[0]) == 0) &&
           slow_parts(pattern + 1, n - 1, path + 1, m - 1);
}

static size_t split(char *text, char **out) {
    size_t n = 0;
    for (char *part = strtok(text, "/"); part; part = strtok(NULL, "/"))
        out[n++] = part;
    return n;
}

static bool slow_path(const char *pattern, const char *path) {
    char a[64], b[64], *parts[16], *segments[16];
    size_t last = strlen(pattern);
    bool open = last > 2 && strcmp(pattern + last - 2, "**") == 0;
    bool slash_a = last > 1 && pattern[last - 1] == '/';
    bool slash_b = strlen(path) > 1 && path[strlen(path) - 1] == '/';
    snprintf(a, sizeof a, "%s", pattern);
    snprintf(b, sizeof b, "%s", path);
    size_t n = split(a, parts), m = split(b, segments);
    return (open || slash_a == slash_b) && slow_parts(parts, n, segments, m);
}

static const char *const plain_words[] = {"a", "b"};
static const char *const star_words[] = {"a", "b", "*", "**"};

static void random_path(char *out, const char *const *words, unsigned n_words, unsigned most) {
    unsigned n = (unsigned)rand() % (most + 1);
    out[0] = '\0';
    for (unsigned i = 0; i < n; i++) {
        strcat(out, "/");
        strcat(out, words[(unsigned)rand() % n_words]);
    }
    if (n == 0 || rand() % 4 == 0)
        strcat(out, "/");
}

static void paths_match_as_the_slow_reference_says(void **state) {
    (void)state;
    unsigned matched = 0;
    for (int i = 0; i < 200000; i++) {
        char pattern[64], path[64];
        random_path(pattern, star_words, 4, 6);
        random_path(path, plain_words, 2, 8);
        bool match = path_matches(pattern, path, false);
        if (match != slow_path(pattern, path))
            fail_msg("%s and %s", pattern, path);
        matched += match;
    }
    assert_true(matched > 5000);
}

/* ---- the same, widely ---- */

/* Segments of a path as a server may read them: decoded, in lower case, whole or up to what is stripped. */
static size_t decode_all(const char *path, char out[][16], bool cut) {
    char copy[128], *segments[16];
    snprintf(copy, sizeof copy, "%s", path);
    size_t n = split(copy, segments);
    for (size_t i = 0; i < n; i++) {
        struct buf decoded;
        buf_init(&decoded, 15);
        assert_int_equal(percent_decode(view_str(segments[i]), false, &decoded), 0);
        assert_int_equal(view_cstr(buf_view(&decoded), out[i], 16), 0);
        buf_free(&decoded);
        for (char *c = out[i]; *c; c++)
            *c = (char)to_lower((uint8_t)*c);
        if (cut)
            out[i][strcspn(out[i], ";.")] = '\0';
        for (size_t end = strlen(out[i]); cut && end > 0 && out[i][end - 1] == ' '; end--)
            out[i][end - 1] = '\0';
    }
    return n;
}

/* Every segment may be read whole or cut, independently. */
static bool slow_wide_parts(char **pattern, char part[][16], size_t n, char whole[][16],
                            char cut[][16], size_t m) {
    if (n == 0 || m == 0)
        return n == 0 && m == 0;
    if (strcmp(pattern[0], "**") == 0)
        return slow_wide_parts(pattern + 1, part + 1, n - 1, whole + 1, cut + 1, m - 1) ||
               slow_wide_parts(pattern, part, n, whole + 1, cut + 1, m - 1);
    bool same = strcmp(pattern[0], "*") == 0 || strcmp(part[0], whole[0]) == 0 ||
                strcmp(part[0], cut[0]) == 0;
    /* A part with a ';' of its own also covers what adds further parameters. */
    size_t length = strlen(part[0]);
    same = same || (strncmp(part[0], whole[0], length) == 0 && strchr(";.", whole[0][length]));
    return same && slow_wide_parts(pattern + 1, part + 1, n - 1, whole + 1, cut + 1, m - 1);
}

static bool slow_wide_path(const char *pattern, const char *path) {
    char copy[128], *parts[16], part[16][16], whole[16][16], cut[16][16];
    snprintf(copy, sizeof copy, "%s", pattern);
    size_t n = split(copy, parts), m = decode_all(path, whole, false);
    (void)decode_all(pattern, part, false);
    (void)decode_all(path, cut, true);
    return slow_wide_parts(parts, part, n, whole, cut, m);
}

static void pn_05_paths_match_widely_as_the_slow_reference_says(void **state) {
    (void)state;
    static const char *const pattern_words[] = {"a", "@", "%40", "A;b", "*", "**", "a%3Bb", "%2A"};
    static const char *const path_words[] = {"A",      "@",       "%40", "a;B", "a%3Bb", "%40.b",
                                             "@%3Bb;", "a;b%3Bc", "%2A", "*",   "a%20"};
    unsigned matched = 0;
    for (int i = 0; i < 200000; i++) {
        char pattern[64], path[96];
        random_path(pattern, pattern_words, 8, 4);
        random_path(path, path_words, 11, 6);
        bool match = path_matches(pattern, path, true);
        if (match != slow_wide_path(pattern, path))
            fail_msg("%s and %s: %d", pattern, path, match);
        matched += match;
    }
    assert_true(matched > 5000);
}

static void what_matches_matches_widely_too(void **state) {
    (void)state;
    for (int i = 0; i < 50000; i++) {
        char pattern[64], path[64];
        random_path(pattern, star_words, 4, 5);
        random_path(path, plain_words, 2, 6);
        if (path_matches(pattern, path, false) && !path_matches(pattern, path, true))
            fail_msg("%s and %s", pattern, path);
    }
}

static void what_a_pattern_covers_it_matches(void **state) {
    (void)state;
    unsigned covered[2] = {0, 0};
    for (int i = 0; i < 300000; i++) {
        char outer[64], inner[64], path[64];
        struct path_pattern a, b;
        const char *why;
        bool widely = rand() % 2;
        random_path(outer, star_words, 4, 4);
        random_path(inner, star_words, 4, 4);
        random_path(path, plain_words, 2, 6);
        assert_int_equal(path_pattern_parse(view_str(outer), false, &a, &why), 0);
        assert_int_equal(path_pattern_parse(view_str(inner), false, &b, &why), 0);
        if (!path_pattern_covers(&a, &b, widely) || !path_matches(inner, path, false))
            continue;
        if (!path_matches(outer, path, widely))
            fail_msg("%s does not cover %s: %s", outer, inner, path);
        covered[widely]++;
    }
    assert_true(covered[false] > 200 && covered[true] > 200);
}

/* ---- methods ---- */

static void wc_09_methods_compare_whole_and_with_case(void **state) {
    (void)state;
    assert_int_not_equal(method_bit(VIEW("GET")), 0);
    assert_int_not_equal(method_bit(VIEW("GET")), method_bit(VIEW("HEAD")));
    assert_int_equal(method_bit(VIEW("get")), 0);
    assert_int_equal(method_bit(VIEW("GETX")), 0);
    assert_int_equal(method_bit(VIEW("")), 0);
    assert_true((methods_grantable() & method_bit(VIEW("PURGE"))) != 0);
    static const char *const never[] = {"TRACE", "CONNECT", "PRI"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_not_equal(method_bit(view_str(never[i])), 0);
        assert_int_equal(method_bit(view_str(never[i])) & methods_grantable(), 0);
    }
}

int main(void) {
    unsigned seed = (unsigned)(getenv("SEED") ? strtoul(getenv("SEED"), NULL, 10) : 1);
    printf("seed %u\n", seed);
    srand(seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wc_01_wc_02_hosts_match_whole_labels_and_no_apex),
        cmocka_unit_test(hosts_with_the_same_mark_are_told_apart),
        cmocka_unit_test(wc_04_bare_and_partial_stars_are_no_host_patterns),
        cmocka_unit_test(hosts_match_as_the_slow_reference_says),
        cmocka_unit_test(hosts_overlap_when_some_host_matches_both_and_cover_when_all_do),
        cmocka_unit_test(pn_05_pn_06_pn_10_pn_11_paths_match_whole_segments),
        cmocka_unit_test(paths_that_are_not_canonical_are_no_patterns),
        cmocka_unit_test(a_pattern_has_at_most_64_segments),
        cmocka_unit_test(paths_match_as_the_slow_reference_says),
        cmocka_unit_test(pn_05_paths_match_widely_as_the_slow_reference_says),
        cmocka_unit_test(what_matches_matches_widely_too),
        cmocka_unit_test(what_a_pattern_covers_it_matches),
        cmocka_unit_test(wc_09_methods_compare_whole_and_with_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

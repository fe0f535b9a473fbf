#include "tests/unit/policy_texts.h"

#include "policy/diff.h"
#include "policy/diff_same.h"

#include <stdio.h>

static void nothing(void *ctx, const struct diff_found *f) {
    (void)ctx;
    (void)f;
}

static struct diff_result diff_of(const char *before, const char *after) {
    struct policy *a = load(before), *b = load(after);
    struct diff_result r;
    assert_int_equal(policy_diff(a, b, nothing, NULL, &r), 0);
    policy_free(a);
    policy_free(b);
    return r;
}

/* How many of which kind; a whole answer. */
static void check(const char *before, const char *after, size_t allowed, size_t denied,
                  size_t other) {
    struct diff_result r = diff_of(before, after);
    if (!r.whole)
        fail_msg("not whole: %s", r.why);
    size_t more = 0;
    for (int kind = DIFF_CREDENTIAL; kind < DIFF_KINDS; kind++)
        more += r.found[kind];
    if (r.found[DIFF_ALLOWED] != allowed || r.found[DIFF_DENIED] != denied || more != other)
        fail_msg("%zu, %zu, %zu for\n%s---\n%s", r.found[DIFF_ALLOWED], r.found[DIFF_DENIED], more,
                 before, after);
}

#define A(lines) "service a { host a.test; " lines " }\nsandbox w { grant a all }\n"

static void each_kind_of_rule_is_compared(void **state) {
    (void)state;
    check(A("operation r { GET /a }"), A("operation r { GET /a }"), 0, 0, 0);
    check(A("operation r { GET /a }"), A("operation r { GET /*; GET /a }"), 1, 0, 0);
    check(A("operation r { GET /*; GET /a }"), A("operation x { GET /* }"), 0, 0, 0);
    check(A("operation r { GET /** }"), A("operation r { GET /**/x; GET /** }"), 0, 0, 0);
    check(A("operation r { GET /** }"), A("operation r { GET /*; GET /*/** }"), 0, 1, 0);
    check(A("operation r { GET /{n:int} }"), A("operation r { GET /* }"), 1, 0, 0);
    check(A("operation r { GET /*/ }; never { * /Share }"),
          A("operation r { GET /*/ }; never { * /share/ }"), 0, 0, 0);
    check(A("operation r { GET /*/ }; never { * /share }"),
          A("operation r { GET /*/ }; never { * /share.x }"), 1, 0, 0);
    check(A("operation r { POST / { body at most 10 } }"),
          A("operation r { POST / { body at most 11 } }"), 1, 0, 0);
    check(A("limit body 10; operation r { POST / }"), A("limit body 9; operation r { POST / }"), 0,
          1, 0);
    check(A("operation r { GET / { query q in [a, b] } }"),
          A("operation r { GET / { query q in [b, c] } }"), 1, 1, 0);
    check(A("operation r { GET / { query q is a; query only } }"),
          A("operation r { GET / { query q is a } }"), 1, 0, 0);
    check(A("operation r { POST / { body /m is 5 } }"),
          A("operation r { POST / { body /m is \"5\" } }"), 1, 1, 0);
    check(A("operation r { POST / { no body /u } }"),
          A("operation r { POST / { body /u is null } }"), 1, 1, 0);
    check(A("operation r { POST / graphql query [a]; POST / graphql query [b] }"),
          A("operation r { POST / graphql query [a, b] }"), 1, 0, 0);
    check(A("operation r { POST / mcp tools/call [x] }"),
          A("operation r { POST / mcp tools/call }"), 1, 0, 0);
    check(A("operation r { POST / jsonrpc [x, y] }"), A("operation r { POST / jsonrpc [x] }"), 0, 1,
          0);
    check(A("operation r { GET / websocket; GET /a }"), A("operation r { GET /a }"), 0, 1, 0);
    check(A("operation r { GET / }"), A("host **.b.test; operation r { GET / }"), 1, 0, 0);
    check(A("host *.b.test x.b.test; operation r { GET / }"),
          A("host *.b.test; operation r { GET / }"), 0, 0, 0);
    check(A("host **.b.test; operation r { GET / }"),
          A("host *.b.test *.zz.b.test; operation r { GET / }"), 0, 1, 0);
    /* only where both are sent */
    check(A("operation r { GET / { query m is a } }; operation w { GET / { query m is b } }"),
          A("operation r { GET / { query m in [a, b] } }"), 1, 0, 0);
    check(A("operation r { POST / { body /m is 5 } }; operation w { POST / { body /m is array } }"),
          A("operation r { POST / { body /m is 5 } }"), 0, 1, 0);
    check(A("operation r { POST / grpc a.B C }"), A("operation r { POST / }"), 1, 0, 0);
    check(A("operation r { POST /** grpc a.B * }"), A("operation r { POST /** grpc a.B C }"), 0, 1,
          0);
    check(A("path allow parameters; operation r { GET /* }"), A("operation r { GET /* }"), 0, 1, 0);
    check(A("path allow encoded-slash; operation r { GET /* }"), A("operation r { GET /* }"), 0, 1,
          0);
    check(A("path allow encoded-slash; operation r { GET /*; GET /x%2Fy/a }"),
          A("path allow encoded-slash; operation r { GET /* }"), 0, 1, 0);
    check(A("path allow encoded-slash; operation r { GET /* }; never { * /a/b/c }"),
          A("path allow encoded-slash; operation r { GET /* }"), 1, 0, 0);
    check(A("path allow encoded-slash; operation r { GET /*/c }; never { * /a/**/b/c }"),
          A("path allow encoded-slash; operation r { GET /*/c }; never { * /a/*/**/b/c }"), 1, 0,
          0);
    check(A("path allow encoded-slash; operation r { GET /* }; never { * /a }"),
          A("path allow encoded-slash; operation r { GET /* }; never { * /a; * /a.x%2Fy }"), 0, 0,
          0);
    check(A("path allow parameters; operation r { GET /a; GET /* }; never { * /a }"),
          A("path allow parameters; operation r { GET /* }; never { * /a }"), 0, 0, 0);
    check(A("path allow parameters; operation r { GET /*/x }; never { * /a/x }"),
          A("path allow parameters; operation r { GET /*/x }; never { * '/a;v=1/x' }"), 1, 0, 0);
    check(A("accept cookies; operation r { GET / }"), A("operation r { GET / }"), 0, 1, 0);
    check(A("operation r { GET / }"), A("accept any; operation r { GET / }"), 2, 0, 0);
}

static size_t found_of(const char *before, const char *after, enum diff_kind kind) {
    struct diff_result r = diff_of(before, after);
    assert_true(r.whole);
    return r.found[kind];
}

static void that_requests_are_no_longer_read_is_a_difference_of_its_own(void **state) {
    (void)state;
    static const char all[] = A("accept any; accept cookies; accept destinations; "
                                "operation r { * /; * /** }"),
                      splice[] = A("tls splice"), little[] = A("tls splice at most 1K");
    check(splice, splice, 0, 0, 0);
    assert_true(found_of(A("operation r { GET / }"), splice, DIFF_ALLOWED) > 0);
    assert_int_equal(found_of(all, splice, DIFF_ALLOWED), 0);
    assert_true(found_of(all, splice, DIFF_UNREAD) > 0);
    assert_int_equal(found_of(splice, all, DIFF_UNREAD), 0);
    assert_true(found_of(splice, all, DIFF_READ) > 0);
    assert_true(found_of(little, splice, DIFF_LAXER) > 0);
    assert_true(found_of(splice, little, DIFF_STRICTER) > 0);
}

#undef A
#define K(lines, grants)                                                                           \
    "service a { host a.test; credential k { in header x-a };" lines " }\n"                        \
    "sandbox w { " grants " }\nsandbox ci-* { grant a r }\n"

static void credentials_grants_and_limits_are_compared(void **state) {
    (void)state;
    check(K(R0, "grant a r"), K("operation r anonymous { GET / }", "grant a r"), 1, 0, 0);
    check(K(R0, "grant a r"), K("credential q { in header x-b; for r };" R0, "grant a r"), 0, 0, 1);
    check(K(R0, "grant a r uses 5"), K(R0, "grant a r uses 6"), 0, 0, 1);
    check(K(R0, "grant a r rate 5/m"), K(R0, "grant a r rate 5/m note \"x\""), 0, 0, 0);
    check(K(R0, "grant a r"), K(R0, ""), 0, 1, 0);
    check(K(R0, ""), K(R0, "grant a r mode observe"), 2, 0, 0);
    static const struct {
        const char *before, *after;
        bool laxer, differs;
    } limits[] = {
        {"grant a r uses 5", "grant a r uses 6", true, true},
        {"grant a r uses 5", "grant a r uses 4", false, true},
        {"grant a r uses 5", "grant a r", true, true},
        {"grant a r", "grant a r uses 5", false, true},
        {"grant a r until 2030-01-01T00:00:00Z", "grant a r until 2030-01-01T00:00:01Z", true,
         true},
        {"grant a r until 2030-01-01T00:00:00Z", "grant a r until 2029-01-01T00:00:00Z", false,
         true},
        {"grant a r rate 60/m", "grant a r rate 1/s", false, true},
        {"grant a r rate 1/s", "grant a r rate 60/m", true, true},
        {"grant a r rate 1/m", "grant a r rate 61/h", true, true},
        {"grant a r concurrent 1", "grant a r concurrent 1 bytes out 1M", false, true},
        /* another one beside it; in either order of the text */
        {"grant a r uses 5", "grant a r uses 5; grant a r uses 1 note 1", true, true},
        {"grant a r uses 5; grant a r uses 1 note 1", "grant a r uses 5", false, true},
        {"grant a r uses 5; grant a r uses 1 note 1", "grant a r uses 1 note 1; grant a r uses 5",
         false, false},
        /* what was counted is forgotten */
        {"grant a r uses 5", "grant a r uses 5 note again", true, true},
        {"grant a r rate 5/s", "grant a r rate 5/s note again", false, false},
        /* counted apart */
        {"grant a r w rate 5/s", "grant a r rate 5/s; grant a w rate 5/s", true, true},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char text[2][512];
        const char *const grants[2] = {limits[i].before, limits[i].after};
        for (int k = 0; k < 2; k++) {
            snprintf(text[k], sizeof text[k],
                     "service a { host a.test; operation r { GET / }; operation w { PUT / } }\n"
                     "sandbox s { %s }\n",
                     grants[k]);
        }
        struct diff_result r = diff_of(text[0], text[1]);
        if ((r.found[DIFF_LAXER] > 0) != limits[i].laxer ||
            (r.found[DIFF_LAXER] + r.found[DIFF_STRICTER] > 0) != limits[i].differs)
            fail_msg("%s, then %s: %zu laxer, %zu stricter", grants[0], grants[1],
                     r.found[DIFF_LAXER], r.found[DIFF_STRICTER]);
    }
    check(K(R0, ""), K(R0, "") "sandbox ci-x { }\nsandbox o { grant a r }\n", 1, 1, 0);
}

#define A(lines) "service a { host a.test; " lines " }\nsandbox w { grant a all }\n"

/* A service that is too much to compare, under another name or at another host as it is wished. */
#define LONG(name, host, more)                                                                     \
    "service " name " { host " host "; path allow parameters; credential k { in json /k }\n"       \
    "operation r { POST /x/zq9 { query a in [1, 2, 3, 4, 5, 6, 7, 8]; query b in "                 \
    "[1, 2, 3, 4, 5, 6, 7, 8]; query c in [1, 2, 3, 4, 5, 6, 7, 8] } }\n" more " }\n"
#define ALL "sandbox w { grant long all; grant a r }\n"
#define SHORT(lines) "service a { host a.test; operation r { " lines " } }\n"

static void what_is_the_same_in_both_needs_no_comparing(void **state) {
    (void)state;
    check(LONG("long", "l.test", "") SHORT("GET /") ALL,
          LONG("long", "l.test", "") SHORT("GET /") ALL, 0, 0, 0);
    check(LONG("long", "l.test", "") SHORT("GET /") ALL,
          SHORT("GET /; GET /x") LONG("long", "l.test", "") ALL, 1, 0, 0);
    check(LONG("long", "l.test", "") SHORT("GET /; GET /x") ALL,
          LONG("long", "l.test", "# comment\n") SHORT("GET /") ALL, 0, 1, 0);
    /* others come and go */
    check(LONG("long", "l.test", "") SHORT("GET /") ALL,
          LONG("long", "l.test", "") SHORT("GET /") ALL "sandbox v { grant a r }", 1, 0, 0);
    check(LONG("long", "l.test", "") SHORT("GET /") ALL,
          LONG("long", "l.test", "") SHORT("GET /") "sandbox w { grant long all }", 0, 1, 0);
    /* of the same service other paths */
    check(
        A("operation r { POST /l { query a in [1, 2, 3, 4, 5, 6, 7]; query b in [1, 2, 3, 4, 5, 6, "
          "7]; query c in [1, 2, 3, 4, 5, 6, 7] } }; operation w { GET /m }"),
        A("operation r { POST /l { query a in [1, 2, 3, 4, 5, 6, 7]; query b in [1, 2, 3, 4, 5, 6, "
          "7]; query c in [1, 2, 3, 4, 5, 6, 7] } }; operation w { GET /m; GET /n }"),
        1, 0, 0);
    /* globs that overlap, left alone */
    check(SHORT("GET /") "sandbox a*b* { grant a r }\nsandbox *b { grant a r }\n",
          "# once more\n" SHORT("GET /") "sandbox a*b* { grant a r }\nsandbox *b { grant a r }\n",
          0, 0, 0);
}

/* Each in one of two services that else are the same: it must not pass for the same. */
static void no_word_of_a_service_is_overlooked(void **state) {
    (void)state;
    static const char *const lines[][2] = {
        {"operation r { GET / }", "operation r { GET /x }"},
        {"operation r { GET / }", "operation r { HEAD / }"},
        {"operation r { GET /* }", "operation r { GET /** }"},
        {"operation r { GET /a }", "operation r { GET /a/ }"},
        {"operation r { GET / { query a is 1 } }", "operation r { GET / { query a is 2 } }"},
        {"operation r { GET / { query a is 1 } }", "operation r { GET / { no query a is 1 } }"},
        {"operation r { GET / { query a is 1 } }", "operation r { GET / { header a is 1 } }"},
        {"operation r { GET / { query a } }", "operation r { GET / { query a; query only } }"},
        {"operation r { GET / websocket }", "operation r { GET / }"},
        {"operation r { POST / { content-type a/b } }",
         "operation r { POST / { content-type a/c } }"},
        {"operation r { POST / { body at most 5 } }", "operation r { POST / { body at most 6 } }"},
        {"operation r { POST / { body /a is 5 } }", "operation r { POST / { body /b is 5 } }"},
        {"operation r { POST / mcp tools/call [a] }", "operation r { POST / mcp tools/call [b] }"},
        {"operation r { POST / graphql query [a] }", "operation r { POST / graphql mutation [a] }"},
        {"operation r { POST / jsonrpc [a] }", "operation r { POST / jsonrpc [b] }"},
        {"operation r { GET / }; never { * /a }", "operation r { GET / }; never { * /b }"},
        {"operation r { GET / }; limit body 5", "operation r { GET / }; limit body 6"},
        {"operation r { GET / }; accept any", "operation r { GET / }"},
        {"operation r { GET / }; accept cookies", "operation r { GET / }"},
        {"operation r { GET / }; accept destinations", "operation r { GET / }"},
        {"operation r { GET / }; accept ours or none", "operation r { GET / }"},
        {"operation r { GET / }; clear", "operation r { GET / }"},
        {"operation r { GET / }; path allow parameters", "operation r { GET / }"},
        {"operation r { GET / }; path allow encoded-slash", "operation r { GET / }"},
        {"operation r { GET / }; never all", "operation r { GET / }"},
        {"operation r anonymous { GET / }", "operation r { GET / }"},
        {"operation r { GET / }; operation w { PUT / }", "operation r { GET / }"},
        {"operation r { GET / }; operation w { GET /w }",
         "operation r { GET / }; operation w preset write { GET /w }"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[2][512];
        struct policy *p[2];
        for (int k = 0; k < 2; k++) {
            bool bare = strstr(lines[i][0], "clear") || strstr(lines[i][0], "accept any");
            snprintf(text[k], sizeof text[k], "service a { host a.test; %s %s }\n",
                     bare ? "" : "credential k { in header x-a };", lines[i][k]);
            p[k] = load(text[k]);
        }
        const struct service *a = policy_service_at(p[0], 0), *b = policy_service_at(p[1], 0);
        if (service_same(a, b) || service_same(b, a) || !service_same(a, a))
            fail_msg("%s and %s", lines[i][0], lines[i][1]);
        policy_free(p[0]);
        policy_free(p[1]);
    }
}

#define PIN "00000000000000000000000000000000000000000000000000000000000000"

static void what_addresses_and_upstreams_are_asked_for_is_compared(void **state) {
    (void)state;
    static const struct {
        const char *before, *after;
        size_t further, nearer;
    } pairs[] = {
        {"", "range 10.0.0.0/8", 1, 0},
        {"range 10.0.0.0/8", "", 0, 1},
        {"range 10.0.0.0/8", "range 10.1.0.0/16", 0, 1},
        {"range 10.0.0.0/8", "range 10.0.0.0/9 10.128.0.0/9", 0, 0},
        {"range 10.0.0.0/9 10.128.0.0/9", "range 10.0.0.0/8", 0, 0},
        {"range 10.0.0.0/9 10.128.0.0/10", "range 10.0.0.0/8", 1, 0},
        {"range 10.0.0.0/8", "range fd00::/8", 1, 1},
        {"range 169.254.0.0/16", "range 169.254.169.254", 1, 1},
        {"country FR DE", "country FR", 0, 1},
        {"country FR DE", "country DE FR", 0, 0},
        {"", "country FR", 0, 1},
        {"country FR", "country not DE", 1, 0},
        {"country not DE", "country not DE FR", 0, 1},
        {"asn 64500", "asn 64500 64501", 1, 0},
        {"asn 64500", "asn 64500; country FR", 0, 1},
        {"upstream ca a.pem", "", 1, 1},
        {"upstream ca a.pem", "upstream ca b.pem", 1, 1},
        {"upstream pin sha256:" PIN "00", "", 1, 0},
        {"upstream pin sha256:" PIN "00", "upstream pin sha256:" PIN "01", 1, 1},
        {"", "upstream client-certificate us", 1, 0},
        {"upstream client-certificate us", "", 0, 1},
        {"upstream client-certificate us", "upstream client-certificate them", 1, 1},
        {"}\nservice n { host 10.0.0.1; never all", "", 0, 0},
        {"range 10.0.0.0/8 }\nservice n { host 10.0.0.1; never all", "range 10.0.0.0/8", 1, 0},
        {"range 10.0.0.0/8 }\nservice n { host 10.0.0.1; port 80; never all", "range 10.0.0.0/8", 0,
         0},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[2][512];
        for (int k = 0; k < 2; k++) {
            snprintf(
                text[k], sizeof text[k],
                "service a { host a.test; operation r { GET / }\n%s }\nsandbox w { grant a all }\n",
                k ? pairs[i].after : pairs[i].before);
        }
        struct diff_result r = diff_of(text[0], text[1]);
        if (!r.whole || r.found[DIFF_FURTHER] != pairs[i].further ||
            r.found[DIFF_NEARER] != pairs[i].nearer || r.found[DIFF_ALLOWED] > 0)
            fail_msg("%s, then %s: %zu further, %zu nearer", pairs[i].before, pairs[i].after,
                     r.found[DIFF_FURTHER], r.found[DIFF_NEARER]);
    }
}

static void what_is_not_compared_is_told(void **state) {
    (void)state;
    static const char *const texts[] = {
        "service a { host a.test; credential k { in json /k }; operation r { POST /a { body /k }; "
        "GET %s } }\nsandbox w "
        "{ grant a r }\n",
        "service a { host a.test; credential k { in header x-k; at most %.1s }; operation r { GET "
        "/ } }\n"
        "sandbox w { grant a r }\n",
        "service a { host a.test; operation r { GET /x/zq9; GET %s } }\nsandbox w { grant a r }\n",
        "service a { host zq9.test; operation r { GET %s } }\nsandbox w { grant a r }\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[2][512];
        for (int k = 0; k < 2; k++) {
            snprintf(text[k], sizeof text[k], texts[i],
                     strstr(texts[i], "at most") ? (k ? "2" : "1")
                     : k                         ? "/a"
                                                 : "/b");
        }
        struct diff_result r = diff_of(text[0], text[1]);
        if (r.whole || !r.why)
            fail_msg("whole: %s", texts[i]);
    }
}

/* Of many conditions pairs are tried: also two of a body that a limit measures as well. */
static void what_a_limited_body_says_is_compared_in_pairs(void **state) {
    (void)state;
#define LINE(models, more)                                                                         \
    "service a { host a.test; limit body 1M; operation ask { POST /chat { content-type "           \
    "application/json; body /model in [" models "]; no body /tools/*/url" more                     \
    " } }; never { POST /** "                                                                      \
    "{ body /callback } } }\nsandbox w { grant a all }\n"
#define MANY                                                                                       \
    "; no query a; no query b; no query c; no query d; no query e; no query f; no query g; "       \
    "no query h; no query i; no query j; no query k; no query l"
    check(LINE("s, m", ""), LINE("s, m, l", ""), 1, 0, 0);
    struct diff_result r = diff_of(LINE("s, m", MANY), LINE("s, m, l", MANY));
    assert_false(r.whole);
    assert_int_equal(r.found[DIFF_ALLOWED], 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_rule_is_compared),
        cmocka_unit_test(that_requests_are_no_longer_read_is_a_difference_of_its_own),
        cmocka_unit_test(credentials_grants_and_limits_are_compared),
        cmocka_unit_test(what_is_the_same_in_both_needs_no_comparing),
        cmocka_unit_test(no_word_of_a_service_is_overlooked),
        cmocka_unit_test(what_addresses_and_upstreams_are_asked_for_is_compared),
        cmocka_unit_test(what_is_not_compared_is_told),
        cmocka_unit_test(what_a_limited_body_says_is_compared_in_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

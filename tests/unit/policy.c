#include "tests/unit/policy_texts.h"

#include <stdlib.h>

/* ---- what loads ---- */

static const char *const tutorial =
    "service demo-api {\n"
    "    host        api.example.com            # one or more\n"
    "    port        443\n"
    "    credential  demo-key { in header authorization scheme bearer }\n"
    "    operation   read     { GET /v1/items/**; GET /v1/items }\n"
    "    operation   docs anonymous { GET HEAD /docs/** }\n"
    "    operation   create   { POST /v1/items }\n"
    "    never       { * /v1/items/*/share }\n"
    "    accept      cookies\n"
    "    range       10.1.0.0/16\n"
    "    expect      allow GET /v1/items/7\n"
    "    expect      deny  POST /v1/items/7/share reason never\n"
    "    expect      allow with none GET /docs/x\n"
    "    expect      deny  with none GET /v1/items reason credential_missing\n"
    "    expect      deny  with foreign GET /docs/x reason foreign_credential\n"
    "    expect      deny  as worker-1 POST /v1/items reason operation_not_granted\n"
    "}\n"
    "sandbox worker-1 {\n"
    "    grant demo-api read docs\n"
    "}\n"
    "sandbox worker-2 { grant demo-api all }\n"
    "expect allow as worker-1 GET https://api.example.com/v1/items/7\n"
    "expect deny as worker-1 GET https://other.example.com/ reason host_not_allowed\n"
    "expect deny as worker-1 with none GET http://api.example.com/ reason port_not_allowed\n";

static void the_tutorial_loads_and_can_be_asked(void **state) {
    (void)state;
    struct policy *p = load(tutorial);
    assert_int_equal(policy_sandboxes(p), 2);
    assert_true(policy_has_sandbox(p, VIEW("worker-1")));
    assert_false(policy_has_sandbox(p, VIEW("Worker-1")));
    assert_false(policy_has_sandbox(p, VIEW("")));
    assert_true(view_equal(policy_sandbox_at(p, 0), VIEW("worker-1")));
    assert_int_equal(policy_sandbox_credentials(p, VIEW("worker-1")), 1);
    assert_true(view_equal(policy_sandbox_credential_at(p, VIEW("worker-1"), 0), VIEW("demo-key")));
    assert_int_equal(policy_sandbox_credentials(p, VIEW("nobody")), 0);
    policy_free(p);
}

static void wc_03_an_empty_policy_loads_and_has_nobody(void **state) {
    (void)state;
    static const char *const texts[] = {"", "\n", "# nothing\n", ";;\n"};
    for (size_t i = 0; i < 4; i++) {
        struct policy *p = load(texts[i]);
        assert_int_equal(policy_sandboxes(p), 0);
        policy_free(p);
    }
}

/* Each is a whole policy that shows one thing which is right. */
static const char *const good[] = {
    "sandbox s { }",
    "service a { host a.test; operation r { GET / } }",
    "service a { host a.test b.test\nhost *.c.test; port 443 8443\nport 1; operation r { * /** } }",
    "service a { host a.test; credential k { in basic user }; operation r { GET / } }",
    "service a { host a.test; credential k { in basic password }\n operation r { GET / } }",
    "service a { host a.test; credential k { in header X-Api-Key }; operation r { GET / } }",
    "service a { host a.test; credential k { in header Authorization scheme Token }; "
    "operation r { GET / } }",
    "service a { host a.test; clear; operation r { GET / }; expect allow GET / }",
    "service a { host a.test; accept any credential; operation r { GET / }\n"
    "expect allow with foreign GET / }",
    "service a { host 127.0.0.1 [::1]; range 127.0.0.1 ::1; operation r { GET / } }",
    "service a { host 192.168.0.5; range 192.168.0.0/16; operation r { GET / } }",
    "service a { host 169.254.169.254; range 169.254.169.254; operation r { GET / } }",
    "service no { host evil.test; never all }",
    "service no { host evil.test; never { * /** } }",
    "service a { host a.test; path allow parameters; operation r { GET \"/a;v=1\" } }",
    "service a { host a.test; operation all-of-it { GET / } }\nsandbox s { grant a all-of-it }",
    /* several services at one host */
    "service a { host x.test; credential k { in header x-key }; operation r { GET /a } }\n"
    "service b { host *.test2.test x.test; credential k { in header X-KEY }\n"
    "operation r { GET /b } }\n"
    "sandbox s { grant a all; grant b r }",
    "service a { host x.test; port 1; operation r { GET / } }\n"
    "service b { host x.test; port 2; credential k { in header x-key }; operation r { GET / } }",
    "service a { host *.x.test; credential k { in header x-key }; operation r { GET / } }\n"
    "service b { host x.test; operation r { GET / } }",
    "service a { host *.x.test; credential k { in header x-key }; operation r { GET / } }\n"
    "service no { host admin.x.test; never all }\n"
    "sandbox s { grant a r }\n"
    "expect deny as s GET https://admin.x.test/ reason never\n"
    "expect deny as s GET https://admin.x.test:8443/ reason port_not_allowed\n"
    "expect allow as s GET https://a.x.test/",
    "service a { host x.test; operation r { GET / }\n expect deny get /\n expect deny TRACE / "
    "reason method_refused\n expect allow GET https://x.test\n"
    "expect deny GET https://x.test:444/ reason port_not_allowed\n"
    "expect deny GET http://x.test:443/ reason clear_not_allowed }",
};

static void these_policies_load(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        loads(good[i]);
}

static void wc_05_the_order_of_statements_never_matters(void **state) {
    (void)state;
    loads("service a { host *.allowed.test; operation r { GET / } }\n"
          "service b { host admin.allowed.test; never all }\n"
          "sandbox s { grant a all }\n"
          "expect deny as s GET https://admin.allowed.test/ reason never\n"
          "expect allow as s GET https://x.allowed.test/\n");
    loads("expect allow as s GET https://x.allowed.test/\n"
          "expect deny as s GET https://admin.allowed.test/ reason never\n"
          "sandbox s { grant a all }\n"
          "service b { never all; host admin.allowed.test }\n"
          "service a { operation r { GET / }; host *.allowed.test }\n");
}

/* ---- what does not ---- */

static const struct bad_case bad_cases[] = {
    /* words (WC-08) */
    {"servcie a { }", 1, 1, "'servcie' is no word of this file, did you mean 'service'?"},
    {S R "allowed_hsot x }", 3, 1, "'allowed_hsot' is no word of a service"},
    {S R "opreation x { GET / } }", 3, 1, "did you mean 'operation'?"},
    {"\"service\" a { }", 1, 1, "is no word of this file"},
    {S R "clear x }", 3, 7, "expected the end of the statement (a new line or ';'), not 'x'"},
    {S R "clear; clear }", 3, 8, "a second 'clear'"},
    {"service a b { host a.test; operation r { GET / } }", 1, 11, "expected '{', not 'b'"},
    {"service", 1, 8, "expected the name of a service, not the end of the file"},
    {"service { host a.test; operation r { GET / } }", 1, 9, "expected the name of a service"},
    {"sandbox", 1, 8, "expected the name of a sandbox"},
    {S "operation; " R "}", 2, 10, "expected the name of an operation"},
    {S R "credential\n}", 3, 11, "expected the name of a credential"},
    {"service \xc3\xa9 { }", 1, 9, "byte 0xc3"},
    {"service a/../b { host a.test; operation r { GET / } }", 1, 9, "is no name"},
    {"service a { host a.test; operation r { GET / }", 1, 47, "expected '}'"},
    {"service a { host a.test; operation r { GET / } } }", 1, 50, "closes no block"},
    /* hosts and ports */
    {"service a { host *; " R "}", 1, 18, "a star over everything"},
    {"service a { host **; " R "}", 1, 18, "a star over everything"},
    {"service a { host *; " R "}", 1, 18, "a star over everything"},
    {"service a { host *.com; " R "}", 1, 18, "com is open to anybody"},
    {"service a { host **.com; " R "}", 1, 18, "hosts of strangers"},
    {"service a { host b.test *.co.uk; " R "}", 1, 25, "'*.co.uk' covers hosts of strangers"},
    {"service a { host *.github.io; " R "}", 1, 18, "where that is meant, the line ends in 'wide'"},
    {"service a { host **.amazonaws.com; " R "}", 1, 18, "hosts of strangers"},
    {"service a { host *.github.io wide; host *.s3.amazonaws.com; " R "}", 1, 41, "strangers"},
    {"service a { host b.test wide; " R "}", 1, 25, "'wide' is for hosts with a star"},
    {"service a { host *.github.io wide b.test; " R "}", 1, 35, "expected the end"},
    {"service a { host *.github.io \"wide\"; " R "}", 1, 18, "strangers"},
    {"service a { host a.*.test; " R "}", 1, 18, "whole labels"},
    {"service a { host *test; " R "}", 1, 18, "whole labels"},
    {"service a { host b.test a..test; " R "}", 1, 25, "is no host"},
    {"service a { host a.test:443; " R "}", 1, 18, "the port goes into a line `port`"},
    {"service a { host https://a.test; " R "}", 1, 18, "without the scheme"},
    {S R "credential k { in bearer } }", 3, 19, "in header authorization scheme bearer"},
    {S "operation r { GET x } }", 2, 19, "a path begins with '/'"},
    {"service a { host; " R "}", 1, 17, "expected a host name"},
    {"service a { " R "}", 1, 9, "has no host"},
    {S "host A.test\n" R "}", 2, 6, "the host 'A.test' twice"},
    {S R "port 0 }", 3, 6, "expected a port of 1 to 65535, not '0'"},
    {S R "port 65536 }", 3, 6, "not '65536'"},
    {S R "port 44x }", 3, 6, "not '44x'"},
    {S R "port 0443 1 0443 }", 3, 13, "port 443 twice"},
    {S R "port }", 3, 6, "expected a port, not '}'"},
    {"service a { host 10.0.0.1; " R "}", 1, 18, "nothing can reach '10.0.0.1', a private"},
    {"service a { host 169.254.169.254; range 169.254.0.0/16; " R "}", 1, 18, "metadata"},
    /* operations */
    {S "}", 1, 9, "has no operation"},
    {S "operation r { } }", 2, 11, "an operation without a rule"},
    {S "operation r { GET } }", 2, 19, "expected a path"},
    {S "operation r { / } }", 2, 15, "expected a method"},
    {S "operation r { get / } }", 2, 15, "did you mean 'GET'?"},
    {S "operation r { GET, HEAD / } }", 2, 15, "did you mean 'GET'?"},
    {S "operation r { GTE / } }", 2, 15, "'GTE' is no registered method, did you mean 'GET'?"},
    {S "operation r { TRACE / } }", 2, 15, "TRACE cannot be granted"},
    {S "operation r { GET CONNECT / } }", 2, 19, "CONNECT cannot be granted"},
    {S "operation r { PRI / } }", 2, 15, "PRI cannot be granted"},
    {S "operation r { GET GET / } }", 2, 19, "names a method twice"},
    {S "operation r { * GET / } }", 2, 17, "names a method twice"},
    {S "operation r { GET /a* } }", 2, 19, "whole segments"},
    {S "operation r { GET /a/../b } }", 2, 19, "is no path pattern"},
    {S "operation r { GET /a?b } }", 2, 19, "query"},
    {S "operation r { GET /a /b } }", 2, 22, "expected the end of the statement"},
    {S "operation r { GET /{} } }", 2, 20, "no condition between the braces"},
    {S "operation r { GET /{id:str} } }", 2, 19, "nothing, or ':int'"},
    {S "operation r { GET /a{id} } }", 2, 19, "a template is a whole segment"},
    {S "operation r { GET /{a}b } }", 2, 19, "a template is a whole segment"},
    {S "operation r { GET HEAD /; GET / } }", 2, 27, "the same method and path as in line 2"},
    {S R "operation R { POST / } }", 3, 11, "a second operation 'R', the first is in line 2"},
    {S "operation all { GET / } }", 2, 11, "'all' means every operation"},
    {S "operation r anonymous { GET / } }", 2, 11, "this one has none"},
    {S "operation r anon { GET / } }", 2, 13, "expected '{', not 'anon'"},
    {S R "never { } }", 3, 1, "a 'never' without a rule"},
    {S R "never any }", 3, 7, "expected '{', not 'any'"},
    {S R "never all\nnever all }", 4, 1, "a second 'never all', the first is in line 3"},
    /* credentials */
    {S R "credential k { } }", 3, 12, "where the credential goes is missing"},
    {S R "credential k }", 3, 14, "expected '{'"},
    {S R "credential k { in heder x-key } }", 3, 19, "did you mean 'header'?"},
    {S R "credential k { in header x:y } }", 3, 26, "expected the name of a field"},
    {S R "credential k { in header host } }", 3, 26, "cannot stand in 'host'"},
    {S R "credential k { in header Proxy-Authorization } }", 3, 26, "cannot stand in"},
    {S R "credential k { in header X_Forwarded-For } }", 3, 26, "cannot stand in"},
    {S R "credential k { in header x-http-method-override } }", 3, 26, "cannot stand in"},
    {S R "credential k { in header range } }", 3, 26, "cannot stand in 'range'"},
    {S R "credential k { in header co_okie } }", 3, 26, "cannot stand in"},
    {S R "credential k { in header authorization scheme digest } }", 3, 12, "signs requests"},
    {S R "credential k { in basic usr } }", 3, 25, "did you mean 'user'?"},
    {S R "credential k { in header x-key; in basic user } }", 3, 33, "a second 'in'"},
    {S R "credential k { in header x-key }\ncredential j { in basic user } }", 4, 12,
     "a second credential without 'for', the first is in line 3"},
    {S R "credential k { in header x-key }; clear }", 3, 12, "cannot be 'clear'"},
    {S R "credential k { in header x-key }; accept any credential }", 3, 12,
     "cannot 'accept any credential'"},
    {"service a { host a.test; credential k { in header x-key }; never all }", 1, 9,
     "has no operation"},
    {S R "accept an }", 3, 8, "did you mean 'any'?"},
    {S R "accept cookie }", 3, 8, "did you mean 'cookies'?"},
    {S R "accept cookies; accept cookies }", 3, 17, "the same 'accept' twice"},
    /* ranges */
    {S R "range 10.0.0.1/8 }", 3, 7, "no bits set behind the prefix"},
    {S R "range 0.0.0.0/0 }", 3, 7, "too wide"},
    {S R "range ::/3 }", 3, 7, "too wide"},
    {S R "range 224.0.0.0/8 }", 3, 7, "never dialled"},
    {S R "range 010.0.0.1 }", 3, 7, "expected ADDRESS"},
    /* sandboxes */
    {"sandbox s { grant a }", 1, 21, "expected the name of an operation, or 'all'"},
    {"sandbox s { grant a all }", 1, 19, "there is no service 'a'"},
    {S R "}\nsandbox s { grant A all }", 4, 19, "there is no service 'A', did you mean 'a'?"},
    {S R "}\nsandbox s { grant a reed }", 4, 21, "has no operation 'reed'"},
    {S R "}\nsandbox s { grant a r r }", 4, 23, "'r' granted twice"},
    {S R "}\nsandbox s { grant a r; grant a r }", 4, 30, "a second grant of 'a'"},
    {S R "}\nsandbox s { grant a all\ngrant a all }", 5, 7, "a second grant of 'a'"},
    {"service n { host n.test; never all }\nsandbox s { grant n all }", 2, 19,
     "has no operation to grant"},
    {"sandbox s { allow x }", 1, 13, "'allow' is no word of a sandbox"},
    {"sandbox s { }\nsandbox S { }", 2, 9, "a second sandbox 'S', the first is in line 1"},
    /* services with each other */
    {S R "}\nservice A { host b.test; " R "}", 4, 9,
     "a second service 'A', the first is in line 1"},
    {S R "}\nservice b { host a.test; credential k { in header x-key }; " R "}", 4, 18,
     "services 'b' and 'a' (line 1) share this host with different credentials"},
    {"service a { host *.x.test; " R "}\nservice b { host y.x.test; accept cookies; " R "}", 3, 18,
     "accept different things"},
    {S R "}\nservice b { host a.test; range 10.0.0.0/8; " R "}", 4, 18, "different ranges"},
    {S R "credential k { in header x-key } }\n"
         "service b { host a.test; credential k { in basic user }; " R "}",
     4, 18, "different places"},
    {S R "credential k { in header x-key } }\n"
         "service b { host b.test; credential K { in header x-key }; " R "}",
     4, 37, "differs only in case from the one in line 3"},
    /* expectations */
    {S R "expect maybe GET / }", 3, 8, "expected 'allow' or 'deny'"},
    {S R "expect allow GET }", 3, 18, "expected a path or URL"},
    {S R "expect allow with our GET / }", 3, 19, "did you mean 'ours'?"},
    {S R "expect deny GET / reason nevre }", 3, 26, "'nevre' is no reason, did you mean 'never'?"},
    {S R "expect allow GET / reason never }", 3, 27, "a reason is for 'deny'"},
    {S R "expect allow as nobody GET / }", 3, 17, "there is no sandbox 'nobody'"},
    {S R "expect allow POST / }", 3, 1,
     "expected allow, but this is refused: operation_not_allowed"},
    {S R "expect deny GET / }", 3, 1, "expected deny, but this is allowed by 'r' at policy:"},
    {S R "expect deny POST / reason never }", 3, 1,
     "expected the reason never, but it is operation_not_allowed"},
    {S R "expect allow with ours GET / }", 3, 28, "there is no credential at this service"},
    {S R "expect deny GET /a/../b }", 3, 17, "GET /a/../b: "},
    {S R "expect deny GET ftp://a.test/ }", 3, 17, "a URL begins with"},
    {S R "expect deny GET https://a.test?x }", 3, 17, "the path is missing"},
    {S R "expect deny GET https://u@a.test/ }", 3, 17, "https://u@a.test/: "},
    {"service a { host *.a.test; " R "expect allow GET / }", 2, 18, "write a whole URL"},
    {"expect allow GET https://a.test/", 1, 14, "expected 'as'"},
    {"sandbox s { }\nexpect allow as s GET /", 2, 23, "a URL begins with"},
};

static void wc_04_wc_08_xs_05_these_policies_do_not_load_and_say_where_and_why(void **state) {
    (void)state;
    refuse_all(bad_cases, sizeof bad_cases / sizeof bad_cases[0]);
}

static void wc_04_stars_over_public_suffixes_load_where_they_are_admitted(void **state) {
    (void)state;
    struct view text;
    struct position at;
    struct policy *p = load(
        "service a { host a.example.com *.example.com; operation r { GET / }\n"
        "host *.github.io b.example.com wide; host **.internal wide; host *.example.org wide }\n"
        "service none { host **.com *.co.uk; never all }\n"
        "service wide { host wide; operation r { GET / } }\n");
    static const struct {
        const char *text;
        uint32_t line, column;
    } wide[] = {{"*.github.io", 2, 6}, {"**.internal", 2, 43}};
    for (size_t i = 0; i < 2; i++) {
        assert_true(policy_wide_host(p, i, &text, &at));
        assert_true(view_equal(text, view_str(wide[i].text)));
        assert_int_equal(at.line, wide[i].line);
        assert_int_equal(at.column, wide[i].column);
    }
    assert_false(policy_wide_host(p, 2, &text, &at));
    policy_free(p);
}

static void all_errors_are_reported_in_one_run_in_order(void **state) {
    (void)state;
    static const char *const text = "service a {\n"
                                    "    hots a.test\n"
                                    "    port 99999\n"
                                    "    operation r { get /; GET /x* }\n"
                                    "}\n"
                                    "service b { host b.test; operation r { GET / } }\n"
                                    "sandbox s { grant c all; grant b rr }\n"
                                    "expect deny as t GET https://b.test/\n";
    static const uint32_t places[][2] = {{2, 5},  {3, 10}, {4, 19}, {4, 30},
                                         {7, 19}, {7, 34}, {8, 16}};
    struct policy *p;
    assert_int_equal(policy_load(view_str(text), "policy", &p, &errors), ERR_BAD);
    for (size_t i = 0; i < sizeof places / sizeof places[0] && i < errors.n; i++)
        if (errors.at[i].at.line != places[i][0] || errors.at[i].at.column != places[i][1])
            fail_with_errors(text);
    assert_int_equal(errors.total, sizeof places / sizeof places[0]);
}

static void any_text_cut_short_loads_or_has_errors(void **state) {
    (void)state;
    for (size_t n = 0; n <= strlen(tutorial); n++) {
        struct policy *p = NULL;
        int err = policy_load(view_of(tutorial, n), "policy", &p, &errors);
        assert_true(err == 0 ? p && errors.total == 0 : !p && errors.total > 0);
        policy_free(p);
    }
}

static void a_policy_keeps_nothing_of_the_text_it_was_given(void **state) {
    (void)state;
    char *copy = strdup(tutorial);
    struct policy *p;
    assert_int_equal(policy_load(view_str(copy), "policy", &p, &errors), 0);
    memset(copy, 'x', strlen(copy));
    free(copy);
    assert_true(policy_has_sandbox(p, VIEW("worker-2")));
    policy_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tutorial_loads_and_can_be_asked),
        cmocka_unit_test(wc_03_an_empty_policy_loads_and_has_nobody),
        cmocka_unit_test(these_policies_load),
        cmocka_unit_test(wc_05_the_order_of_statements_never_matters),
        cmocka_unit_test(wc_04_wc_08_xs_05_these_policies_do_not_load_and_say_where_and_why),
        cmocka_unit_test(wc_04_stars_over_public_suffixes_load_where_they_are_admitted),
        cmocka_unit_test(all_errors_are_reported_in_one_run_in_order),
        cmocka_unit_test(any_text_cut_short_loads_or_has_errors),
        cmocka_unit_test(a_policy_keeps_nothing_of_the_text_it_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

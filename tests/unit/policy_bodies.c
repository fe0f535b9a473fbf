/* Rules of a policy about bodies, and what is certain of these. */
#include "tests/unit/policy_texts.h"

#include <stdio.h>

static struct request_facts post(const struct target *t, const struct body_facts *body) {
    struct request_facts f = facts_of("POST", t);
    f.body = body;
    return f;
}

static enum reason judge_body(const struct policy *p, const char *path,
                              const struct body_facts *body) {
    struct target t = {.path = view_str(path)};
    struct request_facts f = post(&t, body);
    return policy_judge(p, &f).reason;
}

static struct body_value value(const struct policy *p, const char *pointer, enum body_type type,
                               const char *text) {
    for (uint16_t i = 0; policy_body_pointer(p, i).n > 0; i++)
        if (view_equal(policy_body_pointer(p, i), view_str(pointer)))
            return (struct body_value){.pointer = i, .type = type, .value = view_str(text)};
    fail_msg("nobody asks for %s", pointer);
    return (struct body_value){0};
}

static void ap_04_sf_01_sf_07_a_body_is_judged_by_what_is_certain_of_it(void **state) {
    (void)state;
    struct policy *p =
        load(S "operation r { POST /v1 { body /model in [a, b, 5]; body /stream is "
               "boolean; no body /tools/*/url } }\n"
               "never { POST /n { body /from matches *@evil.test } } \n"
               "operation n { POST /n }\n"
               "operation q { POST /q { body at most 10 } } }\nsandbox s { grant a all }");
    struct {
        struct body_value values[3];
        size_t n;
        enum reason reason;
    } cases[] = {
        {{value(p, "/model", BODY_STRING, "a"), value(p, "/stream", BODY_BOOLEAN, "true")},
         2,
         REASON_ALLOWED},
        {{value(p, "/model", BODY_NUMBER, "5.0"), value(p, "/stream", BODY_TEXT, "true")},
         2,
         REASON_ALLOWED},
        {{value(p, "/model", BODY_STRING, "5"), value(p, "/stream", BODY_BOOLEAN, "true")},
         2,
         REASON_OPERATION_NOT_ALLOWED},
        {{value(p, "/model", BODY_STRING, "c"), value(p, "/stream", BODY_BOOLEAN, "true")},
         2,
         REASON_OPERATION_NOT_ALLOWED},
        {{value(p, "/model", BODY_STRING, "a"), value(p, "/stream", BODY_STRING, "true")},
         2,
         REASON_OPERATION_NOT_ALLOWED},
        {{value(p, "/model", BODY_STRING, "a")}, 1, REASON_OPERATION_NOT_ALLOWED},
        {{value(p, "/model", BODY_STRING, "a"), value(p, "/stream", BODY_BOOLEAN, "true"),
          value(p, "/tools/*/url", BODY_STRING, "https://evil.test/")},
         3,
         REASON_OPERATION_NOT_ALLOWED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct body_facts body = {.size = 10, .values = cases[i].values, .n_values = cases[i].n};
        if (judge_body(p, "/v1", &body) != cases[i].reason)
            fail_msg("case %zu", i);
    }
    /* What only a careless reader takes for the member is there, and is not. */
    struct body_facts body = {.size = 10, .values = cases[0].values, .n_values = 2};
    cases[0].values[0].alike = true;
    assert_int_equal(judge_body(p, "/v1", &body), REASON_OPERATION_NOT_ALLOWED);
    cases[0].values[0].alike = false;
    body.unclear = true;
    assert_int_equal(judge_body(p, "/v1", &body), REASON_OPERATION_NOT_ALLOWED);
    assert_int_equal(judge_body(p, "/v1", NULL), REASON_OPERATION_NOT_ALLOWED);
    /* never lines read it the other way round */
    assert_int_equal(judge_body(p, "/n", NULL), REASON_NEVER);
    assert_int_equal(judge_body(p, "/n", &body), REASON_NEVER);
    struct body_value from = value(p, "/from", BODY_STRING, "me@good.test");
    struct body_facts mail = {.size = 10, .values = &from, .n_values = 1};
    assert_int_equal(judge_body(p, "/n", &mail), REASON_ALLOWED);
    from.value = VIEW("me@EVIL.test");
    assert_int_equal(judge_body(p, "/n", &mail), REASON_NEVER);
    from = value(p, "/from", BODY_ARRAY, "");
    assert_int_equal(judge_body(p, "/n", &mail), REASON_NEVER);
    assert_int_equal(judge_body(p, "/q", NULL), REASON_ALLOWED);
    policy_free(p);
}

static void numbers_are_one_if_all_of_their_digits_are(void **state) {
    static const struct {
        const char *verdict, *path, *number;
    } cases[] = {
        {"allow", "/a", "9007199254740992"},
        {"allow", "/a", "9.007199254740992e+15"},
        {"deny", "/a", "9007199254740993"}, /* the same to whoever reads a double */
        {"deny", "/never", "9007199254740993"},
        {"allow", "/never", "9007199254740999"},
        {"allow", "/b", "1.0"},
        {"allow", "/b", "10e-1"},
        {"deny", "/b", "1.00000000000000000001"},
        {"deny", "/b", "-1"},
        {"deny", "/b", "10"},
        {"deny", "/b", "1e99999999999999999999"},
        {"allow", "/c", "-5E-2"},
        {"deny", "/c", "0.05"},
        {"allow", "/d", "-0.0e7"},
        {"allow", "/d", "12e2"},
        {"deny", "/d", "12"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 S "operation r { POST /a { body /n is 9007199254740992 }\n"
                   "POST /b { body /n is 1 }; POST /c { body /n is -0.05 }\n"
                   "POST /d { body /n in [0, 1200] }; POST /never }\n"
                   "never { POST /never { body /n is 9007199254740992 } }\n"
                   "expect %s POST %s type application/json body '{\"n\":%s}' }\n",
                 cases[i].verdict, cases[i].path, cases[i].number);
        loads(text);
    }
}

static void what_must_be_known_of_a_body_is_said(void **state) {
    (void)state;
    struct policy *p = load(S "operation r { POST /v1 { body /model is a; body /x } }\n"
                              "operation q { POST /q { body at most 10 } }\n"
                              "operation g { POST /g graphql query [viewer] }\n"
                              "operation not-granted { POST /z { body /z } }\n"
                              "never { POST /n/** { body /u } }\noperation n { POST /n/** } }\n"
                              "sandbox s { grant a r q g n }");
    struct body_needs needs;
    struct target v1 = {.path = VIEW("/v1")}, q = {.path = VIEW("/q")}, g = {.path = VIEW("/g")};
    struct target z = {.path = VIEW("/z")}, n = {.path = VIEW("/n/x")},
                  other = {.path = VIEW("/o")};
    struct request_facts f = post(&v1, NULL);
    assert_true(policy_body_needs(p, &f, &needs));
    assert_int_equal(needs.n_pointers, 2);
    assert_true(view_equal(policy_body_pointer(p, needs.pointers[1]), VIEW("/x")));
    assert_true(needs.limit == UINT64_MAX && !needs.graphql && !needs.rpc);
    f.target = &q;
    assert_false(policy_body_needs(p, &f, &needs));
    f.length_known = false;
    assert_true(policy_body_needs(p, &f, &needs));
    assert_true(needs.limit == 10 && needs.n_pointers == 0);
    f.target = &g;
    assert_true(policy_body_needs(p, &f, &needs) && needs.graphql);
    f.target = &n;
    assert_true(policy_body_needs(p, &f, &needs) && needs.n_pointers == 1);
    f.target = &z;
    assert_false(policy_body_needs(p, &f, &needs));
    f.target = &other;
    assert_false(policy_body_needs(p, &f, &needs));
    policy_free(p);
}

static void what_is_settled_by_the_head_is_judged_as_without_a_body(void **state) {
    (void)state;
    struct policy *p = load(S "operation r { POST /v1 { body /model is a }; POST /o }\n"
                              "operation not-granted { POST /z { body /z } } }\n"
                              "sandbox s { grant a r }");
    static const struct {
        const char *path;
        enum reason reason;
    } cases[] = {
        {"/o", REASON_ALLOWED},
        {"/nowhere", REASON_OPERATION_NOT_ALLOWED},
        /* In favour of it, its line would hold, and only the grant be missing. */
        {"/z", REASON_OPERATION_NOT_ALLOWED},
    };
    struct body_needs needs;
    struct verdict v;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct target t = {.path = view_str(cases[i].path)};
        struct request_facts f = post(&t, NULL);
        assert_true(policy_judge_head(p, &f, &v, &needs));
        assert_int_equal(v.reason, cases[i].reason);
        assert_int_equal(policy_judge(p, &f).reason, cases[i].reason);
        f.sandbox = VIEW("nobody");
        assert_true(policy_judge_head(p, &f, &v, &needs));
        assert_int_equal(v.reason, REASON_UNKNOWN_SANDBOX);
    }
    struct target t = {.path = VIEW("/v1")};
    struct request_facts f = post(&t, NULL);
    assert_false(policy_judge_head(p, &f, &v, &needs));
    assert_int_equal(needs.n_pointers, 1);
    policy_free(p);
}

static void a_limit_of_bodies_judges_those_of_no_said_length_once_they_are_known(void **state) {
    (void)state;
    struct policy *p =
        load(S "limit body 1K\noperation r { POST /v1; POST /q { body at most 2K } }\n"
               "operation c { POST /c { body /n } } }\nsandbox s { grant a all }");
    struct target v1 = {.path = VIEW("/v1")}, q = {.path = VIEW("/q")}, c = {.path = VIEW("/c")};
    struct body_facts body = {.size = 1024};
    struct body_needs needs;
    struct request_facts f = post(&v1, NULL);
    f.length = 1024;
    assert_false(policy_body_needs(p, &f, &needs));
    assert_true(policy_judge(p, &f).allow);
    f.length = 1025;
    assert_int_equal(policy_judge(p, &f).reason, REASON_BODY_TOO_LARGE);
    f.length_known = false;
    f.length = 0;
    assert_true(policy_body_needs(p, &f, &needs));
    assert_true(needs.limit == 1024 && needs.n_pointers == 0);
    /* Whoever does not ask for it does not know. */
    assert_int_equal(policy_judge(p, &f).reason, REASON_BODY_TOO_LARGE);
    f.body = &body;
    assert_false(policy_body_needs(p, &f, &needs));
    assert_true(policy_judge(p, &f).allow);
    body.size = 1025;
    assert_int_equal(policy_judge(p, &f).reason, REASON_BODY_TOO_LARGE);
    body.size = 10;
    body.unclear = true;
    assert_int_equal(policy_judge(p, &f).reason, REASON_BODY_TOO_LARGE);
    f.body = NULL;
    f.target = &q;
    assert_true(policy_body_needs(p, &f, &needs) && needs.limit == 2048);
    f.target = &c;
    assert_true(policy_body_needs(p, &f, &needs) && needs.limit == UINT64_MAX);
    policy_free(p);
}

static void ap_01_ap_03_protocols_are_judged_by_every_call(void **state) {
    (void)state;
    struct policy *p = load(S "operation g { POST /g graphql query [viewer, node] }\n"
                              "operation m { POST /m graphql mutation }\n"
                              "operation j { POST /j jsonrpc [ping, tools/list] }\n"
                              "operation c { POST /c mcp tools/call [search] }\n"
                              "operation l { POST /c mcp tools/list }\n"
                              "operation d { POST /d }\nnever { POST /d jsonrpc [drop] } }\n"
                              "sandbox s { grant a all }");
    struct view viewer[] = {VIEW("viewer")}, both[] = {VIEW("viewer"), VIEW("secrets")};
    struct body_facts b = {.graphql = {true, GRAPHQL_QUERY, viewer, 1}};
    assert_int_equal(judge_body(p, "/g", &b), REASON_ALLOWED);
    assert_int_equal(judge_body(p, "/m", &b), REASON_OPERATION_NOT_ALLOWED);
    b.graphql = (struct graphql_facts){true, GRAPHQL_QUERY, both, 2};
    assert_int_equal(judge_body(p, "/g", &b), REASON_OPERATION_NOT_ALLOWED);
    b.graphql = (struct graphql_facts){true, GRAPHQL_MUTATION, viewer, 1};
    assert_int_equal(judge_body(p, "/g", &b), REASON_OPERATION_NOT_ALLOWED);
    b.graphql.known = false;
    assert_int_equal(judge_body(p, "/g", &b), REASON_OPERATION_NOT_ALLOWED);
    static const struct rpc_call ping[] = {{{(const uint8_t *)"ping", 4}, {NULL, 0}}};
    static const struct rpc_call batch[] = {{{(const uint8_t *)"ping", 4}, {NULL, 0}},
                                            {{(const uint8_t *)"drop", 4}, {NULL, 0}}};
    static const struct rpc_call tools[] = {
        {{(const uint8_t *)"tools/call", 10}, {(const uint8_t *)"search", 6}},
        {{(const uint8_t *)"tools/call", 10}, {(const uint8_t *)"delete", 6}}};
    b.rpc = (struct rpc_facts){true, false, ping, 1};
    assert_int_equal(judge_body(p, "/j", &b), REASON_ALLOWED);
    assert_int_equal(judge_body(p, "/d", &b), REASON_ALLOWED);
    b.rpc = (struct rpc_facts){true, true, batch, 2};
    assert_int_equal(judge_body(p, "/j", &b), REASON_OPERATION_NOT_ALLOWED);
    assert_int_equal(judge_body(p, "/d", &b), REASON_NEVER);
    b.rpc = (struct rpc_facts){true, true, NULL, 0};
    assert_int_equal(judge_body(p, "/j", &b), REASON_OPERATION_NOT_ALLOWED);
    b.rpc = (struct rpc_facts){true, false, tools, 1};
    assert_int_equal(judge_body(p, "/c", &b), REASON_ALLOWED);
    b.rpc = (struct rpc_facts){true, false, tools + 1, 1};
    assert_int_equal(judge_body(p, "/c", &b), REASON_OPERATION_NOT_ALLOWED);
    b.rpc = (struct rpc_facts){true, true, tools, 1}; /* MCP has no batches */
    assert_int_equal(judge_body(p, "/c", &b), REASON_OPERATION_NOT_ALLOWED);
    policy_free(p);
}

static void a_credential_can_stand_in_a_body(void **state) {
    (void)state;
    loads(S "credential k { in json /auth/key; for j }\ncredential l { in form key; for f g }\n"
            "operation j { POST /j }\noperation f { POST /f }\n"
            "operation g anonymous { POST /g { no body /a } }\n"
            "expect allow POST /j\nexpect allow POST /j type application/json\n"
            "expect deny  POST /j type text/plain reason credential_missing\n"
            "expect deny  with none POST /j reason credential_missing\n"
            "expect deny  with foreign POST /j reason foreign_credential\n"
            "expect deny  with none POST /j type application/json body '{\"auth\":{\"key\":\"x\"}}'"
            " reason foreign_credential\n"
            "expect deny  with none POST /j type application/json body '{\"auth\":{\"key\":null}}'"
            " reason credential_missing\n"
            "expect allow POST /f\n"
            "expect deny  POST /f type application/json reason credential_missing\n"
            "expect deny  with foreign POST /f reason foreign_credential\n"
            "expect allow with none POST /g type application/x-www-form-urlencoded body 'b=1'\n"
            "expect deny  with none POST /g type application/x-www-form-urlencoded body 'key=x'"
            " reason foreign_credential\n"
            "expect deny  with none POST /g type application/x-www-form-urlencoded body 'b=%zz'"
            " reason operation_not_allowed }");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ap_04_sf_01_sf_07_a_body_is_judged_by_what_is_certain_of_it),
        cmocka_unit_test(numbers_are_one_if_all_of_their_digits_are),
        cmocka_unit_test(what_must_be_known_of_a_body_is_said),
        cmocka_unit_test(what_is_settled_by_the_head_is_judged_as_without_a_body),
        cmocka_unit_test(a_limit_of_bodies_judges_those_of_no_said_length_once_they_are_known),
        cmocka_unit_test(ap_01_ap_03_protocols_are_judged_by_every_call),
        cmocka_unit_test(a_credential_can_stand_in_a_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

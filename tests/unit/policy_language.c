#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/errors.h"
#include "policy/policy.h"

#include <stdio.h>
#include <string.h>

static struct policy_errors errors;

static void fail_with_errors(const char *text) {
    struct buf shown;
    buf_init(&shown, 65536);
    for (size_t i = 0; i < errors.n; i++)
        errors_show(&errors.at[i], view_str(text), &shown);
    fail_msg("%s\n%.*s", text, VIEW_ARG(buf_view(&shown)));
}

static struct policy *load(const char *text) {
    struct policy *p = NULL;
    if (policy_load(view_str(text), "policy", &p, &errors) != 0)
        fail_with_errors(text);
    return p;
}

static void loads(const char *text) {
    policy_free(load(text));
}

#define R0 "operation r { GET / }"
#define S "service a { host a.test\n"
#define K "credential k { in header x-key }\n"

/* ---- what holds, said by expectations ---- */

static void pn_10_templates_take_one_segment_and_int_digits_only(void **state) {
    (void)state;
    loads(S "operation r { GET /repos/{owner}/{repo}/issues/{n:int}; GET /x/{id} }\n"
            "expect allow GET /repos/me/r/issues/42\n"
            "expect deny  GET /repos/me/r/issues/4x\n"
            "expect deny  GET /repos/me/r/issues/42/\n"
            "expect deny  GET /repos/me/issues/42\n"
            "expect deny  GET /repos/me/r/s/issues/42\n"
            "expect allow GET /x/%7Bid%7D\n"
            "expect deny  GET /x }\n");
    /* A quoted path is what it says. */
    loads(S "operation r { GET \"/x/{id}\" }\n"
            "expect allow GET /x/{id}\nexpect deny GET /x/7 }\n");
    /* In never lines the digits are read as widely as names. */
    loads(S "operation r { GET /** }\nnever { GET /x/{n:int} }\n"
            "expect deny GET /x/7 reason never\nexpect deny GET /x/7.json reason never\n"
            "expect deny GET /x/%37/ reason never\nexpect allow GET /x/a7 }\n");
}

static void pn_08_all_occurrences_of_a_parameter_must_match(void **state) {
    (void)state;
    loads(S "operation r { GET /x { query mode is read } }\n"
            "operation s { GET /y { query page is number; query only } }\n"
            "operation t { GET /z { no query debug } }\n"
            "operation u { GET /g { query file matches *.txt } }\n"
            "operation w { GET /f { query filter[owner] is me } }\n"
            "operation v { GET /i { query sort in [name, \"last update\",\n date] } }\n"
            "expect allow GET /x?mode=read\n"
            "expect allow GET /x?mode=re%61d&other=1\n"
            "expect allow GET /x?mode=read&mode=read\n"
            "expect deny  GET /x\n"
            "expect deny  GET /x?mode\n"
            "expect deny  GET /x?mode=read&mode=write\n"
            "expect deny  GET /x?mode=write&mode=read\n"
            "expect deny  GET \"/x?mode=read;mode=write\"\n"
            "expect deny  GET \"/x?a=1;mode=write&mode=read\"\n"
            "expect deny  GET /x?mode=read&mode[]=write\n"
            "expect deny  GET /x?mode=read&mode[0]=write\n"
            "expect deny  GET /x?mode=read&mode%5Bx%5D=write\n"
            "expect allow GET /x?mode=read&modes[0]=write\n"
            "expect deny  GET /x?mode=read&MODE=write\n"
            "expect deny  GET /x?mode=read&mo%64e=write\n"
            "expect deny  GET /x?MODE=read\n"
            "expect allow GET /y?page=7\n"
            "expect deny  GET /y?page=07\n"
            "expect deny  GET /y?page=7&extra=1\n"
            "expect allow GET /z\n"
            "expect allow GET /z?x=debug\n"
            "expect deny  GET /z?debug=\n"
            "expect deny  GET /z?Debug=1\n"
            "expect deny  GET \"/z?x=1;debug=1\"\n"
            "expect allow GET /g?file=a%20b.txt\n"
            "expect deny  GET /g?file=a.txt.exe\n"
            "expect allow GET /f?filter[owner]=me&filter[kind]=x\n"
            "expect deny  GET /f?filter[owner]=me&filter=x\n"
            "expect deny  GET /f?filter[owner]=me&filter[owner][x]=y\n"
            "expect allow GET /i?sort=last+update\n"
            "expect deny  GET /i?sort=size }\n");
    loads(S "operation r { GET /** }\nnever { GET /x { query mode is write } }\n"
            "expect allow GET /x?mode=read\n"
            "expect deny  GET /x?mode=read&mode=write reason never\n"
            "expect deny  GET /x?MODE=Write reason never\n"
            "expect deny  GET \"/x?a=1;mode=write\" reason never\n"
            "expect deny  GET /x?mode[]=write reason never\n"
            "expect deny  GET /x?mode=write%20 reason never\n"
            "expect deny  GET /x?mode=+write%0A reason never\n"
            "expect allow GET /x?mode=wr+ite\n"
            "expect deny  GET /x?mode[0]=write reason never }\n");
    loads(S "operation r { GET /** }\nnever { GET /x { query mode matches w*e } }\n"
            "expect allow GET /x?mode=read\n"
            "expect deny  GET /x?mode=write%20 reason never }\n");
}

static void sf_01_ap_01_ap_03_expectations_read_bodies_as_inspect_does(void **state) {
    (void)state;
    loads(S "operation r { POST /c { body /model in [a, b]; no body /tools/*/url } }\n"
            "operation g { POST /g graphql query [x]; GET /g graphql query [x] }\n"
            "operation m { POST /m mcp tools/call [t] { body /params/arguments/n is number } }\n"
            "never { POST /c { body /stop } }\n"
            "never { POST /f { body /to is evil } }\noperation f { POST /f }\n"
            "expect deny  POST /f type application/json body '{\"to\":[\"evil\"]}' reason never\n"
            "expect deny  POST /f type application/x-www-form-urlencoded body 'to[]=evil' reason "
            "never\n"
            "expect allow POST /f type application/x-www-form-urlencoded body 'to=me'\n"
            "expect allow POST /c type application/json body '{\"model\":\"a\"}'\n"
            "expect deny  POST /c type application/json body '{\"model\":\"c\"}'\n"
            "expect deny  POST /c type text/plain body '{\"model\":\"a\"}' reason never\n"
            "expect deny  POST /c type application/json body "
            "'{\"model\":\"a\",\"tools\":[{\"url\":1}]}'\n"
            "expect deny  POST /c type application/json body '{\"model\":\"a\",\"STOP\":1}' reason "
            "never\n"
            "expect allow POST /c type application/x-www-form-urlencoded body 'model=b'\n"
            "expect deny  POST /c type application/x-www-form-urlencoded body 'model=b;a=1' reason "
            "never\n"
            "expect allow POST /g type application/json body '{\"query\":\"{y:x}\"}'\n"
            "expect deny  POST /g type application/json body '{\"query\":\"mutation{x}\"}'\n"
            "expect deny  POST /g?query=x type application/json body '{\"query\":\"{x}\"}'\n"
            "expect allow GET /g?query=%7Bx%7D\n"
            "expect deny  GET /g?query=%7By%7D\n"
            "expect deny  GET /g\n"
            "expect allow POST /m type application/json body '{\"jsonrpc\":\"2.0\",\"method\":"
            "\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{\"n\":1}}}'\n"
            "expect deny  POST /m type application/json body '{\"jsonrpc\":\"2.0\",\"method\":"
            "\"tools/call\",\"params\":{\"name\":\"u\",\"arguments\":{\"n\":1}}}' }\n");
}

static void sf_04_fields_and_types_are_conditions(void **state) {
    (void)state;
    loads(S "accept destinations\n"
            "operation r { PUT /x { no header x-amz-copy-source; content-type text/plain } }\n"
            "operation s { GET /y { header accept in [text/plain, application/json] } }\n"
            "operation t { POST /s { body at most 4 }; POST /b { body /x } }\n"
            "expect allow POST /s body '1234'\n"
            "expect deny  POST /s body '12345'\n"
            "expect deny  POST /b\n"
            "expect allow PUT /x type text/plain\n"
            "expect allow PUT /x type 'Text/Plain; charset=utf-8'\n"
            "expect deny  PUT /x\n"
            "expect deny  PUT /x type application/json\n"
            "expect deny  PUT /x type text/plain header 'content-type: text/html'\n"
            "expect deny  PUT /x type text/plain header 'x-amz-copy-source: /b/y'\n"
            "expect deny  PUT /x type text/plain header 'X_Amz_Copy_Source: /b/y'\n"
            "expect allow GET /y header 'accept: text/plain'\n"
            "expect deny  GET /y header 'accept: text/plain' header 'accept: text/html'\n"
            "expect deny  GET /y }\n");
    loads(S "operation r { * /** }\nnever { * /** { header x-callback matches 'https://*' } }\n"
            "expect allow GET /y header 'x-callback: none'\n"
            "expect deny  GET /y header 'x-callback: none' header 'X-Callback: https://e.test/' "
            "reason never\n"
            "expect deny  GET /y header 'x_callback: none, HTTPS://e.test/' reason never }\n");
}

static void gf_01_gf_03_git_is_judged_by_repository_on_both_steps(void **state) {
    (void)state;
    loads(S "operation fetch { git fetch acme/widgets acme/{repo} }\n"
            "operation push { git push acme/widgets }\n"
            "operation any { git case-folded fetch Big/Repo }\n"
            "never { git push evil/** }\n"
            "expect allow GET  /acme/widgets/info/refs?service=git-upload-pack\n"
            "expect allow GET  /acme/widgets.git/info/refs?service=git-upload-pack\n"
            "expect allow POST /acme/widgets.git/git-upload-pack\n"
            "expect allow GET  /acme/other.git/info/refs?service=git-upload-pack\n"
            "expect deny  GET  /acme/other/info/refs?service=git-receive-pack\n"
            "expect deny  POST /acme/other/git-receive-pack\n"
            "expect allow GET  /acme/widgets/info/refs?service=git-receive-pack\n"
            "expect allow GET  /acme/widgets/info/refs?service=git%2Dreceive%2Dpack\n"
            "expect allow POST /acme/widgets/git-receive-pack\n"
            "expect deny  POST /attacker/x/git-receive-pack\n"
            "expect deny  GET  "
            "/acme/widgets/info/refs?service=git-upload-pack&service=git-upload-pack\n"
            "expect deny  GET  "
            "/acme/widgets/info/refs?service=git-upload-pack&service=git-receive-pack\n"
            "expect deny  GET  /acme/widgets/info/refs\n"
            "expect deny  GET  /acme/widgets/HEAD\n"
            "expect deny  GET  /acme/widgets/objects/info/packs\n"
            "expect deny  GET  /ACME/widgets/info/refs?service=git-upload-pack\n"
            "expect allow GET  /bIG/rEPO.git/info/refs?service=git-upload-pack\n"
            "expect deny  POST /evil/x.git/git-receive-pack reason never }\n"
            "sandbox s { grant a read }\n"
            "expect allow as s POST https://a.test/acme/widgets/git-upload-pack\n"
            "expect deny  as s POST https://a.test/acme/widgets/git-receive-pack reason "
            "operation_not_granted\n");
}

static void pn_03_an_encoded_slash_stays_in_its_segment_where_it_is_allowed(void **state) {
    (void)state;
    loads(S "path allow encoded-slash\noperation r { GET /@scope%2Fpkg; GET /p/{id} }\n"
            "never { * /p/secret/** }\n"
            "expect allow GET /@scope%2fpkg\n"
            "expect allow GET /p/group%2Fproject\n"
            "expect deny  GET /@scope/pkg\n"
            "expect deny  GET /p/a/b\n"
            "expect deny  GET /p/secret%2Fx reason never }\n");
    static const char *const refused[] = {"/p/a%2F..%2Fb", "/p/%2Fa", "/p/a%2F%2Fb", "/p/a%5Cb"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[256];
        struct policy *p;
        snprintf(text, sizeof text,
                 S "path allow encoded-slash\noperation r { GET /** }\n"
                   "expect deny GET %s }",
                 refused[i]);
        assert_int_equal(policy_load(view_str(text), "policy", &p, &errors), ERR_BAD);
        assert_non_null(strstr(errors.at[0].text, "path ")); /* no request at all */
    }
}

static void pn_05_parameters_are_refused_unless_the_service_allows_them(void **state) {
    (void)state;
    loads(S "operation r { GET /** }\nnever { * /p/secret/** }\n"
            "expect allow GET /a\n"
            "expect deny  GET \"/a;x=1\" reason operation_not_allowed\n"
            "expect deny  GET \"/a;x=1/b\" reason operation_not_allowed\n"
            "expect deny  GET \"/a;/b\" reason operation_not_allowed\n"
            "expect deny  GET /a%3bx=1 reason operation_not_allowed\n"
            "expect deny  GET \"/p/secret;x=1/y\" reason never }\n");
    loads(
        S
        "path allow parameters\noperation r { GET /a; GET /b/*; GET \"/c;v=1\"; GET /n/{n:int} }\n"
        "never { * /b/secret }\n"
        "expect allow GET \"/b/x;y=1\"\n"
        "expect allow GET /b/x%3By=1\n"
        "expect allow GET \"/c;v=1\"\n"
        "expect deny  GET \"/a;x=1\" reason operation_not_allowed\n"
        "expect deny  GET \"/c;v=2\" reason operation_not_allowed\n"
        "expect deny  GET \"/n/7;v=2\" reason operation_not_allowed\n"
        "expect deny  GET \"/b/secret;y=1\" reason never }\n");
}

static void the_most_specific_rule_picks_the_credential(void **state) {
    (void)state;
    /* `with ours` puts the credential of the operation into its place. */
    loads(S "credential wide { in header x-wide }\n"
            "credential fine { in header x-fine; for one two }\n"
            "operation all-of-it { GET /v1/** }\n"
            "operation one { GET /v1/items/{id} }\n"
            "operation two { GET /v1/** { query fine } }\n"
            "expect allow GET /v1/items/7\n"
            "expect allow GET /v1/other\n"
            "expect allow GET /v1/other?fine=1\n"
            "expect deny  with none GET /v1/items/7 reason credential_missing\n"
            "}\n"
            "sandbox some { grant a all-of-it }\n"
            "sandbox both { grant a all }\n"
            "expect allow as some GET https://a.test/v1/items/7\n");
    struct policy *p = load(S "credential wide { in header x-wide }\n"
                              "credential fine { in header x-fine; for one }\n"
                              "operation all-of-it { GET /v1/** }\n"
                              "operation one { GET /v1/items/{id} } }\n"
                              "sandbox some { grant a all-of-it }\nsandbox both { grant a all }\n");
    struct authority a;
    assert_int_equal(authority_parse(VIEW("a.test"), 443, &a, NULL), 0);
    static const struct {
        const char *sandbox, *path, *field, *credential;
        enum reason reason;
    } cases[] = {
        {"both", "/v1/items/7", "x-fine", "fine", REASON_ALLOWED},
        {"both", "/v1/items/7", "x-wide", "wide", REASON_PLACEHOLDER_WRONG_DESTINATION},
        {"both", "/v1/items", "x-wide", "wide", REASON_ALLOWED},
        {"both", "/v1/items", "x-fine", "fine", REASON_PLACEHOLDER_WRONG_DESTINATION},
        {"some", "/v1/items/7", "x-wide", "wide", REASON_ALLOWED},
        {"some", "/v1/items/7", "x-fine", "fine", REASON_PLACEHOLDER_WRONG_DESTINATION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct target t = {.path = view_str(cases[i].path)};
        struct materials m = {.n = 1};
        m.at[0] = (struct material){.place = PLACE_HEADER,
                                    .name = view_str(cases[i].field),
                                    .origin = ORIGIN_OURS,
                                    .credential = view_str(cases[i].credential)};
        struct request_facts f = {.sandbox = view_str(cases[i].sandbox),
                                  .tls = true,
                                  .authority = &a,
                                  .method = VIEW("GET"),
                                  .target = &t,
                                  .materials = &m};
        struct verdict v = policy_judge(p, &f);
        if (v.reason != cases[i].reason)
            fail_msg("case %zu: %s", i, reason_info(v.reason)->code);
        if (v.allow)
            assert_true(view_equal(verdict_credential(&v), view_str(cases[i].credential)));
    }
    assert_true(policy_lends(p, VIEW("some"), VIEW("wide"), &a));
    assert_false(policy_lends(p, VIEW("some"), VIEW("fine"), &a));
    policy_free(p);
}

/* ---- the body ---- */

static struct authority a_test;

static struct request_facts post(const struct target *t, const struct body_facts *body) {
    static struct materials none;
    static const struct field no_fields[1];
    return (struct request_facts){.sandbox = VIEW("s"),
                                  .tls = true,
                                  .authority = &a_test,
                                  .method = VIEW("POST"),
                                  .target = t,
                                  .materials = &none,
                                  .fields = no_fields,
                                  .length_known = true,
                                  .length = 10,
                                  .body = body};
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

/* ---- files, layers, sandboxes, grants ---- */

struct file {
    const char *name, *text;
};

static int read_file(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                     size_t size, const char **why) {
    (void)from;
    *why = "there is no such file";
    for (const struct file *f = ctx; f->name; f++)
        if (view_equal(path, view_str(f->name))) {
            buf_put_str(out, f->text);
            return view_cstr(path, name, size);
        }
    return ERR_MISSING;
}

static int load_files(const char *text, struct file *files, struct policy **p) {
    struct policy_files reader = {read_file, files};
    return policy_load_files(view_str(text), "policy", &reader, p, &errors);
}

static void included_files_are_read_and_errors_name_them(void **state) {
    (void)state;
    struct policy *p;
    struct file files[] = {{"b", "service b { host b.test; operation r { GET / } }\ninclude c"},
                           {"c", "service c { host c.test; operation r { GET / } }"},
                           {"wrong", "\nservice d { hots d.test }"},
                           {"self", "include self"},
                           {NULL, NULL}};
    assert_int_equal(load_files("include b\nsandbox s { grant b all; grant c all }", files, &p), 0);
    policy_free(p);
    assert_int_equal(load_files("include wrong\nfoo", files, &p), ERR_BAD);
    assert_int_equal(errors.total, 2);
    assert_string_equal(errors.at[0].at.file, "policy");
    assert_string_equal(errors.at[1].at.file, "wrong");
    assert_int_equal(errors.at[1].at.line, 2);
    assert_int_equal(
        load_files("service b { host x.test; operation r { GET / } }\ninclude b", files, &p),
        ERR_BAD);
    assert_non_null(
        strstr(errors.at[0].text, "a second service 'b', the first is in line 1 of policy"));
    assert_int_equal(load_files("include self", files, &p), ERR_BAD);
    assert_non_null(strstr(errors.at[0].text, "'self' includes itself"));
    assert_int_equal(load_files("include c\ninclude c", files, &p), ERR_BAD);
    assert_non_null(strstr(errors.at[0].text, "'c' is included twice"));
    assert_int_equal(load_files("include d", files, &p), ERR_BAD);
    assert_non_null(strstr(errors.at[0].text, "there is no such file"));
}

static void a_packed_policy_is_read_without_files(void **state) {
    (void)state;
    struct policy *p;
    struct file files[] = {
        {"b", "service b { host b.test; operation r { GET / } }\ninclude c"},
        {"c", "service c { host c.test; operation r { GET / }\nnever { GET /n } }"},
        {NULL, NULL}};
    struct policy_files reader = {read_file, files};
    struct view text = VIEW("include b\nsandbox s { grant b all; grant c all }");
    struct buf packed, plain;
    buf_init(&packed, POLICY_TEXT_MAX);
    buf_init(&plain, POLICY_TEXT_MAX);
    assert_int_equal(policy_load_packing(text, "policy", &reader, &packed, &p, &errors), 0);
    policy_free(p);
    assert_int_equal(policy_load(buf_view(&packed), "policy", &p, &errors), 0);
    struct authority c;
    assert_int_equal(authority_parse(VIEW("c.test"), 443, &c, NULL), 0);
    struct target n = {.path = VIEW("/n")};
    struct request_facts f = post(&n, NULL);
    f.authority = &c;
    f.method = VIEW("GET");
    struct verdict v = policy_judge(p, &f);
    assert_int_equal(v.reason, REASON_NEVER);
    assert_string_equal(v.at.file, "c");
    policy_free(p);
    /* one file is its own text */
    assert_int_equal(
        policy_load_packing(VIEW("sandbox s { }"), "policy", &reader, &plain, &p, &errors), 0);
    assert_true(view_equal(buf_view(&plain), VIEW("sandbox s { }")));
    policy_free(p);
    /* what is cut off is no policy */
    for (size_t i = 6; i < buf_len(&packed); i++) {
        int err = policy_load(view_head(buf_view(&packed), i), "policy", &p, &errors);
        assert_int_equal(err, ERR_BAD);
    }
    buf_free(&packed);
    buf_free(&plain);
}

static const char *const two_operations =
    "service a { host a.test; operation r { GET / }; operation w { PUT / } }\n";

static void wc_07_a_lower_layer_only_narrows(void **state) {
    (void)state;
    struct policy *p;
    struct file above[] = {
        {"org", "layer organisation\nsandbox w { grant a r }\nsandbox ci-* { grant a all }"},
        {NULL, NULL}};
    char text[1024];
    snprintf(text, sizeof text,
             "include org\n%s"
             "sandbox w { grant a all }\nsandbox ci-1 { grant a w }\nsandbox ci-2* { grant a r }\n"
             "expect allow as w GET https://a.test/\n"
             "expect deny  as w PUT https://a.test/ reason operation_not_granted\n"
             "expect deny  as ci-1 GET https://a.test/ reason operation_not_granted\n"
             "expect allow as ci-1 PUT https://a.test/\n"
             "expect allow as ci-22 GET https://a.test/\n"
             "expect deny  as ci-22 PUT https://a.test/\n"
             "expect allow as ci-9 PUT https://a.test/\n",
             two_operations);
    if (load_files(text, above, &p) != 0)
        fail_with_errors(text);
    assert_true(policy_has_sandbox(p, VIEW("ci-whatever")));
    assert_false(policy_has_sandbox(p, VIEW("other")));
    assert_false(policy_has_sandbox(p, VIEW("ci-/")));
    policy_free(p);
    snprintf(text, sizeof text, "include org\n%ssandbox x { grant a all }\n", two_operations);
    assert_int_equal(load_files(text, above, &p), ERR_BAD);
    assert_non_null(strstr(errors.at[0].text, "a layer above has sandboxes, and 'x' is not"));
}

static void globs_and_labels_give_rights(void **state) {
    (void)state;
    char text[1024];
    snprintf(
        text, sizeof text,
        "%s"
        "sandbox job-* { grant a r }\nsandbox job-x* { grant a w }\n"
        "sandbox w label team nightly { }\nsandbox v label team { grant a w }\n"
        "sandbox * label team { grant a r }\nsandbox * label team nightly { grant a w }\n"
        "expect allow as job-1 GET https://a.test/\nexpect deny as job-1 PUT https://a.test/\n"
        "expect deny as job-x1 GET https://a.test/\nexpect allow as job-x1 PUT https://a.test/\n"
        "expect allow as w GET https://a.test/\nexpect allow as w PUT https://a.test/\n"
        "expect allow as v GET https://a.test/\nexpect allow as v PUT https://a.test/\n",
        two_operations);
    loads(text);
}

static void grants_have_terms(void **state) {
    (void)state;
    struct policy *p =
        load("service a { host a.test; operation r { GET / }; operation w { PUT / }\n"
             "operation x { POST / } }\n"
             "sandbox s {\ngrant a r\n"
             "grant a w until 2027-01-31T12:00:00+01:00 uses 5 rate 10/m bytes out 1M "
             "concurrent 2 note \"for the release\"\n}\n"
             "sandbox o { grant a r mode observe }\n"
             "expect allow as o PUT https://a.test/\n"
             "expect deny as o with foreign PUT https://a.test/\n");
    struct target root = {.path = VIEW("/")};
    struct request_facts f = post(&root, NULL);
    f.method = VIEW("GET");
    struct verdict v = policy_judge(p, &f);
    assert_true(v.allow && v.n_grants == 0);
    f.method = VIEW("PUT");
    v = policy_judge(p, &f);
    assert_true(v.allow && v.n_grants == 1);
    const struct grant_limits *g = grant_limits(v.grants[0]);
    assert_true(g->until == 1801393200 && g->uses == 5 && g->rate == 10 && g->rate_seconds == 60 &&
                g->bytes_out == 1 << 20 && g->concurrent == 2);
    assert_true(grant_index(v.grants[0]) < policy_grants(p));
    f.method = VIEW("POST");
    assert_int_equal(policy_judge(p, &f).reason, REASON_OPERATION_NOT_GRANTED);
    f.sandbox = VIEW("o");
    v = policy_judge(p, &f);
    assert_true(v.allow);
    assert_int_equal(v.observed, REASON_OPERATION_NOT_GRANTED);
    struct view sandbox, service;
    struct position at;
    assert_true(policy_observes(p, 0, &sandbox, &service, &at));
    assert_true(view_equal(sandbox, VIEW("o")) && at.line == 7);
    assert_false(policy_observes(p, 1, &sandbox, &service, &at));
    policy_free(p);
}

static void guards_count_in_every_service_that_uses_them(void **state) {
    (void)state;
    loads("guard webhooks { * /**/hooks; POST /** { query callback } }\n" S
          "operation all-of-it { * /** }\nnever guard webhooks\n"
          "expect deny POST /x/hooks reason never\nexpect deny POST /y?callback=1 reason never\n"
          "expect allow POST /y }\n"
          "service b { host b.test; operation all-of-it { * /** }\nnever guard webhooks\n"
          "expect deny GET /x/hooks reason never }\n"
          "service c { host c.test; operation all-of-it { * /** }\nexpect allow GET /x/hooks }\n");
}

static void a_client_certificate_is_shown_for_who_has_a_grant_at_its_service_only(void **state) {
    (void)state;
    struct policy *p = load(S "upstream client-certificate us\n" R0 " }\n"
                              "service b { host b.test; " R0 " }\n"
                              "sandbox s { grant a all }\nsandbox t { grant b all }\n"
                              "expect allow as s GET https://a.test/\n");
    struct authority b_test = a_test, other_port = a_test;
    strcpy(b_test.host, "b.test");
    other_port.port = 8443;
    assert_true(policy_has_certificate(p, VIEW("us")));
    assert_false(policy_has_certificate(p, VIEW("them")));
    assert_true(policy_shows(p, VIEW("s"), VIEW("us"), &a_test));
    assert_false(policy_shows(p, VIEW("s"), VIEW("them"), &a_test));
    assert_false(policy_shows(p, VIEW("s"), VIEW(""), &a_test));
    assert_false(policy_shows(p, VIEW("s"), VIEW("us"), &b_test));
    assert_false(policy_shows(p, VIEW("s"), VIEW("us"), &other_port));
    assert_false(policy_shows(p, VIEW("t"), VIEW("us"), &a_test));
    assert_false(policy_shows(p, VIEW("t"), VIEW("us"), &b_test));
    assert_false(policy_shows(p, VIEW("nobody"), VIEW("us"), &a_test));
    policy_free(p);
}

static void a_spliced_service_is_judged_by_its_host_and_lets_everything_pass(void **state) {
    (void)state;
    struct policy *p = load(S "tls splice at most 64K }\n"
                              "sandbox s { grant a all uses 3 }\nsandbox t { }\n"
                              "expect allow as s GET https://a.test/\n"
                              "expect allow as s DELETE https://a.test/any/thing/?x=1\n"
                              "expect allow as s with foreign GET https://a.test/x\n"
                              "expect deny as s GET http://a.test:443/ reason clear_not_allowed\n"
                              "expect deny as t GET https://a.test/ reason host_not_allowed\n");
    struct verdict v = policy_judge_host(p, VIEW("s"), true, &a_test);
    assert_true(v.allow && service_tls(v.service) == SERVICE_SPLICE);
    assert_true(view_equal(operation_name(v.operation), VIEW("splice")));
    assert_int_equal(v.n_grants, 1);
    assert_int_equal(service_splice_most(v.service), 65536);
    assert_false(policy_judge_host(p, VIEW("s"), false, &a_test).allow);
    policy_free(p);
}

static void countries_and_networks_match_what_is_known(void **state) {
    (void)state;
    struct policy *p = load(S "operation r { GET / }; country DE AT; asn not 64500 }\n"
                              "sandbox s { grant a all }");
    const struct service *s = policy_judge_host(p, VIEW("s"), true, &a_test).service;
    assert_non_null(s);
    assert_true(service_asks_country(s) && service_asks_asn(s) &&
                service_permits_location(s, VIEW("AT"), 1));
    assert_false(service_permits_location(s, VIEW("US"), 1));
    assert_false(service_permits_location(s, VIEW(""), 1));
    assert_false(service_permits_location(s, VIEW("DE"), 64500));
    assert_false(service_permits_location(s, VIEW("DE"), 0));
    policy_free(p);
}

static void pv_02_accepting_cookies_does_not_open_the_place_of_a_credential(void **state) {
    (void)state;
    loads(S
          "credential k { in cookie session }\naccept cookies; accept ours or none\n" R0 "\n"
          "expect allow GET /\nexpect allow with none GET /\n"
          "expect allow with none GET / header 'cookie: theme=dark'\n"
          "expect deny  with none GET / header 'cookie: session=stolen' reason foreign_credential\n"
          "expect deny  with none GET / header 'cookie: Session=stolen' reason foreign_credential\n"
          "expect deny  with foreign GET / reason foreign_credential }");
}

static void a_credential_can_stand_in_query_and_path(void **state) {
    (void)state;
    loads(
        S
        "credential k { in query key }\noperation r { GET /x { query key; query q; query only } }\n"
        "expect allow GET /x?q=1\nexpect deny with none GET /x?q=1 reason operation_not_allowed\n"
        "expect deny with foreign GET /x?q=1 reason foreign_credential\n"
        "expect deny GET /x?key=other&q=1 reason foreign_credential }");
    loads(S "credential k { in path 2 }\noperation r { GET /bot/{token}/send }\n"
            "expect allow GET /bot/x/send\n"
            "expect deny with foreign GET /bot/x/send reason foreign_credential }");
    loads(S "credential k { in query key[a] }\noperation r { GET /x }\n"
            "expect deny with none GET /x?key%5Ba%5D=other reason foreign_credential\n"
            "expect deny with none GET '/x?a=1;key[a]=other' reason foreign_credential }");
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

static void a_segment_holds_a_credential_for_the_operations_that_use_it(void **state) {
    (void)state;
    loads(S "credential k { in path 2; for send }\ncredential j { in header x-key; for read }\n"
            "operation send { POST /a/{key} }\noperation read { GET /a/{id} }\n"
            "operation open { GET /b/{id} }\n"
            "expect deny  with foreign POST /a/x reason foreign_credential\n"
            "expect allow POST /a/x\n"
            "expect allow GET /a/7\n"
            "expect allow with none GET /b/7 }");
}

/* ---- what does not load ---- */

struct bad_case {
    const char *text;
    uint32_t line, column;
    const char *says;
};

#define R "operation r { GET / }\n"

static const struct bad_case bad_cases[] = {
    /* conditions */
    {S "operation r { GET / { querry x } } }", 2, 23, "did you mean 'query'?"},
    {S "operation r { GET / { query x iz 1 } } }", 2, 31, "'is', 'in' or 'matches'"},
    {S "operation r { GET / { query x in 1 } } }", 2, 34, "expected '['"},
    {S "operation r { GET / { query x in [] } } }", 2, 35, "expected a value"},
    {S "operation r { GET / { query x in [a b] } } }", 2, 37, "expected ',' or ']'"},
    {S "operation r { GET / { query x in [a, a] } } }", 2, 38, "'a' twice in a list"},
    {S "operation r { GET / { body model } } }", 2, 28, "a pointer begins with '/'"},
    {S "operation r { GET / { body /a~2 } } }", 2, 28, "behind '~' stands 0 or 1"},
    {S "operation r { GET / { body at most 5X } } }", 2, 36, "such as 4096, 16K or 1M"},
    {S "operation r { GET / { no content-type a/b } } }", 2, 23,
     "'no' is for 'query', 'header' and 'body'"},
    {S "operation r { GET / { content-type json } } }", 2, 36, "a media type such as"},
    {S "operation r { GET / { header X-Forwarded-For } } }", 2, 30, "exeat's own affair"},
    {S "operation r { GET / { no header transfer-encoding } } }", 2, 33, "exeat's own affair"},
    {S "operation r { POST / graphql qery } }", 2, 30, "did you mean 'query'?"},
    {S "operation r { POST / mcp tools/list [x] } }", 2, 37, "'tools/call' only"},
    {S "operation r { POST / jsonrpc ping } }", 2, 30, "expected '['"},
    {S "operation r { GET /{id:str} } }", 2, 19, "or ':int'"},
    {S "operation r { git pull acme/x } }", 2, 19, "expected 'fetch' or 'push'"},
    {S "operation r { git fetch /acme/x } }", 2, 25, "without '/' before it"},
    {S "operation r preset reed { GET / } }", 2, 20, "did you mean 'read'?"},
    /* services */
    {S R "tls spice }", 3, 5, "did you mean 'splice'?"},
    {S R "clear; tls clear }", 3, 8, "a second word on TLS"},
    {S R "alpn h2 }", 3, 6, "'h2' is not offered yet"},
    {S R "country de }", 3, 9, "two capital letters"},
    {S R "asn x }", 3, 5, "the number of an autonomous system"},
    {S R "upstream pin sha256:00 }", 3, 14, "64 hexadecimal digits"},
    {S R "path allow dot-segments }", 3, 12, "expected 'encoded-slash' or 'parameters'"},
    {S R "path allow parameters\npath allow parameters }", 4, 12, "allowed twice"},
    {S "operation r { GET \"/a;v=1\" } }", 2, 15, "'path allow parameters'"},
    {S "operation r { GET /a%2Fb } }", 2, 15, "'path allow encoded-slash'"},
    {S R "accept ours }", 3, 1, "this one has none"},
    {S R "limit body lots }", 3, 12, "a size such as"},
    {S "tls splice; " K "}", 2, 24, "cannot be spliced"},
    {S "clear; upstream ca a.pem; " R0 " }", 2, 8, "plain HTTP shows no certificate"},
    {S "tls splice; upstream ca a.pem }", 2, 13, "only the client sees its certificate"},
    {S "tls splice; " R "}", 2, 1, "nobody sees the requests of a spliced service"},
    {S "tls splice; never { GET /x } }", 2, 1, "it cannot have never lines, but for 'never all'"},
    {S "tls splice; accept any }", 2, 1, "it cannot have 'accept'"},
    {S "tls splice; limit body 1K }", 2, 1, "it cannot have 'limit body'"},
    {S "tls splice; path allow encoded-slash }", 2, 1, "it cannot have 'path allow'"},
    {S "tls splice at 5 }", 2, 15, "expected 'most'"},
    {S "tls intercept at most 5; " R0 " }", 2, 15, "the end of the statement"},
    /* credentials */
    {S R "credential k { in json /a/0 } }", 3, 24, "a pointer to one member"},
    {S R "credential k { in json /a/* } }", 3, 24, "a pointer to one member"},
    {S R "credential k { in json /a~ } }", 3, 24, "a pointer to one member"},
    {S R "credential k { in json /a; at most 2 } }", 3, 12, "a body holds a credential once"},
    {S R "credential k { in form a; at most 2 } }", 3, 12, "a body holds a credential once"},
    {S R K "credential j { in query key }\n}", 4, 12, "a second credential without 'for'"},
    {S R "credential k { in header x-key; for rr } }", 3, 37,
     "no operation 'rr', did you mean 'r'?"},
    {S R "credential k { in header x-a; for r }\ncredential j { in header x-b; for r } }", 4, 35,
     "'r' has the credential 'k' already, in line 3"},
    {S R "credential k { in header x-a; for r }\ncredential K { in header x-b } }", 4, 12,
     "a second credential 'K'"},
    {S R "credential k { in path 0 } }", 3, 24, "a path segment of 1 to 64"},
    {S R "credential k { in json key } }", 3, 24, "a pointer to one member"},
    {S R "credential k { in header x-a; at most 0 } }", 3, 39, "a number of 1 to"},
    /* ties */
    {S "credential k { in header x-a; for r }\ncredential j { in header x-b; for q }\n"
       "operation r { GET /a/{x} }\noperation q { GET POST /a/* } }",
     5, 15, "line 4 may match the same requests and is as specific"},
    {S "credential k { in header x-a; for r }\noperation r { GET /a/**/b }\n"
       "operation q { GET /a/**/b { query x }; GET /{x}/c; GET /a/**/{y} }\n"
       "operation s { GET /a/**/b/ } }\n"
       "service b { host a.test; credential k { in header x-a }\noperation z { GET /{b}/c } }",
     7, 15, "none or 'k'?"},
    /* guards */
    {S R "never guard webhooks }", 3, 13, "there is no guard 'webhooks'"},
    {"guard g { }", 1, 7, "a guard without a rule"},
    {"guard g { GET / }\nguard G { GET / }", 2, 7, "a second guard 'G', the first is in line 1"},
    /* grants */
    {S R "}\nsandbox s { grant a r untill }", 4, 23, "did you mean 'until'?"},
    {S R "}\nsandbox s { grant a r until 2027-02-29T00:00:00Z }", 4, 29, "expected a time such as"},
    {S R "}\nsandbox s { grant a r rate 10 }", 4, 28, "a rate such as 5/s"},
    {S R "}\nsandbox s { grant a r uses 1 uses 2 }", 4, 30, "a second 'uses' in a grant"},
    {S R "}\nsandbox s { grant a r uses 1 r }", 4, 30, "'r' is no word of a grant"},
    {S R "}\nsandbox s { grant a write }", 4, 21, "has no operation that writes"},
    {S R "}\nsandbox a*b { grant a r }\nsandbox ab* { grant a r }", 5, 9,
     "may match this and 'a*b'"},
    {"sandbox a*/ { }", 1, 9, "is no name of sandboxes"},
    /* files and layers */
    {"sandbox s { }\nlayer project", 2, 1, "'layer' is the first statement"},
    {"layer projekt", 1, 7, "did you mean 'project'?"},
    {"include other", 1, 9, "other files are not read here"},
    /* expectations */
    {S "operation r { POST / { body "
       "/1/2/3/4/5/6/7/8/9/10/1/2/3/4/5/6/7/8/9/20/1/2/3/4/5/6/7/8/9/30/1/2/3 } } }",
     2, 29, "it is too long"},
    {S "operation r { POST / { body /x is 1 } }\nexpect allow POST / type application/json body "
       "'{\"x\":2}' }",
     3, 1, "allow"},
    {S "operation r { POST / { body /x is 1 } }\nexpect allow POST / body '{\"x\":1}' }", 3, 1,
     "allow"},
    {S R "expect allow GET / header accept }", 3, 27, "expected a field such as"},
    {S R "expect allow GET / reasn x }", 3, 20, "expected the end of the statement"},
};

static const struct bad_case shared_with_splice[] = {
    {S "tls splice }\nservice b { host **.test wide; never { GET /x } }", 1, 18,
     "this host is spliced, so that nobody sees its requests"},
    {S "tls splice }\nservice b { host a.test; " R0 " }", 3, 18, "and only one is spliced"},
    {S "tls splice }\nservice b { host a.test; tls splice at most 1K }", 3, 18,
     "with different budgets"},
};

static void refuse_all(const struct bad_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct bad_case *c = &cases[i];
        struct policy *p = NULL;
        if (policy_load(view_str(c->text), "policy", &p, &errors) != ERR_BAD)
            fail_msg("must not load: %s", c->text);
        const struct policy_error *e = &errors.at[0];
        if (errors.total != 1 || e->at.line != c->line || e->at.column != c->column ||
            !strstr(e->text, c->says))
            fail_with_errors(c->text);
    }
}

static void these_words_are_refused_with_place_and_help(void **state) {
    (void)state;
    refuse_all(bad_cases, sizeof bad_cases / sizeof bad_cases[0]);
}

static void br_50_a_host_with_rules_cannot_be_spliced(void **state) {
    (void)state;
    refuse_all(shared_with_splice, sizeof shared_with_splice / sizeof shared_with_splice[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pn_10_templates_take_one_segment_and_int_digits_only),
        cmocka_unit_test(pn_08_all_occurrences_of_a_parameter_must_match),
        cmocka_unit_test(sf_01_ap_01_ap_03_expectations_read_bodies_as_inspect_does),
        cmocka_unit_test(sf_04_fields_and_types_are_conditions),
        cmocka_unit_test(gf_01_gf_03_git_is_judged_by_repository_on_both_steps),
        cmocka_unit_test(pn_03_an_encoded_slash_stays_in_its_segment_where_it_is_allowed),
        cmocka_unit_test(pn_05_parameters_are_refused_unless_the_service_allows_them),
        cmocka_unit_test(the_most_specific_rule_picks_the_credential),
        cmocka_unit_test(pv_02_accepting_cookies_does_not_open_the_place_of_a_credential),
        cmocka_unit_test(a_credential_can_stand_in_query_and_path),
        cmocka_unit_test(ap_04_sf_01_sf_07_a_body_is_judged_by_what_is_certain_of_it),
        cmocka_unit_test(numbers_are_one_if_all_of_their_digits_are),
        cmocka_unit_test(what_must_be_known_of_a_body_is_said),
        cmocka_unit_test(a_limit_of_bodies_judges_those_of_no_said_length_once_they_are_known),
        cmocka_unit_test(ap_01_ap_03_protocols_are_judged_by_every_call),
        cmocka_unit_test(included_files_are_read_and_errors_name_them),
        cmocka_unit_test(a_packed_policy_is_read_without_files),
        cmocka_unit_test(wc_07_a_lower_layer_only_narrows),
        cmocka_unit_test(globs_and_labels_give_rights),
        cmocka_unit_test(grants_have_terms),
        cmocka_unit_test(guards_count_in_every_service_that_uses_them),
        cmocka_unit_test(a_spliced_service_is_judged_by_its_host_and_lets_everything_pass),
        cmocka_unit_test(a_client_certificate_is_shown_for_who_has_a_grant_at_its_service_only),
        cmocka_unit_test(a_credential_can_stand_in_a_body),
        cmocka_unit_test(a_segment_holds_a_credential_for_the_operations_that_use_it),
        cmocka_unit_test(countries_and_networks_match_what_is_known),
        cmocka_unit_test(br_50_a_host_with_rules_cannot_be_spliced),
        cmocka_unit_test(these_words_are_refused_with_place_and_help),
    };
    if (authority_parse(VIEW("a.test"), 443, &a_test, NULL) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

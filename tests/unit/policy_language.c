#include "tests/unit/policy_texts.h"

#include <stdio.h>

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

/* ---- credentials ---- */

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
        struct request_facts f = facts_of("GET", &t);
        f.sandbox = view_str(cases[i].sandbox);
        f.materials = &m;
        struct verdict v = policy_judge(p, &f);
        if (v.reason != cases[i].reason)
            fail_msg("case %zu: %s", i, reason_info(v.reason)->code);
        if (v.allow)
            assert_true(view_equal(verdict_credential(&v), view_str(cases[i].credential)));
    }
    assert_true(policy_lends(p, VIEW("some"), VIEW("wide"), &a_test));
    assert_false(policy_lends(p, VIEW("some"), VIEW("fine"), &a_test));
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

#define K "credential k { in header x-key }\n"

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
        cmocka_unit_test(guards_count_in_every_service_that_uses_them),
        cmocka_unit_test(the_most_specific_rule_picks_the_credential),
        cmocka_unit_test(pv_02_accepting_cookies_does_not_open_the_place_of_a_credential),
        cmocka_unit_test(a_credential_can_stand_in_query_and_path),
        cmocka_unit_test(a_segment_holds_a_credential_for_the_operations_that_use_it),
        cmocka_unit_test(these_words_are_refused_with_place_and_help),
        cmocka_unit_test(br_50_a_host_with_rules_cannot_be_spliced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Files, layers, sandboxes, their grants, and services that are judged by their host alone. */
#include "tests/unit/policy_texts.h"

#include <stdio.h>

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
    struct request_facts f = facts_of("GET", &n);
    f.authority = &c;
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
    struct request_facts f = facts_of("GET", &root);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(included_files_are_read_and_errors_name_them),
        cmocka_unit_test(a_packed_policy_is_read_without_files),
        cmocka_unit_test(wc_07_a_lower_layer_only_narrows),
        cmocka_unit_test(globs_and_labels_give_rights),
        cmocka_unit_test(grants_have_terms),
        cmocka_unit_test(a_client_certificate_is_shown_for_who_has_a_grant_at_its_service_only),
        cmocka_unit_test(a_spliced_service_is_judged_by_its_host_and_lets_everything_pass),
        cmocka_unit_test(countries_and_networks_match_what_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

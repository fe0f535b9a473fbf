#include "tests/unit/policy_texts.h"

#include "policy/lint.h"

#include <stdio.h>

#define A                                                                                          \
    "service a { host a.test; operation r { GET /r }; operation w { PUT /w }\n"                    \
    "operation x { POST /x } }\n"

/* `sandbox` asks for the operation r, at this time. */
static struct verdict judge_at(const struct policy *p, const char *sandbox, const char *method,
                               const char *path, uint64_t now) {
    struct target t = {.path = view_str(path), .n_segments = 1};
    struct request_facts f = facts_of(method, &t);
    f.sandbox = view_str(sandbox);
    f.now = now;
    return policy_judge(p, &f);
}

/* The terms of the verdict's grants, in order, each behind its layer. */
static void check_grants(const char *grants, const char *expected) {
    char text[2048];
    snprintf(text, sizeof text, A "%s\n", grants);
    struct policy *p = load(text);
    struct verdict v = judge_at(p, "s-1", "GET", "/r", 0);
    struct buf told;
    buf_init(&told, 4096);
    assert_true(v.allow);
    for (size_t i = 0; i < v.n_grants; i++) {
        struct buf terms;
        buf_init(&terms, 512);
        grant_put_terms(v.grants[i], &terms);
        buf_printf(&told, "%s%u %.*s", i ? ", " : "", grant_layer(v.grants[i]),
                   VIEW_ARG(buf_view(&terms)));
        buf_free(&terms);
    }
    if (!view_equal(buf_view(&told), view_str(expected)))
        fail_msg("%s: %.*s", grants, VIEW_ARG(buf_view(&told)));
    buf_free(&told);
    policy_free(p);
}

static void gf_which_of_several_is_used_first_does_not_hang_on_their_order(void **state) {
    (void)state;
    /* fewer operations; then what ends sooner, has fewer uses, fewer bytes, a lower rate, less at once */
    static const char *const pairs[][3] = {
        {"grant a r uses 9", "grant a r w uses 2", "2 uses 9, 2 uses 2"},
        {"grant a r until 2030-01-01T00:00:00Z note 1", "grant a r uses 1 note 2",
         "2 until 2030-01-01T00:00:00Z, 2 uses 1"},
        {"grant a r uses 2 note 1", "grant a r uses 3 note 2", "2 uses 2, 2 uses 3"},
        {"grant a r uses 3 note 1", "grant a r bytes out 1 note 2", "2 uses 3, 2 bytes out 1"},
        {"grant a r rate 60/h note 1", "grant a r rate 2/m note 2", "2 rate 60/h, 2 rate 2/m"},
        {"grant a r concurrent 1 note 1", "grant a r concurrent 2 note 2",
         "2 concurrent 1, 2 concurrent 2"},
        {"grant a r w uses 1", "grant a r x uses 1 rate 1/s", "2 uses 1 rate 1/s, 2 uses 1"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int turned = 0; turned < 2; turned++) {
            char text[512];
            snprintf(text, sizeof text, "sandbox s-1 { %s; %s }", pairs[i][turned],
                     pairs[i][!turned]);
            check_grants(text, pairs[i][2]);
        }
}

static void gf_a_blocks_own_name_goes_before_a_label(void **state) {
    (void)state;
    static const char own[] = "sandbox s-1 label l { grant a r uses 9 }\n",
                      labelled[] = "sandbox s-* label l { grant a r uses 1 }\n";
    char text[256];
    snprintf(text, sizeof text, "%s%s", own, labelled);
    check_grants(text, "2 uses 9, 2 uses 1");
    snprintf(text, sizeof text, "%s%s", labelled, own);
    check_grants(text, "2 uses 9, 2 uses 1");
}

static void gf_a_grant_without_limits_leaves_none(void **state) {
    (void)state;
    check_grants("sandbox s-1 label l { grant a r uses 9 }\nsandbox * label l { grant a all }", "");
    check_grants("sandbox s-1 label l { grant a r uses 9 }\n"
                 "sandbox * label l { grant a r mode observe }",
                 "");
    check_grants("sandbox s-1 { grant a r; grant a w uses 1 }", "");
    check_grants("sandbox s-* { grant a read rate 5/m }", "2 rate 5/m");
}

static void gf_a_grant_that_has_ended_is_none(void **state) {
    (void)state;
    struct policy *p = load(A "sandbox s {\ngrant a r until 2030-01-01T00:00:00Z\n"
                              "grant a w until 2030-01-01T00:00:00Z note 1\n"
                              "grant a w uses 5 note 2\n}\n"
                              "sandbox o { grant a r until 2030-01-01T00:00:00Z mode observe }\n"
                              "expect allow as s GET https://a.test/r\n");
    const uint64_t end = 1893456000;
    assert_true(judge_at(p, "s", "GET", "/r", end - 1).allow);
    struct verdict v = judge_at(p, "s", "GET", "/r", end);
    assert_false(v.allow);
    assert_int_equal(v.reason, REASON_GRANT_ENDED);
    assert_true(v.at.line == 4 && v.at.column == 7 && v.swap < 0);
    assert_int_equal(judge_at(p, "s", "PUT", "/w", end - 1).n_grants, 2);
    v = judge_at(p, "s", "PUT", "/w", end);
    assert_true(v.allow && v.n_grants == 1 && grant_limits(v.grants[0])->uses == 5);
    v = judge_at(p, "o", "PUT", "/w", end - 1);
    assert_true(v.allow && v.observed == REASON_OPERATION_NOT_GRANTED && v.n_grants == 1);
    assert_int_equal(judge_at(p, "o", "PUT", "/w", end).reason, REASON_OPERATION_NOT_GRANTED);
    policy_free(p);
}

/* Two policies whose first grant is, or is not, the same one. */
static bool same_grant(const char *one, const char *other) {
    const char *const texts[2] = {one, other};
    struct buf identity[2];
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text, A "%s\n", texts[i]);
        struct policy *p = load(text);
        buf_init(&identity[i], 4096);
        for (size_t k = 0; k < policy_grants(p) && buf_len(&identity[i]) == 0; k++)
            if (policy_grant_at(p, k))
                grant_put_identity(policy_grant_at(p, k), &identity[i]);
        policy_free(p);
    }
    bool same = view_equal(buf_view(&identity[0]), buf_view(&identity[1]));
    buf_free(&identity[0]);
    buf_free(&identity[1]);
    return same;
}

static void gf_a_grant_is_the_same_while_its_words_are(void **state) {
    (void)state;
    static const char first[] = "sandbox s label k l { grant a r w uses 5 note n }";
    assert_true(same_grant(first, "sandbox s label l k { grant a w r uses 6 rate 1/s note n }"));
    assert_true(same_grant(first, "sandbox z { grant a r }\nsandbox s label k l {\n"
                                  "grant a x; grant a r w until 2030-01-01T00:00:00Z note n }"));
    static const char *const others[] = {
        "sandbox s label k l { grant a r w uses 5 note m }",
        "sandbox s label k l { grant a r uses 5 note n }",
        "sandbox s label k l { grant a all uses 5 note n }",
        "sandbox s label k { grant a r w uses 5 note n }",
        "sandbox t label k l { grant a r w uses 5 note n }",
        "sandbox s-* label k l { grant a r w uses 5 note n }",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(same_grant(first, others[i]));
}

static void gf_grants_that_make_no_sense_do_not_load(void **state) {
    (void)state;
    static const struct {
        const char *grants, *says;
    } cases[] = {
        {"grant a r uses 1; grant a r uses 2", "twice"},
        {"grant a r w uses 1; grant a w r rate 2/s", "twice"},
        {"grant a r; grant a r w uses 2", "limit nothing"},
        {"grant a r w uses 2; grant a all", "limit nothing"},
        {"grant a read uses 2; grant a r mode observe", "limit nothing"},
        {"grant a r r uses 2", "granted twice"},
        {"grant a r uses 2 note 1; grant a r uses 2 note 2; grant a r uses 2 note 3\n"
         "grant a r uses 2 note 4; grant a r uses 2 note 5",
         "more than 4 grants"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct policy *p = NULL;
        char text[1024];
        snprintf(text, sizeof text, A "sandbox s { %s }\n", cases[i].grants);
        assert_int_equal(policy_load(view_str(text), "policy", &p, &errors), ERR_BAD);
        struct view said = view_str(errors.at[0].text);
        if (view_search(said, view_str(cases[i].says)) == said.n)
            fail_msg("%s: %s", cases[i].grants, errors.at[0].text);
    }
}

/* ---- mode observe ---- */

static void gf_observing_honours_credentials_never_lines_and_limits(void **state) {
    (void)state;
    struct policy *p = load("service a { host a.test; credential k { in header x-key }\n"
                            "limit body 10\n"
                            "operation r { GET /r }; operation w { PUT /w }; never { * /no } }\n"
                            "service c { host c.test; credential k1 { in header x-1; for r }\n"
                            "credential k2 { in header x-2; for w }\n"
                            "operation r { GET /r }; operation w { PUT /w } }\n"
                            "sandbox o { grant a r mode observe; grant c all mode observe }\n"
                            "sandbox q { grant c r mode observe }\n"
                            "sandbox e { grant a r }\n"
                            "expect allow as o PUT https://a.test/w\n"
                            "expect allow as o DELETE https://a.test/else\n"
                            "expect deny as e PUT https://a.test/w reason operation_not_granted\n"
                            "expect deny as o GET https://a.test/no reason never\n"
                            "expect deny as o with foreign DELETE https://a.test/else reason "
                            "foreign_credential\n"
                            "expect deny as o with none DELETE https://a.test/else reason "
                            "credential_missing\n"
                            "expect deny as o PUT https://a.test/else body 12345678901 reason "
                            "body_too_large\n"
                            "expect deny as o GET http://a.test/else reason port_not_allowed\n"
                            "expect deny as o GET https://b.test/else reason host_not_allowed\n"
                            "expect deny as o DELETE https://c.test/else reason "
                            "operation_not_allowed\n"
                            "expect deny as q with none PUT https://c.test/w reason "
                            "operation_not_granted\n"
                            "expect allow as q DELETE https://c.test/else\n");
    policy_free(p);
}

/* ---- layers ---- */

static int read_layer(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                      size_t size, const char **why) {
    (void)from;
    (void)why;
    buf_put_str(out, ctx);
    return view_cstr(path, name, size);
}

/* Sandbox s by a layer above and one below. */
static struct verdict judge_layers(const char *above, const char *below, const char *method,
                                   const char *path, struct policy **p) {
    char org[256], text[1024];
    struct policy_files files = {read_layer, org};
    snprintf(org, sizeof org, "layer organisation\nsandbox s { %s }", above);
    snprintf(text, sizeof text, "include org\n" A "sandbox s { %s }\n", below);
    if (policy_load_files(view_str(text), "policy", &files, p, &errors) != 0)
        fail_msg("%s", errors.at[0].text);
    return judge_at(*p, "s", method, path, 0);
}

static void wc_07_each_layer_must_have_room(void **state) {
    (void)state;
    struct policy *p;
    struct verdict v = judge_layers("grant a r uses 9; grant a r w rate 5/s",
                                    "grant a r concurrent 1", "GET", "/r", &p);
    assert_true(v.allow && v.n_grants == 3);
    assert_true(grant_layer(v.grants[0]) == 1 && grant_layer(v.grants[1]) == 1);
    assert_true(grant_limits(v.grants[0])->uses == 9 && grant_limits(v.grants[1])->rate == 5);
    assert_true(grant_layer(v.grants[2]) == 2 && grant_limits(v.grants[2])->concurrent == 1);
    policy_free(p);
    v = judge_layers("grant a r", "grant a r concurrent 1", "GET", "/r", &p);
    assert_int_equal(v.n_grants, 1);
    policy_free(p);
}

static void wc_07_a_lower_layer_cannot_observe_alone(void **state) {
    (void)state;
    struct policy *p;
    struct verdict v = judge_layers("grant a r", "grant a r mode observe", "PUT", "/w", &p);
    assert_int_equal(v.reason, REASON_OPERATION_NOT_GRANTED);
    policy_free(p);
    v = judge_layers("grant a r mode observe uses 3", "grant a r mode observe", "PUT", "/w", &p);
    assert_true(v.allow && v.observed == REASON_OPERATION_NOT_GRANTED && v.n_grants == 1);
    policy_free(p);
}

static void gf_what_is_granted_is_not_observed(void **state) {
    (void)state;
    struct policy *p = load(A "sandbox s { grant a r mode observe }\n"
                              "sandbox t { grant a r mode observe; grant a w uses 2 }\n");
    struct verdict v = judge_at(p, "s", "POST", "/x", 0);
    assert_true(v.allow && v.observed == REASON_OPERATION_NOT_GRANTED && v.at.line == 3);
    v = judge_at(p, "t", "PUT", "/w", 0);
    assert_true(v.allow && v.observed == REASON_ALLOWED && v.n_grants == 1);
    v = judge_at(p, "t", "POST", "/none", 0);
    assert_true(v.allow && v.observed == REASON_OPERATION_NOT_ALLOWED && v.n_grants == 0);
    policy_free(p);
}

/* ---- lint ---- */

static void note_code(void *ctx, const struct lint_finding *f) {
    buf_printf(ctx, "%s:%u ", f->code, f->at.line);
}

static void gf_lint_tells_of_grants_that_observe_or_have_ended(void **state) {
    (void)state;
    struct policy *p = load(A "expect allow as s GET https://a.test/r\nsandbox s {\n"
                              "grant a r mode observe\ngrant a w until 2020-01-01T00:00:00Z\n"
                              "grant a x until 2040-01-01T00:00:00Z }\n");
    struct buf found;
    buf_init(&found, 1024);
    policy_lint(p, 1700000000, note_code, &found);
    struct view v = buf_view(&found);
    assert_true(view_search(v, VIEW("observes:5 ")) < v.n);
    assert_true(view_search(v, VIEW("ended:6 ")) < v.n);
    assert_true(view_search(v, VIEW(":7 ")) == v.n);
    buf_free(&found);
    policy_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gf_which_of_several_is_used_first_does_not_hang_on_their_order),
        cmocka_unit_test(gf_a_blocks_own_name_goes_before_a_label),
        cmocka_unit_test(gf_a_grant_without_limits_leaves_none),
        cmocka_unit_test(gf_a_grant_that_has_ended_is_none),
        cmocka_unit_test(gf_a_grant_is_the_same_while_its_words_are),
        cmocka_unit_test(gf_grants_that_make_no_sense_do_not_load),
        cmocka_unit_test(gf_observing_honours_credentials_never_lines_and_limits),
        cmocka_unit_test(wc_07_each_layer_must_have_room),
        cmocka_unit_test(wc_07_a_lower_layer_cannot_observe_alone),
        cmocka_unit_test(gf_what_is_granted_is_not_observed),
        cmocka_unit_test(gf_lint_tells_of_grants_that_observe_or_have_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

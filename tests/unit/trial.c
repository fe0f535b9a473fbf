#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/placeholder.h"
#include "policy/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const text =
    "service api { host api.test; credential k { in header authorization scheme bearer }\n"
    "    operation read { GET /v1/** }; operation docs anonymous { GET /docs/** } }\n"
    "service git { host git.test; credential g { in basic password }\n"
    "    operation all-of-it { * /** } }\n"
    "service pay { host pay.test; credential p { in basic user }; operation get { GET /** } }\n"
    "service key { host key.test; credential x { in header x-api-key }\n"
    "    operation get { GET /** }; accept cookies }\n"
    "service raw { host raw.test; credential r { in header authorization }\n"
    "    operation get { GET /** } }\n"
    "service open { host open.test; accept any credential; operation get { GET /** } }\n"
    "service plain { host plain.test; clear; operation get { GET /** } }\n"
    "service team { host team.test; port 443 8443; credential t { in header x-team }\n"
    "    operation get { GET /** }; operation docs anonymous { GET /docs/** } }\n"
    "service team-2 { host *.team.test team.test; port 444\n"
    "    credential u { in header x-member scheme key }; operation get { GET /** } }\n"
    "sandbox s { grant team all; grant team-2 all; grant api all; grant git all; grant pay all; "
    "grant key all; grant raw all\n"
    "    grant open all; grant plain all }\n";

static struct policy *policy;
static char placeholder[PLACEHOLDER_SIZE];

static int load(void **state) {
    (void)state;
    static struct policy_errors errors;
    static const uint8_t random[32] = {9};
    if (placeholder_make(VIEW("sk-"), random, placeholder) != 0)
        return -1;
    return policy_load(view_str(text), "policy", &policy, &errors);
}

static int unload(void **state) {
    (void)state;
    policy_free(policy);
    return 0;
}

struct trial_case {
    const char *method, *url;
    enum with with;
    const char *header; /* "name: value", PH stands for a placeholder */
    enum reason reason;
};

static const struct trial_case cases[] = {
    /* the default is what a well-configured client sends */
    {"GET", "https://api.test/v1/x", WITH_DEFAULT, NULL, REASON_ALLOWED},
    {"PUT", "https://git.test/x", WITH_DEFAULT, NULL, REASON_ALLOWED},
    {"GET", "https://pay.test/x", WITH_DEFAULT, NULL, REASON_ALLOWED},
    {"GET", "https://key.test/x", WITH_DEFAULT, NULL, REASON_ALLOWED},
    {"GET", "https://raw.test/x", WITH_DEFAULT, NULL, REASON_ALLOWED},
    {"GET", "https://open.test/x", WITH_DEFAULT, NULL, REASON_ALLOWED},
    {"GET", "http://plain.test/x", WITH_DEFAULT, NULL, REASON_ALLOWED},
    /* in every kind of place, ours, none and foreign */
    {"GET", "https://git.test/x", WITH_OURS, NULL, REASON_ALLOWED},
    {"GET", "https://git.test/x", WITH_NONE, NULL, REASON_CREDENTIAL_MISSING},
    {"GET", "https://git.test/x", WITH_FOREIGN, NULL, REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://pay.test/x", WITH_FOREIGN, NULL, REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://key.test/x", WITH_FOREIGN, NULL, REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://raw.test/x", WITH_FOREIGN, NULL, REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://api.test/docs/x", WITH_NONE, NULL, REASON_ALLOWED},
    {"GET", "https://api.test/docs/x", WITH_FOREIGN, NULL, REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://open.test/x", WITH_FOREIGN, NULL, REASON_ALLOWED},
    {"GET", "http://plain.test/x", WITH_FOREIGN, NULL, REASON_FOREIGN_CREDENTIAL},
    /* headers stand for what the client would send instead */
    {"GET", "https://api.test/v1/x", WITH_DEFAULT, "Authorization: Bearer PH", REASON_ALLOWED},
    {"GET", "https://api.test/v1/x", WITH_DEFAULT, "Authorization: PH",
     REASON_PLACEHOLDER_WRONG_PLACE},
    {"GET", "https://api.test/v1/x", WITH_DEFAULT, "X-Api-Key: PH", REASON_PLACEHOLDER_WRONG_PLACE},
    {"GET", "https://api.test/v1/x", WITH_DEFAULT, "User-Agent: a PH b",
     REASON_PLACEHOLDER_WRONG_PLACE},
    {"GET", "https://api.test/v1/x", WITH_DEFAULT, "User-Agent: browser",
     REASON_ALLOWED}, /* WC-10 */
    {"GET", "https://api.test/v1/x", WITH_DEFAULT, "Authorization: Bearer sk-x",
     REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://api.test/v1/x", WITH_OURS, "X-Api-Key: sk-x", REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://api.test/v1/x", WITH_OURS, "Authorization: Bearer PH",
     REASON_PLACEHOLDER_REPEATED},
    {"GET", "https://api.test/v1/x", WITH_OURS, "Cookie: session=1", REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://key.test/x", WITH_OURS, "Cookie: session=1", REASON_ALLOWED},
    {"GET", "https://open.test/x", WITH_DEFAULT, "Authorization: Bearer PH",
     REASON_PLACEHOLDER_WRONG_DESTINATION},
    {"GET", "https://open.test/x", WITH_DEFAULT, "Referer: https://a.test/PH",
     REASON_PLACEHOLDER_WRONG_DESTINATION},
    /* PV-02: a field of no known name is watched where it is the place */
    {"GET", "https://team.test/x", WITH_DEFAULT, NULL, REASON_ALLOWED},
    {"GET", "https://team.test/x", WITH_FOREIGN, NULL, REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://team.test/x", WITH_NONE, NULL, REASON_CREDENTIAL_MISSING},
    {"GET", "https://team.test:8443/x", WITH_FOREIGN, NULL, REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://team.test/x", WITH_NONE, "X-Team: sk-1", REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://team.test/docs/x", WITH_NONE, "X-Team: sk-1", REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://team.test/docs/x", WITH_NONE, "X_Team: sk-1", REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://team.test/docs/x", WITH_NONE, "X-Member: sk-1", REASON_ALLOWED},
    {"GET", "https://team.test/x", WITH_DEFAULT, "X_Team: PH", REASON_PLACEHOLDER_WRONG_PLACE},
    {"GET", "https://team.test/x", WITH_DEFAULT, "X-Member: PH", REASON_PLACEHOLDER_WRONG_PLACE},
    {"GET", "https://team.test:444/x", WITH_DEFAULT, NULL, REASON_ALLOWED},
    {"GET", "https://team.test:444/x", WITH_OURS, "X-Team: sk-1", REASON_ALLOWED},
    {"GET", "https://team.test:444/x", WITH_OURS, "X-Member: sk-1", REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://a.team.test:444/x", WITH_FOREIGN, NULL, REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://api.test/v1/x", WITH_OURS, "X-Team: sk-1", REASON_ALLOWED},
    /* the target is looked through as well */
    {"GET", "https://api.test/v1/x?api_key=sk-123", WITH_OURS, NULL, REASON_FOREIGN_CREDENTIAL},
    {"GET", "https://api.test/v1/x?page=2", WITH_OURS, NULL, REASON_ALLOWED},
    {"GET", "https://open.test/x?api_key=sk-123", WITH_NONE, NULL, REASON_ALLOWED},
    /* places and names */
    {"GET", "https://api.test:444/v1/x", WITH_DEFAULT, NULL, REASON_PORT_NOT_ALLOWED},
    {"GET", "http://api.test:443/v1/x", WITH_DEFAULT, NULL, REASON_CLEAR_NOT_ALLOWED},
    {"GET", "https://other.test/", WITH_DEFAULT, NULL, REASON_HOST_NOT_ALLOWED},
    {"GET", "https://api.test", WITH_DEFAULT, NULL, REASON_OPERATION_NOT_ALLOWED},
    {"TRACE", "https://git.test/x", WITH_DEFAULT, NULL, REASON_METHOD_REFUSED},
};

/* "name: value" with PH replaced. */
static struct field field_of(const char *header, char *storage, size_t size) {
    const char *at = strstr(header, "PH");
    if (at)
        snprintf(storage, size, "%.*s%s%s", (int)(at - header), header, placeholder, at + 2);
    else
        snprintf(storage, size, "%s", header);
    struct view value = view_str(storage), name = view_cut(&value, ':');
    return (struct field){name, view_trim(value)};
}

static void a_trial_is_judged_as_the_request_it_stands_for(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct trial_case *c = &cases[i];
        char storage[512];
        struct field field;
        struct trial t = {.sandbox = VIEW("s"), .method = view_str(c->method), .with = c->with};
        struct verdict v;
        const char *why = "";
        if (c->header) {
            field = field_of(c->header, storage, sizeof storage);
            t.fields = &field;
            t.n_fields = 1;
        }
        if (trial_url(view_str(c->url), &t, &why) != 0 || trial_run(policy, &t, &v, &why) != 0)
            fail_msg("%s %s: %s", c->method, c->url, why);
        if (v.reason != c->reason)
            fail_msg("case %zu: %s %s: %s, expected %s", i, c->method, c->url,
                     reason_info(v.reason)->code, reason_info(c->reason)->code);
    }
}

static void urls_that_are_none_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "api.test/",
                                      "ftp://api.test/",
                                      "HTTPS://api.test/",
                                      "https://",
                                      "https:///x",
                                      "https://user@api.test/",
                                      "https://api.test:0/",
                                      "https://api.test?x",
                                      "https://[::1/",
                                      "https://0x7f.1/"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct trial t = {0};
        const char *why = NULL;
        if (trial_url(view_str(bad[i]), &t, &why) != ERR_BAD)
            fail_msg("%s", bad[i]);
        assert_non_null(why);
        if (strchr(bad[i], '@'))
            assert_non_null(strstr(why, "--header 'Authorization: Basic"));
    }
}

static void what_is_no_request_has_no_verdict(void **state) {
    (void)state;
    static const struct trial_case bad[] = {
        {"", "https://api.test/", WITH_DEFAULT, NULL, 0},
        {"G T", "https://api.test/", WITH_DEFAULT, NULL, 0},
        {"GET", "https://api.test/../x", WITH_DEFAULT, NULL, 0},
        {"GET", "https://api.test/a#b", WITH_DEFAULT, NULL, 0},
        {"GET", "https://open.test/", WITH_OURS, NULL, 0},
        {"GET", "https://other.test/", WITH_OURS, NULL, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct trial t = {
            .sandbox = VIEW("s"), .method = view_str(bad[i].method), .with = bad[i].with};
        struct verdict v;
        const char *why = NULL;
        assert_int_equal(trial_url(view_str(bad[i].url), &t, &why), 0);
        assert_int_equal(trial_run(policy, &t, &v, &why), ERR_BAD);
        assert_non_null(why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trial_is_judged_as_the_request_it_stands_for),
        cmocka_unit_test(urls_that_are_none_are_refused),
        cmocka_unit_test(what_is_no_request_has_no_verdict),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/errors.h"
#include "policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const text =
    /* 1 */
    "service api {\n"
    /* 2 */ "    host api.allowed.test\n"
    /* 3 */ "    credential key-a { in header authorization scheme bearer }\n"
    /* 4 */ "    operation read { GET /v1/items; GET /v1/items/** }\n"
    /* 5 */ "    operation create { POST /v1/items }\n"
    /* 6 */ "    operation docs anonymous { GET /docs/**; GET /v1/items/free }\n"
    /* 7 */ "    never { * /v1/items/*/share; * /v1/items/@evil/** }\n"
    /* 8 */ "}\n"
    "service messages {\n"
    "    host llm.allowed.test; port 443 8443\n"
    "    credential key-m { in header x-api-key }\n"
    "    operation send { POST /v1/messages }\n"
    "    accept cookies; accept destinations\n"
    "}\n"
    "service git { host git.allowed.test; credential key-g { in basic password }\n"
    "    operation all-of-it { * /**; * / } }\n"
    "service pay { host pay.allowed.test; credential key-p { in basic user }\n"
    "    operation charge { POST /charges }\n"
    "    operation ping anonymous { GET /ping } }\n"
    "service open { host *.open.test; accept any credential; operation all-of-it { * /** } }\n"
    "service plain { host plain.test; clear; operation get { GET /** } }\n"
    "service files { host files.test; operation get { GET /** } }\n"
    "service twice { host api.allowed.test\n"
    "    credential key-a { in header authorization scheme bearer }\n"
    "    operation more { PUT /v1/more }; never { DELETE /** } }\n"
    "service deep { host **.deep.test; operation get { GET /** } }\n"
    "service blocked { host blocked.open.test; never all }\n"
    "service inner { host 10.0.0.1 169.254.169.254 127.0.0.1 [::1]\n"
    "    range 10.0.0.0/16 169.254.169.254 127.0.0.0/8 ::1/128; operation get { GET /** } }\n"
    "sandbox a { grant api read docs; grant messages all; grant git all; grant pay all\n"
    "    grant open all; grant plain all; grant files get; grant inner all; grant deep all }\n"
    "sandbox b { grant api read create docs; grant twice more }\n"
    "sandbox c { grant files get; grant messages send }\n"
    "sandbox empty { }\n";

static struct policy *policy;

static int load(void **state) {
    (void)state;
    static struct policy_errors errors;
    if (policy_load(view_str(text), "policy", &policy, &errors) == 0)
        return 0;
    fprintf(stderr, "%u:%u: %s\n", errors.at[0].at.line, errors.at[0].at.column, errors.at[0].text);
    return -1;
}

static int unload(void **state) {
    (void)state;
    policy_free(policy);
    return 0;
}

/* ---- requests as data ---- */

/* What stands in one place. */
struct carried {
    enum place place;
    const char *name, *scheme;
    enum origin origin;
    const char *credential; /* ORIGIN_OURS */
    bool malformed;
};

#define OURS_A                                                                                     \
    { PLACE_HEADER, "Authorization", "Bearer", ORIGIN_OURS, "key-a", false }
#define FOREIGN_BEARER                                                                             \
    { PLACE_HEADER, "Authorization", "Bearer", ORIGIN_FOREIGN, NULL, false }
#define OURS_M                                                                                     \
    { PLACE_HEADER, "X-Api-Key", "", ORIGIN_OURS, "key-m", false }
#define BASIC(half, origin, credential)                                                            \
    { PLACE_BASIC_##half, "authorization", "Basic", origin, credential, false }

enum { CARRIED_MAX = 3 };

struct request_case {
    const char *sandbox, *url, *method, *path;
    struct carried carried[CARRIED_MAX]; /* ends at a NULL name */
    enum reason reason;
    const char *operation; /* that allows it */
    int swap;              /* expected; -1: none */
    bool elsewhere, overflow;
};

static struct verdict judge(const struct request_case *c) {
    static struct materials m;
    struct authority a;
    struct target t;
    struct buf path;
    bool tls = strncmp(c->url, "https", 5) == 0;
    assert_int_equal(authority_parse(view_str(strstr(c->url, "//") + 2), tls ? 443 : 80, &a, NULL),
                     0);
    buf_init(&path, 4096);
    const char *why = c->path;
    if (target_parse(view_str(c->path), SEGMENTS_MAX, &path, &t, &why) != 0)
        fail_msg("%s: %s", c->path, why);
    m.n = 0;
    m.overflow = c->overflow;
    for (; m.n < CARRIED_MAX && c->carried[m.n].name; m.n++) {
        const struct carried *x = &c->carried[m.n];
        m.at[m.n] = (struct material){.place = x->place,
                                      .name = view_str(x->name),
                                      .scheme = view_str(x->scheme),
                                      .token = VIEW("token"),
                                      .malformed = x->malformed,
                                      .origin = x->origin,
                                      .credential = view_str(x->credential)};
    }
    struct request_facts facts = {.sandbox = view_str(c->sandbox),
                                  .tls = tls,
                                  .authority = &a,
                                  .method = view_str(c->method),
                                  .target = &t,
                                  .materials = &m,
                                  .placeholder_elsewhere = c->elsewhere};
    struct verdict v = policy_judge(policy, &facts);
    buf_free(&path);
    return v;
}

static void check(const struct request_case *c) {
    struct verdict v = judge(c);
    if (v.reason != c->reason || v.allow != (c->reason == REASON_ALLOWED))
        fail_msg("%s %s %s%s: %s, expected %s", c->sandbox, c->method, c->url, c->path,
                 reason_info(v.reason)->code, reason_info(c->reason)->code);
    if (v.allow &&
        (!view_equal(operation_name(v.operation), view_str(c->operation)) || v.swap != c->swap))
        fail_msg("%s %s %s%s: operation %.*s, swap %d", c->sandbox, c->method, c->url, c->path,
                 VIEW_ARG(operation_name(v.operation)), v.swap);
    if (!v.allow)
        assert_int_equal(v.swap, -1);
}

#define CHECK_ALL(cases)                                                                           \
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases)[0]; i++)                                  \
    check(&(cases)[i])

#define API "https://api.allowed.test"
#define LLM "https://llm.allowed.test"
#define GIT "https://git.allowed.test"
#define PAY "https://pay.allowed.test"
#define FILES "https://files.test"

/* ---- host, method, path (WC, PN) ---- */

static const struct request_case reach_cases[] = {
    {"a", API, "GET", "/v1/items/7", {OURS_A}, REASON_ALLOWED, "read", 0, 0, 0},
    {"a",
     "https://API.allowed.test.:443",
     "GET",
     "/v1/items",
     {OURS_A},
     REASON_ALLOWED,
     "read",
     0,
     0,
     0},
    {"nobody", API, "GET", "/v1/items", {OURS_A}, REASON_UNKNOWN_SANDBOX, 0, 0, 0, 0},
    {"", API, "GET", "/v1/items", {OURS_A}, REASON_UNKNOWN_SANDBOX, 0, 0, 0, 0},
    {"A", API, "GET", "/v1/items", {OURS_A}, REASON_UNKNOWN_SANDBOX, 0, 0, 0, 0},
    {"empty", API, "GET", "/v1/items", {OURS_A}, REASON_HOST_NOT_ALLOWED, 0, 0, 0, 0},
    {"c", API, "GET", "/v1/items", {OURS_A}, REASON_HOST_NOT_ALLOWED, 0, 0, 0, 0},
    {"a",
     "https://evilapi.allowed.test",
     "GET",
     "/v1/items",
     {OURS_A},
     REASON_HOST_NOT_ALLOWED,
     0,
     0,
     0,
     0},
    {"a",
     "https://api.allowed.test.evil.test",
     "GET",
     "/v1/items",
     {OURS_A},
     REASON_HOST_NOT_ALLOWED,
     0,
     0,
     0,
     0},
    {"a", "https://open.test", "GET", "/x", {{0}}, REASON_HOST_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", "https://a.open.test", "GET", "/x", {{0}}, REASON_ALLOWED, "all-of-it", -1, 0, 0},
    {"a", "https://a.b.open.test", "GET", "/x", {{0}}, REASON_HOST_NOT_ALLOWED, 0, 0, 0, 0},
    {"a",
     "https://api.allowed.test:8443",
     "GET",
     "/v1/items",
     {OURS_A},
     REASON_PORT_NOT_ALLOWED,
     0,
     0,
     0,
     0},
    {"a",
     "http://api.allowed.test:443",
     "GET",
     "/v1/items",
     {OURS_A},
     REASON_CLEAR_NOT_ALLOWED,
     0,
     0,
     0,
     0}, /* PH-03 */
    {"a",
     "http://api.allowed.test",
     "GET",
     "/v1/items",
     {OURS_A},
     REASON_PORT_NOT_ALLOWED,
     0,
     0,
     0,
     0},
    {"a", "http://plain.test", "GET", "/x", {{0}}, REASON_ALLOWED, "get", -1, 0, 0},
    {"a", "https://plain.test:80", "GET", "/x", {{0}}, REASON_ALLOWED, "get", -1, 0, 0},
    {"a", "https://blocked.open.test", "GET", "/x", {{0}}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/7/share", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/7/share/", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/7/share;x=1", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/7/share%3Bx=1", {OURS_A}, REASON_NEVER, 0, 0, 0, 0}, /* PN-05 */
    {"a", API, "GET", "/v1/items/7/share%3b/", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/%40evil/x", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/@evil/x", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/%40evil;v/x/y", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/%40Evil/x", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items;x=1", {OURS_A}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", API, "FROB", "/v1/items/7/share", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/7/SHARE", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    /* never of a service that was not granted to a */
    {"a", API, "DELETE", "/v1/items/7", {OURS_A}, REASON_NEVER, 0, 0, 0, 0},
    {"a", API, "HEAD", "/v1/items", {OURS_A}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", API, "get", "/v1/items", {OURS_A}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", API, "GETX", "/v1/items", {OURS_A}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", API, "GET", "/V1/items", {OURS_A}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/", {OURS_A}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/%69tems", {OURS_A}, REASON_ALLOWED, "read", 0, 0, 0}, /* PN-06 */
    {"a", API, "GET", "/", {OURS_A}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", API, "POST", "/v1/items", {OURS_A}, REASON_OPERATION_NOT_GRANTED, 0, 0, 0, 0},
    {"a", API, "PUT", "/v1/more", {OURS_A}, REASON_OPERATION_NOT_GRANTED, 0, 0, 0, 0},
    {"b", API, "PUT", "/v1/more", {OURS_A}, REASON_ALLOWED, "more", 0, 0, 0},
    {"b", API, "POST", "/v1/items", {OURS_A}, REASON_ALLOWED, "create", 0, 0, 0},
    {"a", API, "GET", "/v1/items?_method=DELETE", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items?a&%5FMethod=PUT", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items?x=_method", {OURS_A}, REASON_ALLOWED, "read", 0, 0, 0},
    {"a", API, "GET", "/v1/items?.method=DELETE", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items?%20_method=DELETE", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items?+_method=DELETE", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items?[method=DELETE", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items?%5Bmethod=DELETE", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items?a=1;_method=DELETE", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items?a;_method=DELETE", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a",
     API,
     "GET",
     "/v1/items?a=1;b;x-method-override=DELETE",
     {OURS_A},
     REASON_METHOD_OVERRIDE,
     0,
     0,
     0,
     0},
    {"a", API, "GET", "/v1/items?_method[]=DELETE", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a",
     API,
     "GET",
     "/v1/items?_method%5B%5D=DELETE",
     {OURS_A},
     REASON_METHOD_OVERRIDE,
     0,
     0,
     0,
     0},
    {"a", API, "GET", "/v1/items?$httpMethod=DELETE", {OURS_A}, REASON_METHOD_OVERRIDE, 0, 0, 0, 0},
    {"a",
     API,
     "GET",
     "/v1/items?%24httpMethod=DELETE",
     {OURS_A},
     REASON_METHOD_OVERRIDE,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items?x-http-method=DELETE",
     {OURS_A},
     REASON_METHOD_OVERRIDE,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items?X_HTTP_Method_Override=DELETE",
     {OURS_A},
     REASON_METHOD_OVERRIDE,
     0,
     0,
     0,
     0},
    {"a", API, "GET", "/v1/items?method=x&httpMethod=y", {OURS_A}, REASON_ALLOWED, "read", 0, 0, 0},
    {"a", API, "GET", "/v1/items?a=1;method=x", {OURS_A}, REASON_ALLOWED, "read", 0, 0, 0},
    {"a", API, "GET", "/v1/items?a_method=x", {OURS_A}, REASON_ALLOWED, "read", 0, 0, 0},
    {"a", API, "GET", "/v1/items?q=_method;x", {OURS_A}, REASON_ALLOWED, "read", 0, 0, 0},
    {"a", API, "GET", "/v1/items?a=b=_method", {OURS_A}, REASON_ALLOWED, "read", 0, 0, 0},
    {"a", GIT, "TRACE", "/x", {{0}}, REASON_METHOD_REFUSED, 0, 0, 0, 0},
    {"a", GIT, "CONNECT", "/x", {{0}}, REASON_METHOD_REFUSED, 0, 0, 0, 0},
    {"a", "https://a.open.test", "PRI", "/x", {{0}}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", "https://a.open.test", "frob", "/x", {{0}}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
};

static void
wc_01_wc_02_wc_09_pn_05_pn_06_pn_09_reach_is_judged_by_host_port_method_and_path(void **state) {
    (void)state;
    CHECK_ALL(reach_cases);
}

/* ---- placeholders (PH, XS, TI) ---- */

static const struct request_case placeholder_cases[] = {
    /* PH-01 and TI-04: of another host; of a host without a credential */
    {"a",
     LLM,
     "POST",
     "/v1/messages",
     {{PLACE_HEADER, "x-api-key", "", ORIGIN_OURS, "key-a", false}},
     REASON_PLACEHOLDER_WRONG_DESTINATION,
     0,
     0,
     0,
     0},
    {"a", FILES, "GET", "/x", {OURS_A}, REASON_PLACEHOLDER_WRONG_DESTINATION, 0, 0, 0, 0},
    {"a",
     "https://a.open.test",
     "GET",
     "/x",
     {OURS_A},
     REASON_PLACEHOLDER_WRONG_DESTINATION,
     0,
     0,
     0,
     0},
    {"a", "https://evil.test", "GET", "/x", {OURS_A}, REASON_HOST_NOT_ALLOWED, 0, 0, 0, 0},
    /* PH-02: the right host, another place */
    {"a",
     API,
     "GET",
     "/v1/items",
     {{PLACE_HEADER, "x-api-key", "", ORIGIN_OURS, "key-a", false}},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {{PLACE_HEADER, "authorization", "token", ORIGIN_OURS, "key-a", false}},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {{PLACE_HEADER, "authorization", "", ORIGIN_OURS, "key-a", false}},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {BASIC(PASSWORD, ORIGIN_OURS, "key-a")},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {{PLACE_COOKIE, "s", "", ORIGIN_OURS, "key-a", false}},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {{PLACE_QUERY, "key", "", ORIGIN_OURS, "key-a", false}, OURS_A},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items/x",
     {{PLACE_PATH, "x", "", ORIGIN_OURS, "key-a", false}},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {{PLACE_BODY, "x", "", ORIGIN_OURS, "key-a", false}},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     LLM,
     "POST",
     "/v1/messages",
     {{PLACE_COOKIE, "s", "", ORIGIN_OURS, "key-m", false}},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     LLM,
     "POST",
     "/v1/messages",
     {{PLACE_HEADER, "x-api-key", "bearer", ORIGIN_OURS, "key-m", false}},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    /* where no credential is read */
    {"a", API, "GET", "/v1/items", {OURS_A}, REASON_PLACEHOLDER_WRONG_PLACE, 0, 0, true, 0},
    {"a", API, "GET", "/docs/x", {{0}}, REASON_PLACEHOLDER_WRONG_PLACE, 0, 0, true, 0},
    {"a", FILES, "GET", "/x", {{0}}, REASON_PLACEHOLDER_WRONG_DESTINATION, 0, 0, true, 0},
    {"a",
     "https://a.open.test",
     "GET",
     "/x",
     {{0}},
     REASON_PLACEHOLDER_WRONG_DESTINATION,
     0,
     0,
     true,
     0},
    /* PH-10: twice */
    {"a", API, "GET", "/v1/items", {OURS_A, OURS_A}, REASON_PLACEHOLDER_REPEATED, 0, 0, 0, 0},
    {"a", API, "GET", "/docs/x", {OURS_A, OURS_A}, REASON_PLACEHOLDER_REPEATED, 0, 0, 0, 0},
    /* PH-15: another method, path or port */
    {"a", LLM, "POST", "/v1/messages", {OURS_M}, REASON_ALLOWED, "send", 0, 0, 0},
    {"a", LLM ":8443", "POST", "/v1/messages", {OURS_M}, REASON_ALLOWED, "send", 0, 0, 0},
    {"a", LLM, "GET", "/v1/organizations", {OURS_M}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", LLM, "POST", "/v1/files", {OURS_M}, REASON_OPERATION_NOT_ALLOWED, 0, 0, 0, 0},
    {"a", LLM ":9443", "POST", "/v1/messages", {OURS_M}, REASON_PORT_NOT_ALLOWED, 0, 0, 0, 0},
    /* XS-01: of another sandbox, also where anything is accepted or beside ours */
    {"b",
     API,
     "GET",
     "/v1/items",
     {{PLACE_HEADER, "authorization", "bearer", ORIGIN_OTHER, NULL, false}},
     REASON_PLACEHOLDER_WRONG_IDENTITY,
     0,
     0,
     0,
     0},
    {"b",
     API,
     "GET",
     "/v1/items",
     {OURS_A, {PLACE_QUERY, "token", "", ORIGIN_OTHER, NULL, false}},
     REASON_PLACEHOLDER_WRONG_IDENTITY,
     0,
     0,
     0,
     0},
    {"a",
     "https://a.open.test",
     "GET",
     "/x",
     {{PLACE_HEADER, "authorization", "bearer", ORIGIN_OTHER, NULL, false}},
     REASON_PLACEHOLDER_WRONG_IDENTITY,
     0,
     0,
     0,
     0},
    {"a",
     LLM,
     "POST",
     "/v1/messages",
     {OURS_M, {PLACE_COOKIE, "s", "", ORIGIN_OTHER, NULL, false}},
     REASON_PLACEHOLDER_WRONG_IDENTITY,
     0,
     0,
     0,
     0},
    {"a",
     FILES,
     "GET",
     "/x",
     {{PLACE_COOKIE, "s", "", ORIGIN_OTHER, NULL, false}},
     REASON_PLACEHOLDER_WRONG_IDENTITY,
     0,
     0,
     0,
     0},
};

static void
ph_01_ph_02_ph_10_ph_15_ti_04_xs_01_placeholders_pass_in_their_place_only(void **state) {
    (void)state;
    CHECK_ALL(placeholder_cases);
}

/* ---- an attacker's own key (PV) ---- */

static const struct request_case provenance_cases[] = {
    /* PV-01, PV-02: in every place, alone and beside ours */
    {"a",
     LLM,
     "POST",
     "/v1/messages",
     {{PLACE_HEADER, "x-api-key", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a", API, "GET", "/v1/items", {FOREIGN_BEARER}, REASON_FOREIGN_CREDENTIAL, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items", {OURS_A, FOREIGN_BEARER}, REASON_FOREIGN_CREDENTIAL, 0, 0, 0, 0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {OURS_A, {PLACE_HEADER, "x-api-key", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {{PLACE_QUERY, "key", "", ORIGIN_FOREIGN, NULL, false}, OURS_A},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {OURS_A, {PLACE_COOKIE, "s", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {OURS_A, {PLACE_BODY, "s", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {OURS_A, BASIC(USER, ORIGIN_FOREIGN, NULL)},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    /* PV-05, PV-08, PV-09 */
    {"a",
     API,
     "GET",
     "/v1/items",
     {OURS_A, {PLACE_SIGNATURE, "X-Amz-Signature", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {OURS_A, {PLACE_SUBPROTOCOL, "sec-websocket-protocol", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    /* PV-04 */
    {"a",
     API,
     "GET",
     "/v1/items/T0",
     {OURS_A, {PLACE_PATH, "T0", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    /* PV-06: malformed, whoever it is of */
    {"a",
     API,
     "GET",
     "/v1/items",
     {{PLACE_HEADER, "authorization", "", ORIGIN_FOREIGN, NULL, true}},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a",
     API,
     "GET",
     "/v1/items",
     {{PLACE_HEADER, "authorization", "bearer", ORIGIN_OURS, "key-a", true}},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    /* more than could be looked at */
    {"a", API, "GET", "/v1/items", {OURS_A}, REASON_FOREIGN_CREDENTIAL, 0, 0, 0, true},
    {"a", "https://a.open.test", "GET", "/x", {{0}}, REASON_FOREIGN_CREDENTIAL, 0, 0, 0, true},
    /* PV-03: none, and where it may be none */
    {"a", API, "GET", "/v1/items", {{0}}, REASON_CREDENTIAL_MISSING, 0, 0, 0, 0},
    {"a", API, "GET", "/docs/x", {{0}}, REASON_ALLOWED, "docs", -1, 0, 0},
    {"a", API, "GET", "/docs/x", {OURS_A}, REASON_ALLOWED, "docs", 0, 0, 0},
    {"a", API, "GET", "/docs/x", {FOREIGN_BEARER}, REASON_FOREIGN_CREDENTIAL, 0, 0, 0, 0},
    {"a", API, "GET", "/v1/items/free", {{0}}, REASON_ALLOWED, "docs", -1, 0, 0},
    {"a", API, "GET", "/v1/items/free", {OURS_A}, REASON_ALLOWED, "docs", 0, 0, 0},
    /* a service without a credential */
    {"a", FILES, "GET", "/x", {{0}}, REASON_ALLOWED, "get", -1, 0, 0},
    {"a", FILES, "GET", "/x", {FOREIGN_BEARER}, REASON_FOREIGN_CREDENTIAL, 0, 0, 0, 0},
    {"a",
     FILES,
     "GET",
     "/x",
     {{PLACE_COOKIE, "s", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    /* SF-04 */
    {"a",
     FILES,
     "GET",
     "/x",
     {{PLACE_TARGET, "destination", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_SECOND_TARGET,
     0,
     0,
     0,
     0},
    {"a",
     "https://a.open.test",
     "GET",
     "/x",
     {{PLACE_TARGET, "x-amz-copy-source", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_SECOND_TARGET,
     0,
     0,
     0,
     0},
    {"c",
     "https://llm.allowed.test",
     "POST",
     "/v1/messages",
     {{PLACE_HEADER, "x-api-key", "", ORIGIN_OURS, "key-m", false},
      {PLACE_TARGET, "destination", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_ALLOWED,
     "send",
     0,
     0,
     0},
    /* what is accepted in words */
    {"a",
     "https://a.open.test",
     "GET",
     "/x",
     {FOREIGN_BEARER},
     REASON_ALLOWED,
     "all-of-it",
     -1,
     0,
     0},
    {"a",
     "https://a.open.test",
     "GET",
     "/x",
     {{PLACE_COOKIE, "s", "", ORIGIN_FOREIGN, NULL, false},
      {PLACE_HEADER, "authorization", "", ORIGIN_FOREIGN, NULL, true}},
     REASON_ALLOWED,
     "all-of-it",
     -1,
     0,
     0},
    {"a",
     LLM,
     "POST",
     "/v1/messages",
     {{PLACE_COOKIE, "s", "", ORIGIN_FOREIGN, NULL, false}, OURS_M},
     REASON_ALLOWED,
     "send",
     1,
     0,
     0},
    {"a",
     LLM,
     "POST",
     "/v1/messages",
     {{PLACE_COOKIE, "s", "", ORIGIN_FOREIGN, NULL, false}},
     REASON_CREDENTIAL_MISSING,
     0,
     0,
     0,
     0},
    /* PH-08: Basic, whose other half is only text, once, and only beside ours */
    {"a",
     GIT,
     "GET",
     "/x",
     {BASIC(USER, ORIGIN_FOREIGN, NULL), BASIC(PASSWORD, ORIGIN_OURS, "key-g")},
     REASON_ALLOWED,
     "all-of-it",
     1,
     0,
     0},
    {"a",
     GIT,
     "GET",
     "/x",
     {BASIC(PASSWORD, ORIGIN_OURS, "key-g")},
     REASON_ALLOWED,
     "all-of-it",
     0,
     0,
     0},
    {"a",
     GIT,
     "GET",
     "/x",
     {BASIC(USER, ORIGIN_OURS, "key-g"), BASIC(PASSWORD, ORIGIN_OURS, "key-g")},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     GIT,
     "GET",
     "/x",
     {BASIC(USER, ORIGIN_OTHER, NULL), BASIC(PASSWORD, ORIGIN_OURS, "key-g")},
     REASON_PLACEHOLDER_WRONG_IDENTITY,
     0,
     0,
     0,
     0},
    {"a",
     GIT,
     "GET",
     "/x",
     {BASIC(USER, ORIGIN_FOREIGN, NULL), BASIC(PASSWORD, ORIGIN_FOREIGN, NULL)},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a",
     GIT,
     "GET",
     "/x",
     {BASIC(USER, ORIGIN_FOREIGN, NULL)},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a",
     GIT,
     "GET",
     "/x",
     {BASIC(USER, ORIGIN_FOREIGN, NULL), BASIC(PASSWORD, ORIGIN_OURS, "key-g"),
      BASIC(USER, ORIGIN_FOREIGN, NULL)},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a",
     GIT,
     "GET",
     "/x",
     {{PLACE_BASIC_USER, "x-auth", "basic", ORIGIN_FOREIGN, NULL, false},
      BASIC(PASSWORD, ORIGIN_OURS, "key-g")},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a",
     GIT,
     "GET",
     "/x",
     {{PLACE_BASIC_PASSWORD, "x-auth", "basic", ORIGIN_OURS, "key-g", false}},
     REASON_PLACEHOLDER_WRONG_PLACE,
     0,
     0,
     0,
     0},
    {"a",
     PAY,
     "POST",
     "/charges",
     {BASIC(USER, ORIGIN_OURS, "key-p")},
     REASON_ALLOWED,
     "charge",
     0,
     0,
     0},
    {"a",
     PAY,
     "POST",
     "/charges",
     {BASIC(USER, ORIGIN_OURS, "key-p"), BASIC(PASSWORD, ORIGIN_FOREIGN, NULL)},
     REASON_ALLOWED,
     "charge",
     0,
     0,
     0},
    {"a",
     PAY,
     "GET",
     "/ping",
     {BASIC(PASSWORD, ORIGIN_FOREIGN, NULL)},
     REASON_FOREIGN_CREDENTIAL,
     0,
     0,
     0,
     0},
    {"a", PAY, "GET", "/ping", {{0}}, REASON_ALLOWED, "ping", -1, 0, 0},
};

static void
pv_01_to_pv_09_ph_08_foreign_credentials_pass_only_where_they_are_accepted(void **state) {
    (void)state;
    CHECK_ALL(provenance_cases);
}

/* ---- the host alone (P5) ---- */

static void no_name_is_asked_for_that_is_not_allowed(void **state) {
    (void)state;
    static const struct {
        const char *sandbox, *host;
        uint16_t port;
        bool tls;
        enum reason reason;
    } cases[] = {
        {"a", "api.allowed.test", 443, true, REASON_ALLOWED},
        {"c", "api.allowed.test", 443, true, REASON_HOST_NOT_ALLOWED},
        {"empty", "api.allowed.test", 443, true, REASON_HOST_NOT_ALLOWED},
        {"x", "api.allowed.test", 443, true, REASON_UNKNOWN_SANDBOX},
        {"a", "evil.test", 443, true, REASON_HOST_NOT_ALLOWED},
        {"a", "api.allowed.test", 80, false, REASON_PORT_NOT_ALLOWED},
        {"a", "api.allowed.test", 443, false, REASON_CLEAR_NOT_ALLOWED},
        {"a", "plain.test", 80, false, REASON_ALLOWED},
        {"a", "blocked.open.test", 443, true, REASON_NEVER},
        {"a", "blocked.open.test", 444, true, REASON_PORT_NOT_ALLOWED},
        {"a", "10.0.0.1", 443, true, REASON_ALLOWED},
        {"a", "10.0.0.2", 443, true, REASON_HOST_NOT_ALLOWED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct authority a;
        assert_int_equal(authority_parse_host(view_str(cases[i].host), cases[i].port, &a, NULL), 0);
        struct verdict v = policy_judge_host(policy, view_str(cases[i].sandbox), cases[i].tls, &a);
        if (v.reason != cases[i].reason || v.allow != (v.reason == REASON_ALLOWED))
            fail_msg("%s: %s", cases[i].host, reason_info(v.reason)->code);
    }
}

static void a_verdict_points_at_the_clause_that_decided(void **state) {
    (void)state;
    static const struct {
        struct request_case request;
        const char *file;
        uint32_t line, column;
    } cases[] = {
        {{"a", API, "GET", "/v1/items/7", {OURS_A}, 0, 0, 0, 0, 0}, "policy", 4, 37},
        {{"a", API, "GET", "/v1/items/7/share", {OURS_A}, 0, 0, 0, 0, 0}, "policy", 7, 13},
        {{"a", API, "GET", "/v1/items", {FOREIGN_BEARER}, 0, 0, 0, 0, 0}, "policy", 3, 16},
        {{"a", API, "GET", "/v2", {OURS_A}, 0, 0, 0, 0, 0}, NULL, 1, 9},
        {{"a", "https://evil.test", "GET", "/", {{0}}, 0, 0, 0, 0, 0}, NULL, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct verdict v = judge(&cases[i].request);
        assert_int_equal(v.at.line, cases[i].line);
        assert_int_equal(v.at.column, cases[i].column);
        if (cases[i].file)
            assert_string_equal(v.at.file, cases[i].file);
        else
            assert_null(v.at.file);
    }
}

/* ---- what the other roles ask ---- */

static struct authority authority_of(const char *text_form) {
    struct authority a;
    assert_int_equal(authority_parse(view_str(text_form), 443, &a, NULL), 0);
    return a;
}

static void a_secret_is_lent_only_to_who_was_granted_it_there(void **state) {
    (void)state;
    struct authority api = authority_of("api.allowed.test"), llm = authority_of("llm.allowed.test"),
                     port = authority_of("api.allowed.test:444"),
                     files = authority_of("files.test");
    assert_true(policy_lends(policy, VIEW("a"), VIEW("key-a"), &api));
    assert_true(policy_lends(policy, VIEW("b"), VIEW("key-a"), &api));
    assert_false(policy_lends(policy, VIEW("c"), VIEW("key-a"), &api));
    assert_false(policy_lends(policy, VIEW("x"), VIEW("key-a"), &api));
    assert_false(policy_lends(policy, VIEW("a"), VIEW("key-a"), &llm));
    assert_false(policy_lends(policy, VIEW("a"), VIEW("key-m"), &api));
    assert_false(policy_lends(policy, VIEW("a"), VIEW("key-a"), &port));
    assert_false(policy_lends(policy, VIEW("a"), VIEW(""), &files));
}

static void answers_are_guarded_at_hosts_with_a_credential_of_the_sandbox(void **state) {
    (void)state;
    struct authority api = authority_of("api.allowed.test"), files = authority_of("files.test"),
                     port = authority_of("api.allowed.test:444");
    assert_true(policy_guards_host(policy, VIEW("a"), &api));
    assert_true(policy_guards_host(policy, VIEW("a"), &port));
    assert_false(policy_guards_host(policy, VIEW("a"), &files));
    assert_false(policy_guards_host(policy, VIEW("c"), &api));
    assert_false(policy_guards_host(policy, VIEW("x"), &api));
}

static void a_credential_is_borrowed_for_every_port_of_its_host(void **state) {
    (void)state;
    struct authority api = authority_of("api.allowed.test"), files = authority_of("files.test"),
                     port = authority_of("api.allowed.test:444"), where;
    assert_true(policy_lends_at_host(policy, VIEW("a"), VIEW("key-a"), &port, &where));
    assert_int_equal(where.port, api.port);
    assert_true(policy_lends(policy, VIEW("a"), VIEW("key-a"), &where));
    assert_false(policy_lends_at_host(policy, VIEW("a"), VIEW("key-a"), &files, &where));
    assert_false(policy_lends_at_host(policy, VIEW("c"), VIEW("key-a"), &port, &where));
}

static void a_credential_can_be_borrowed_without_knowing_a_host(void **state) {
    (void)state;
    struct authority where;
    assert_true(policy_lends_somewhere(policy, VIEW("a"), VIEW("key-a"), &where));
    assert_true(policy_lends(policy, VIEW("a"), VIEW("key-a"), &where));
    assert_false(policy_lends_somewhere(policy, VIEW("c"), VIEW("key-a"), &where));
    assert_false(policy_lends_somewhere(policy, VIEW("a"), VIEW("no-such"), &where));
    struct policy *stars;
    struct policy_errors e;
    assert_int_equal(policy_load(VIEW("service s { host *.api.test; operation o { GET / }\n"
                                      "credential k { in header x-api-key } }\n"
                                      "sandbox a { grant s o }"),
                                 "p", &stars, &e),
                     0);
    assert_true(policy_lends_somewhere(stars, VIEW("a"), VIEW("k"), &where));
    assert_string_equal(where.host, "x.api.test");
    policy_free(stars);
}

static void pv_02_each_authority_has_one_field_for_its_credential(void **state) {
    (void)state;
    static const struct {
        const char *authority, *field;
    } cases[] = {
        {"api.allowed.test", "authorization"},
        {"api.allowed.test:444", ""},
        {"llm.allowed.test:8443", "x-api-key"},
        {"git.allowed.test", "authorization"},
        {"files.test", ""},
        {"a.open.test", ""},
        {"blocked.open.test", ""},
        {"evil.test", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct authority a = authority_of(cases[i].authority);
        struct watched w;
        policy_watch(policy, &a, &w);
        assert_true(w.n <= 1);
        struct view field = w.n > 0 ? w.at[0]->name : (struct view){NULL, 0};
        if (!view_equal(field, view_str(cases[i].field)))
            fail_msg("%s", cases[i].authority);
    }
}

static void a_sandbox_has_each_credential_of_its_grants_once(void **state) {
    (void)state;
    assert_int_equal(policy_sandbox_credentials(policy, VIEW("a")), 4);
    assert_int_equal(policy_sandbox_credentials(policy, VIEW("b")), 1);
    assert_int_equal(policy_sandbox_credentials(policy, VIEW("empty")), 0);
    assert_true(view_equal(policy_sandbox_credential_at(policy, VIEW("b"), 0), VIEW("key-a")));
    assert_true(view_is_empty(policy_sandbox_credential_at(policy, VIEW("b"), 1)));
}

static void addresses_are_dialled_when_public_or_in_a_range(void **state) {
    (void)state;
    static const struct {
        const char *address;
        bool inner, files;
    } cases[] = {
        {"93.184.216.34", true, true},
        {"10.0.255.1", true, false},
        {"10.1.0.1", false, false},
        {"127.8.9.1", true, false},
        {"::1", true, false},
        {"::ffff:10.0.0.1", true, false},
        {"::ffff:10.1.0.1", false, false},
        {"169.254.169.254", true, false},
        {"169.254.169.253", false, false},
        {"192.168.0.1", false, false},
        {"0.0.0.0", false, false},
        {"224.0.0.1", false, false},
        {"255.255.255.255", false, false},
        {"64:ff9b::10.0.0.1", false, false},
    };
    struct authority inner = authority_of("10.0.0.1"), files = authority_of("files.test");
    const struct service *i = policy_judge_host(policy, VIEW("a"), true, &inner).service;
    const struct service *f = policy_judge_host(policy, VIEW("a"), true, &files).service;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct address a;
        assert_int_equal(address_parse(view_str(cases[k].address), &a), 0);
        if (service_permits_address(i, &a) != cases[k].inner ||
            service_permits_address(f, &a) != cases[k].files)
            fail_msg("%s", cases[k].address);
    }
}

static void a_metadata_address_inside_a_wider_range_is_not_dialled(void **state) {
    (void)state;
    static struct policy_errors errors;
    struct policy *p;
    assert_int_equal(policy_load(VIEW("service s { host s.test; range 169.254.0.0/16\n"
                                      "operation r { GET / } }\nsandbox a { grant s all }"),
                                 "p", &p, &errors),
                     0);
    struct authority s = authority_of("s.test");
    const struct service *service = policy_judge_host(p, VIEW("a"), true, &s).service;
    struct address a;
    assert_int_equal(address_parse(VIEW("169.254.169.254"), &a), 0);
    assert_false(service_permits_address(service, &a));
    assert_int_equal(address_parse(VIEW("169.254.1.1"), &a), 0);
    assert_true(service_permits_address(service, &a));
    policy_free(p);
}

static void services_and_operations_tell_what_was_written(void **state) {
    (void)state;
    static const struct request_case request = {
        "a", LLM, "POST", "/v1/messages", {OURS_M}, REASON_ALLOWED, "send", 0, 0, 0};
    struct verdict v = judge(&request);
    assert_true(view_equal(service_name(v.service), VIEW("messages")));
    assert_true(view_equal(verdict_credential(&v), VIEW("key-m")));
    assert_int_equal(verdict_place(&v)->place, PLACE_HEADER);
    assert_true(view_equal(verdict_place(&v)->name, VIEW("x-api-key")));
    assert_true(view_is_empty(verdict_place(&v)->scheme));
    assert_false(service_accepts_any(v.service));
    assert_false(operation_is_anonymous(v.operation));
}

/* ---- speed ---- */

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fifty_services_are_judged_in_microseconds(void **state) {
    (void)state;
    static struct policy_errors errors;
    enum { SERVICES = 50, TURNS = 20000 };
    struct buf many;
    buf_init(&many, POLICY_TEXT_MAX);
    for (int i = 0; i < SERVICES; i++)
        buf_printf(&many,
                   "service s%d { host api%d.example.com *.s%d.example.com\n"
                   "credential k%d { in header authorization scheme bearer }\n"
                   "operation r { GET /v1/a; GET /v1/b/*; GET /v1/c/** }\n"
                   "operation w { POST /v1/a }; never { * /v1/*/share } }\n"
                   "sandbox w%d { grant s%d all }\n",
                   i, i, i, i, i, i);
    struct policy *p;
    assert_int_equal(policy_load(buf_view(&many), "p", &p, &errors), 0);
    static struct materials m = {.n = 1};
    m.at[0] = (struct material){.place = PLACE_HEADER,
                                .name = VIEW("authorization"),
                                .scheme = VIEW("bearer"),
                                .origin = ORIGIN_OURS,
                                .credential = VIEW("k49")};
    struct authority a = authority_of("api49.example.com");
    struct target t = {.path = VIEW("/v1/c/d/e"), .n_segments = 4};
    struct request_facts f = {.sandbox = VIEW("w49"),
                              .tls = true,
                              .authority = &a,
                              .method = VIEW("GET"),
                              .target = &t,
                              .materials = &m};
    uint64_t start = now();
    for (int i = 0; i < TURNS; i++)
        assert_true(policy_judge(p, &f).allow);
    uint64_t each = (now() - start) / TURNS;
    printf("%llu ns a verdict\n", (unsigned long long)each);
    assert_true(each < 10000); /* sanitizers included */
    policy_free(p);
    buf_free(&many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            wc_01_wc_02_wc_09_pn_05_pn_06_pn_09_reach_is_judged_by_host_port_method_and_path),
        cmocka_unit_test(ph_01_ph_02_ph_10_ph_15_ti_04_xs_01_placeholders_pass_in_their_place_only),
        cmocka_unit_test(
            pv_01_to_pv_09_ph_08_foreign_credentials_pass_only_where_they_are_accepted),
        cmocka_unit_test(no_name_is_asked_for_that_is_not_allowed),
        cmocka_unit_test(a_verdict_points_at_the_clause_that_decided),
        cmocka_unit_test(a_secret_is_lent_only_to_who_was_granted_it_there),
        cmocka_unit_test(answers_are_guarded_at_hosts_with_a_credential_of_the_sandbox),
        cmocka_unit_test(a_credential_is_borrowed_for_every_port_of_its_host),
        cmocka_unit_test(a_credential_can_be_borrowed_without_knowing_a_host),
        cmocka_unit_test(pv_02_each_authority_has_one_field_for_its_credential),
        cmocka_unit_test(a_sandbox_has_each_credential_of_its_grants_once),
        cmocka_unit_test(addresses_are_dialled_when_public_or_in_a_range),
        cmocka_unit_test(a_metadata_address_inside_a_wider_range_is_not_dialled),
        cmocka_unit_test(services_and_operations_tell_what_was_written),
        cmocka_unit_test(fifty_services_are_judged_in_microseconds),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

#include "tests/unit/judge_policy.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- requests as data ---- */

/* What stands in one place. */
struct carried {
    enum place place;
    const char *name, *scheme;
    enum origin origin;
    const char *credential; /* ORIGIN_OURS */
    bool malformed;
};

#define OURS(place, name, scheme, credential)                                                      \
    { PLACE_##place, name, scheme, ORIGIN_OURS, credential, false }
#define OTHERS(place, name, scheme)                                                                \
    { PLACE_##place, name, scheme, ORIGIN_OTHER, NULL, false }
#define FOREIGN(place, name, scheme)                                                               \
    { PLACE_##place, name, scheme, ORIGIN_FOREIGN, NULL, false }
#define MALFORMED(scheme, origin, credential)                                                      \
    { PLACE_HEADER, "authorization", scheme, origin, credential, true }
#define OURS_A OURS(HEADER, "Authorization", "Bearer", "key-a")
#define OURS_M OURS(HEADER, "X-Api-Key", "", "key-m")
#define FOREIGN_BEARER FOREIGN(HEADER, "Authorization", "Bearer")
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

#define WITH(...) .carried = {__VA_ARGS__}
#define ALLOWED(by, swapped) .reason = REASON_ALLOWED, .operation = by, .swap = swapped
#define REFUSED(why) .reason = REASON_##why

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
    {"a", API, "GET", "/v1/items/7", WITH(OURS_A), ALLOWED("read", 0)},
    {"a", "https://API.allowed.test.:443", "GET", "/v1/items", WITH(OURS_A), ALLOWED("read", 0)},
    {"nobody", API, "GET", "/v1/items", WITH(OURS_A), REFUSED(UNKNOWN_SANDBOX)},
    {"", API, "GET", "/v1/items", WITH(OURS_A), REFUSED(UNKNOWN_SANDBOX)},
    {"A", API, "GET", "/v1/items", WITH(OURS_A), REFUSED(UNKNOWN_SANDBOX)},
    {"empty", API, "GET", "/v1/items", WITH(OURS_A), REFUSED(HOST_NOT_ALLOWED)},
    {"c", API, "GET", "/v1/items", WITH(OURS_A), REFUSED(HOST_NOT_ALLOWED)},
    {"a", "https://evilapi.allowed.test", "GET", "/v1/items", WITH(OURS_A),
     REFUSED(HOST_NOT_ALLOWED)},
    {"a", "https://api.allowed.test.evil.test", "GET", "/v1/items", WITH(OURS_A),
     REFUSED(HOST_NOT_ALLOWED)},
    {"a", "https://open.test", "GET", "/x", REFUSED(HOST_NOT_ALLOWED)},
    {"a", "https://a.open.test", "GET", "/x", ALLOWED("all-of-it", -1)},
    {"a", "https://a.b.open.test", "GET", "/x", REFUSED(HOST_NOT_ALLOWED)},
    {"a", "https://api.allowed.test:8443", "GET", "/v1/items", WITH(OURS_A),
     REFUSED(PORT_NOT_ALLOWED)},
    {"a", "http://api.allowed.test:443", "GET", "/v1/items", WITH(OURS_A),
     REFUSED(CLEAR_NOT_ALLOWED)}, /* PH-03 */
    {"a", "http://api.allowed.test", "GET", "/v1/items", WITH(OURS_A), REFUSED(PORT_NOT_ALLOWED)},
    {"a", "http://plain.test", "GET", "/x", ALLOWED("get", -1)},
    {"a", "https://plain.test:80", "GET", "/x", ALLOWED("get", -1)},
    {"a", "https://blocked.open.test", "GET", "/x", REFUSED(NEVER)},
    {"a", API, "GET", "/v1/items/7/share", WITH(OURS_A), REFUSED(NEVER)},
    {"a", API, "GET", "/v1/items/7/share/", WITH(OURS_A), REFUSED(NEVER)},
    {"a", API, "GET", "/v1/items/7/share;x=1", WITH(OURS_A), REFUSED(NEVER)},
    {"a", API, "GET", "/v1/items/7/share%3Bx=1", WITH(OURS_A), REFUSED(NEVER)}, /* PN-05 */
    {"a", API, "GET", "/v1/items/7/share%3b/", WITH(OURS_A), REFUSED(NEVER)},
    {"a", API, "GET", "/v1/items/%40evil/x", WITH(OURS_A), REFUSED(NEVER)},
    {"a", API, "GET", "/v1/items/@evil/x", WITH(OURS_A), REFUSED(NEVER)},
    {"a", API, "GET", "/v1/items/%40evil;v/x/y", WITH(OURS_A), REFUSED(NEVER)},
    {"a", API, "GET", "/v1/items/%40Evil/x", WITH(OURS_A), REFUSED(NEVER)},
    {"a", API, "GET", "/v1/items;x=1", WITH(OURS_A), REFUSED(OPERATION_NOT_ALLOWED)},
    {"a", API, "FROB", "/v1/items/7/share", WITH(OURS_A), REFUSED(NEVER)},
    {"a", API, "GET", "/v1/items/7/SHARE", WITH(OURS_A), REFUSED(NEVER)},
    /* never of a service that was not granted to a */
    {"a", API, "DELETE", "/v1/items/7", WITH(OURS_A), REFUSED(NEVER)},
    {"a", API, "HEAD", "/v1/items", WITH(OURS_A), REFUSED(OPERATION_NOT_ALLOWED)},
    {"a", API, "get", "/v1/items", WITH(OURS_A), REFUSED(OPERATION_NOT_ALLOWED)},
    {"a", API, "GETX", "/v1/items", WITH(OURS_A), REFUSED(OPERATION_NOT_ALLOWED)},
    {"a", API, "GET", "/V1/items", WITH(OURS_A), REFUSED(OPERATION_NOT_ALLOWED)},
    {"a", API, "GET", "/v1/items/", WITH(OURS_A), REFUSED(OPERATION_NOT_ALLOWED)},
    {"a", API, "GET", "/v1/%69tems", WITH(OURS_A), ALLOWED("read", 0)}, /* PN-06 */
    {"a", API, "GET", "/", WITH(OURS_A), REFUSED(OPERATION_NOT_ALLOWED)},
    {"a", API, "POST", "/v1/items", WITH(OURS_A), REFUSED(OPERATION_NOT_GRANTED)},
    {"a", API, "PUT", "/v1/more", WITH(OURS_A), REFUSED(OPERATION_NOT_GRANTED)},
    {"b", API, "PUT", "/v1/more", WITH(OURS_A), ALLOWED("more", 0)},
    {"b", API, "POST", "/v1/items", WITH(OURS_A), ALLOWED("create", 0)},
    {"a", API, "GET", "/v1/items?_method=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?a&%5FMethod=PUT", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?x=_method", WITH(OURS_A), ALLOWED("read", 0)},
    {"a", API, "GET", "/v1/items?.method=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?%20_method=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?+_method=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?[method=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?%5Bmethod=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?a=1;_method=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?a;_method=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?a=1;b;x-method-override=DELETE", WITH(OURS_A),
     REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?_method[]=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?_method%5B%5D=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?$httpMethod=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?%24httpMethod=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?x-http-method=DELETE", WITH(OURS_A), REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?X_HTTP_Method_Override=DELETE", WITH(OURS_A),
     REFUSED(METHOD_OVERRIDE)},
    {"a", API, "GET", "/v1/items?method=x&httpMethod=y", WITH(OURS_A), ALLOWED("read", 0)},
    {"a", API, "GET", "/v1/items?a=1;method=x", WITH(OURS_A), ALLOWED("read", 0)},
    {"a", API, "GET", "/v1/items?a_method=x", WITH(OURS_A), ALLOWED("read", 0)},
    {"a", API, "GET", "/v1/items?q=_method;x", WITH(OURS_A), ALLOWED("read", 0)},
    {"a", API, "GET", "/v1/items?a=b=_method", WITH(OURS_A), ALLOWED("read", 0)},
    {"a", GIT, "TRACE", "/x", REFUSED(METHOD_REFUSED)},
    {"a", GIT, "CONNECT", "/x", REFUSED(METHOD_REFUSED)},
    {"a", "https://a.open.test", "PRI", "/x", REFUSED(OPERATION_NOT_ALLOWED)},
    {"a", "https://a.open.test", "frob", "/x", REFUSED(OPERATION_NOT_ALLOWED)},
};

static void
wc_01_wc_02_wc_09_pn_05_pn_06_pn_09_reach_is_judged_by_host_port_method_and_path(void **state) {
    (void)state;
    CHECK_ALL(reach_cases);
}

/* ---- placeholders (PH, XS, TI) ---- */

static const struct request_case placeholder_cases[] = {
    /* PH-01 and TI-04: of another host; of a host without a credential */
    {"a", LLM, "POST", "/v1/messages", WITH(OURS(HEADER, "x-api-key", "", "key-a")),
     REFUSED(PLACEHOLDER_WRONG_DESTINATION)},
    {"a", FILES, "GET", "/x", WITH(OURS_A), REFUSED(PLACEHOLDER_WRONG_DESTINATION)},
    {"a", "https://a.open.test", "GET", "/x", WITH(OURS_A), REFUSED(PLACEHOLDER_WRONG_DESTINATION)},
    {"a", "https://evil.test", "GET", "/x", WITH(OURS_A), REFUSED(HOST_NOT_ALLOWED)},
    /* PH-02: the right host, another place */
    {"a", API, "GET", "/v1/items", WITH(OURS(HEADER, "x-api-key", "", "key-a")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", API, "GET", "/v1/items", WITH(OURS(HEADER, "authorization", "token", "key-a")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", API, "GET", "/v1/items", WITH(OURS(HEADER, "authorization", "", "key-a")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", API, "GET", "/v1/items", WITH(BASIC(PASSWORD, ORIGIN_OURS, "key-a")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", API, "GET", "/v1/items", WITH(OURS(COOKIE, "s", "", "key-a")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", API, "GET", "/v1/items", WITH(OURS(QUERY, "key", "", "key-a"), OURS_A),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", API, "GET", "/v1/items/x", WITH(OURS(PATH, "x", "", "key-a")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", API, "GET", "/v1/items", WITH(OURS(BODY, "x", "", "key-a")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", LLM, "POST", "/v1/messages", WITH(OURS(COOKIE, "s", "", "key-m")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", LLM, "POST", "/v1/messages", WITH(OURS(HEADER, "x-api-key", "bearer", "key-m")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    /* where no credential is read */
    {"a", API, "GET", "/v1/items", WITH(OURS_A), REFUSED(PLACEHOLDER_WRONG_PLACE),
     .elsewhere = true},
    {"a", API, "GET", "/docs/x", REFUSED(PLACEHOLDER_WRONG_PLACE), .elsewhere = true},
    {"a", FILES, "GET", "/x", REFUSED(PLACEHOLDER_WRONG_DESTINATION), .elsewhere = true},
    {"a", "https://a.open.test", "GET", "/x", REFUSED(PLACEHOLDER_WRONG_DESTINATION),
     .elsewhere = true},
    /* PH-10: twice */
    {"a", API, "GET", "/v1/items", WITH(OURS_A, OURS_A), REFUSED(PLACEHOLDER_REPEATED)},
    {"a", API, "GET", "/docs/x", WITH(OURS_A, OURS_A), REFUSED(PLACEHOLDER_REPEATED)},
    /* PH-15: another method, path or port */
    {"a", LLM, "POST", "/v1/messages", WITH(OURS_M), ALLOWED("send", 0)},
    {"a", LLM ":8443", "POST", "/v1/messages", WITH(OURS_M), ALLOWED("send", 0)},
    {"a", LLM, "GET", "/v1/organizations", WITH(OURS_M), REFUSED(OPERATION_NOT_ALLOWED)},
    {"a", LLM, "POST", "/v1/files", WITH(OURS_M), REFUSED(OPERATION_NOT_ALLOWED)},
    {"a", LLM ":9443", "POST", "/v1/messages", WITH(OURS_M), REFUSED(PORT_NOT_ALLOWED)},
    /* XS-01: of another sandbox, also where anything is accepted or beside ours */
    {"b", API, "GET", "/v1/items", WITH(OTHERS(HEADER, "authorization", "bearer")),
     REFUSED(PLACEHOLDER_WRONG_IDENTITY)},
    {"b", API, "GET", "/v1/items", WITH(OURS_A, OTHERS(QUERY, "token", "")),
     REFUSED(PLACEHOLDER_WRONG_IDENTITY)},
    {"a", "https://a.open.test", "GET", "/x", WITH(OTHERS(HEADER, "authorization", "bearer")),
     REFUSED(PLACEHOLDER_WRONG_IDENTITY)},
    {"a", LLM, "POST", "/v1/messages", WITH(OURS_M, OTHERS(COOKIE, "s", "")),
     REFUSED(PLACEHOLDER_WRONG_IDENTITY)},
    {"a", FILES, "GET", "/x", WITH(OTHERS(COOKIE, "s", "")), REFUSED(PLACEHOLDER_WRONG_IDENTITY)},
};

static void
ph_01_ph_02_ph_10_ph_15_ti_04_xs_01_placeholders_pass_in_their_place_only(void **state) {
    (void)state;
    CHECK_ALL(placeholder_cases);
}

/* ---- an attacker's own key (PV) ---- */

static const struct request_case provenance_cases[] = {
    /* PV-01, PV-02: in every place, alone and beside ours */
    {"a", LLM, "POST", "/v1/messages", WITH(FOREIGN(HEADER, "x-api-key", "")),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", API, "GET", "/v1/items", WITH(FOREIGN_BEARER), REFUSED(FOREIGN_CREDENTIAL)},
    {"a", API, "GET", "/v1/items", WITH(OURS_A, FOREIGN_BEARER), REFUSED(FOREIGN_CREDENTIAL)},
    {"a", API, "GET", "/v1/items", WITH(OURS_A, FOREIGN(HEADER, "x-api-key", "")),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", API, "GET", "/v1/items", WITH(FOREIGN(QUERY, "key", ""), OURS_A),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", API, "GET", "/v1/items", WITH(OURS_A, FOREIGN(COOKIE, "s", "")),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", API, "GET", "/v1/items", WITH(OURS_A, FOREIGN(BODY, "s", "")),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", API, "GET", "/v1/items", WITH(OURS_A, BASIC(USER, ORIGIN_FOREIGN, NULL)),
     REFUSED(FOREIGN_CREDENTIAL)},
    /* PV-05, PV-08, PV-09 */
    {"a", API, "GET", "/v1/items", WITH(OURS_A, FOREIGN(SIGNATURE, "X-Amz-Signature", "")),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", API, "GET", "/v1/items", WITH(OURS_A, FOREIGN(SUBPROTOCOL, "sec-websocket-protocol", "")),
     REFUSED(FOREIGN_CREDENTIAL)},
    /* PV-04 */
    {"a", API, "GET", "/v1/items/T0", WITH(OURS_A, FOREIGN(PATH, "T0", "")),
     REFUSED(FOREIGN_CREDENTIAL)},
    /* PV-06: malformed, whoever it is of */
    {"a", API, "GET", "/v1/items", WITH(MALFORMED("", ORIGIN_FOREIGN, NULL)),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", API, "GET", "/v1/items", WITH(MALFORMED("bearer", ORIGIN_OURS, "key-a")),
     REFUSED(FOREIGN_CREDENTIAL)},
    /* more than could be looked at */
    {"a", API, "GET", "/v1/items", WITH(OURS_A), REFUSED(FOREIGN_CREDENTIAL), .overflow = true},
    {"a", "https://a.open.test", "GET", "/x", REFUSED(FOREIGN_CREDENTIAL), .overflow = true},
    /* PV-03: none, and where it may be none */
    {"a", API, "GET", "/v1/items", REFUSED(CREDENTIAL_MISSING)},
    {"a", API, "GET", "/docs/x", ALLOWED("docs", -1)},
    {"a", API, "GET", "/docs/x", WITH(OURS_A), ALLOWED("docs", 0)},
    {"a", API, "GET", "/docs/x", WITH(FOREIGN_BEARER), REFUSED(FOREIGN_CREDENTIAL)},
    {"a", API, "GET", "/v1/items/free", ALLOWED("docs", -1)},
    {"a", API, "GET", "/v1/items/free", WITH(OURS_A), ALLOWED("docs", 0)},
    /* a service without a credential */
    {"a", FILES, "GET", "/x", ALLOWED("get", -1)},
    {"a", FILES, "GET", "/x", WITH(FOREIGN_BEARER), REFUSED(FOREIGN_CREDENTIAL)},
    {"a", FILES, "GET", "/x", WITH(FOREIGN(COOKIE, "s", "")), REFUSED(FOREIGN_CREDENTIAL)},
    /* SF-04 */
    {"a", FILES, "GET", "/x", WITH(FOREIGN(TARGET, "destination", "")), REFUSED(SECOND_TARGET)},
    {"a", "https://a.open.test", "GET", "/x", WITH(FOREIGN(TARGET, "x-amz-copy-source", "")),
     REFUSED(SECOND_TARGET)},
    {"c", "https://llm.allowed.test", "POST", "/v1/messages",
     WITH(OURS(HEADER, "x-api-key", "", "key-m"), FOREIGN(TARGET, "destination", "")),
     ALLOWED("send", 0)},
    /* what is accepted in words */
    {"a", "https://a.open.test", "GET", "/x", WITH(FOREIGN_BEARER), ALLOWED("all-of-it", -1)},
    {"a", "https://a.open.test", "GET", "/x",
     WITH(FOREIGN(COOKIE, "s", ""), MALFORMED("", ORIGIN_FOREIGN, NULL)), ALLOWED("all-of-it", -1)},
    {"a", LLM, "POST", "/v1/messages", WITH(FOREIGN(COOKIE, "s", ""), OURS_M), ALLOWED("send", 1)},
    {"a", LLM, "POST", "/v1/messages", WITH(FOREIGN(COOKIE, "s", "")), REFUSED(CREDENTIAL_MISSING)},
    /* PH-08: Basic, whose other half is only text, once, and only beside ours */
    {"a", GIT, "GET", "/x",
     WITH(BASIC(USER, ORIGIN_FOREIGN, NULL), BASIC(PASSWORD, ORIGIN_OURS, "key-g")),
     ALLOWED("all-of-it", 1)},
    {"a", GIT, "GET", "/x", WITH(BASIC(PASSWORD, ORIGIN_OURS, "key-g")), ALLOWED("all-of-it", 0)},
    {"a", GIT, "GET", "/x",
     WITH(BASIC(USER, ORIGIN_OURS, "key-g"), BASIC(PASSWORD, ORIGIN_OURS, "key-g")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", GIT, "GET", "/x",
     WITH(BASIC(USER, ORIGIN_OTHER, NULL), BASIC(PASSWORD, ORIGIN_OURS, "key-g")),
     REFUSED(PLACEHOLDER_WRONG_IDENTITY)},
    {"a", GIT, "GET", "/x",
     WITH(BASIC(USER, ORIGIN_FOREIGN, NULL), BASIC(PASSWORD, ORIGIN_FOREIGN, NULL)),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", GIT, "GET", "/x", WITH(BASIC(USER, ORIGIN_FOREIGN, NULL)), REFUSED(FOREIGN_CREDENTIAL)},
    {"a", GIT, "GET", "/x",
     WITH(BASIC(USER, ORIGIN_FOREIGN, NULL), BASIC(PASSWORD, ORIGIN_OURS, "key-g"),
          BASIC(USER, ORIGIN_FOREIGN, NULL)),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", GIT, "GET", "/x",
     WITH(FOREIGN(BASIC_USER, "x-auth", "basic"), BASIC(PASSWORD, ORIGIN_OURS, "key-g")),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", GIT, "GET", "/x", WITH(OURS(BASIC_PASSWORD, "x-auth", "basic", "key-g")),
     REFUSED(PLACEHOLDER_WRONG_PLACE)},
    {"a", PAY, "POST", "/charges", WITH(BASIC(USER, ORIGIN_OURS, "key-p")), ALLOWED("charge", 0)},
    {"a", PAY, "POST", "/charges",
     WITH(BASIC(USER, ORIGIN_OURS, "key-p"), BASIC(PASSWORD, ORIGIN_FOREIGN, NULL)),
     ALLOWED("charge", 0)},
    {"a", PAY, "GET", "/ping", WITH(BASIC(PASSWORD, ORIGIN_FOREIGN, NULL)),
     REFUSED(FOREIGN_CREDENTIAL)},
    {"a", PAY, "GET", "/ping", ALLOWED("ping", -1)},
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
        {"a", "x.exeat.internal", 443, true, REASON_ALLOWED},
        /* No star means the host that exeat answers itself. */
        {"a", "echo.exeat.internal", 443, true, REASON_HOST_NOT_ALLOWED},
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
        {{"a", API, "GET", "/v1/items/7", WITH(OURS_A)}, "policy", 4, 37},
        {{"a", API, "GET", "/v1/items/7/share", WITH(OURS_A)}, "policy", 7, 13},
        {{"a", API, "GET", "/v1/items", WITH(FOREIGN_BEARER)}, "policy", 3, 16},
        {{"a", API, "GET", "/v2", WITH(OURS_A)}, NULL, 1, 9},
        {{"a", "https://evil.test", "GET", "/", REFUSED(HOST_NOT_ALLOWED)}, NULL, 0, 0},
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

static void services_and_operations_tell_what_was_written(void **state) {
    (void)state;
    static const struct request_case request = {"a", LLM, "POST", "/v1/messages", WITH(OURS_M)};
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
        cmocka_unit_test(services_and_operations_tell_what_was_written),
        cmocka_unit_test(fifty_services_are_judged_in_microseconds),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

/* Provenance: every place of a request where an API would read a credential (themes PV, HD, PH). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "policy/placeholder.h"
#include "policy/provenance.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct materials m;

static void clear(void) {
    m.n = m.used = 0;
    m.overflow = false;
}

static void read_field(const char *name, const char *value) {
    clear();
    provenance_field(view_str(name), view_str(value), NULL, &m);
}

static struct buf canonical;

static void read_target(const char *text) {
    struct target t;
    const char *why = "";
    buf_free(&canonical);
    buf_init(&canonical, 1 << 20);
    clear();
    if (target_parse(view_str(text), SEGMENTS_MAX, &canonical, &t, &why) != 0)
        fail_msg("'%s': %s", text, why);
    provenance_target(&t, NULL, &m);
}

static const char *const place_names[] = {"header", "user",        "password",  "cookie", "query",
                                          "path",   "subprotocol", "signature", "body"};

/* "place scheme token, ..." of what was found; a '!' in front of what is malformed. */
static const char *told(void) {
    static char text[4096];
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < m.n; i++) {
        const struct material *at = &m.at[i];
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s%s %.*s%s%.*s", i ? " | " : "",
                              at->malformed ? "!" : "", place_names[at->place],
                              VIEW_ARG(at->scheme), at->scheme.n ? " " : "", VIEW_ARG(at->token));
    }
    return text;
}

struct field_case {
    const char *name, *value, *told;
};

static void check_fields(const struct field_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        read_field(cases[i].name, cases[i].value);
        if (strcmp(told(), cases[i].told) != 0)
            fail_msg("%s: %s\n is     %s\n not    %s", cases[i].name, cases[i].value, told(),
                     cases[i].told);
    }
}

static void pv_01_02_credential_fields_are_material(void **state) {
    static const char *const names[] = {
        "x-api-key",
        "X-Api-Key",
        "api-key",
        "apikey",
        "x-goog-api-key",
        "X-Auth-Token",
        "x-access-token",
        "x-token",
        "private-token",
        "job-token",
        "deploy-token",
        "x-vault-token",
        "x-amz-access-token",
        "x-goog-iam-authorization-token",
        "x-session-token",
        "x-figma-token",
        "x-shopify-access-token",
        "dd-application-key",
        "ocp-apim-subscription-key",
        "x-functions-key",
        "x-client-secret",
        "x-password",
        "x-auth-key",
        "x-honeycomb-team",
        "cf-access-client-secret",
        "x-amzn-authorization",
        "token",
        "x-auth",
        "xi-api-key",
        "proxy-authorization",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        read_field(names[i], "sk-ATTACKER");
        if (strcmp(told(), "header sk-ATTACKER") != 0)
            fail_msg("%s: '%s'", names[i], told());
        assert_true(view_equal(m.at[0].name, view_str(names[i])));
    }
}

static void ordinary_fields_are_not(void **state) {
    static const char *const names[] = {
        "accept",
        "content-type",
        "user-agent",
        "x-csrf-token",
        "X-XSRF-Token",
        "idempotency-key",
        "x-idempotency-key",
        "sec-websocket-key",
        "x-continuation-token",
        "x-next-page-token",
        "referer",
        "x-atlassian-token",
        "cache-key",
        "surrogate-key",
        "anthropic-version",
        "openai-organization",
        "x-amz-content-sha256",
        "x-amz-date",
        "digest",
        "content-digest",
        "etag",
        "x-tokens-used",
        "mcp-session-id",
        "x-amz-server-side-encryption-customer-key",
        "x-request-id",
        "traceparent",
        "keyboard",
        "tokenizer",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        read_field(names[i], "sk-ATTACKER");
        if (m.n != 0)
            fail_msg("%s: '%s'", names[i], told());
    }
}

static void hd_03_underscore_and_dash_twins_are_one_name(void **state) {
    static const struct field_case cases[] = {
        {"X_Api_Key", "k", "header k"}, {"x_api-key", "k", "header k"},
        {"X-API_KEY", "k", "header k"}, {"Private_Token", "k", "header k"},
        {"XApiKey", "k", "header k"},   {"X_Csrf_Token", "k", ""},
    };
    (void)state;
    check_fields(cases, COUNT(cases));
}

static void pv_06_authorization_is_one_scheme_and_one_token(void **state) {
    static const struct field_case cases[] = {
        {"authorization", "Bearer sk-1", "header Bearer sk-1"},
        {"Authorization", "bEARER sk-1", "header bEARER sk-1"},
        {"authorization", "Token abc==", "header Token abc=="},
        {"authorization", "Zoho-oauthtoken 1.2.3", "header Zoho-oauthtoken 1.2.3"},
        {"authorization", "OAuth y0_token", "header OAuth y0_token"},
        {"authorization", "lin_api_1234", "header lin_api_1234"},
        {"authorization", "key=abc", "header key=abc"},
        {"authorization", "Bearer", "header Bearer"},
        {"authorization", "bEARER  sk-1", "!header bEARER  sk-1"},
        {"authorization", "Bearer\tsk", "!header Bearer\tsk"},
        {"authorization", "Bearer: sk", "!header Bearer: sk"},
        {"authorization", "Bearer sk1, sk2", "!header Bearer sk1, sk2"},
        {"authorization", "Bearer sk1,sk2", "!header Bearer sk1,sk2"},
        {"authorization", "Bearer sk1 sk2", "!header Bearer sk1 sk2"},
        {"authorization", "Bearer \"sk\"", "!header Bearer \"sk\""},
        {"authorization", "Bearer ", "!header Bearer "},
        {"authorization", " Bearer sk", "!header  Bearer sk"},
        {"authorization", "", "!header "},
        {"authorization", "sk1,sk2", "!header sk1,sk2"},
        {"authorization", "\"sk\"", "!header \"sk\""},
        {"authorization", "4711 sk", "!header 4711 sk"},
        {"authorization", "sk\xc3\xbc", "!header sk\xc3\xbc"},
        {"authorization", "Bearer sk\x7f", "!header Bearer sk\x7f"},
        {"authorization", "a-word-that-is-longer-than-schemes-are sk",
         "!header a-word-that-is-longer-than-schemes-are sk"},
        {"x-api-key", "a, b", "!header a, b"},
        {"x-api-key", "", "!header "},
    };
    (void)state;
    check_fields(cases, COUNT(cases));
}

static void ph_08_basic_is_decoded_strictly(void **state) {
    static const struct field_case cases[] = {
        {"authorization", "Basic dXNlcjpwYXNz", "user Basic user | password Basic pass"},
        {"authorization", "basic dXNlcjpwYXNz", "user basic user | password basic pass"},
        {"authorization", "Basic dXNlcjo=", "user Basic user"},
        {"authorization", "Basic OnBhc3M=", "password Basic pass"},
        {"authorization", "Basic dTphOmI=", "user Basic u | password Basic a:b"},
        {"authorization", "Basic dXNlcg==", "!header dXNlcg=="}, /* no colon */
        {"authorization", "Basic Og==", "!header Og=="},         /* nothing but the colon */
        {"authorization", "Basic ", "!header Basic "},
        {"authorization", "Basic dXNlcjo", "!header dXNlcjo"},   /* no padding */
        {"authorization", "Basic dXNlcjp=", "!header dXNlcjp="}, /* spare bits */
        {"authorization", "Basic dXNlcjo==", "!header dXNlcjo=="},
        {"authorization", "Basic  dXNlcjo=", "!header Basic  dXNlcjo="},
        {"authorization", "Basic dXNl cjo=", "!header Basic dXNl cjo="},
        {"authorization", "Basic dTpwAA==", "!header dTpwAA=="}, /* NUL */
        {"authorization", "Basic dToKcA==", "!header dToKcA=="}, /* LF */
        {"authorization", "Basic user:pass", "!header user:pass"},
        {"x-auth", "Basic dXNlcjpwYXNz", "user Basic user | password Basic pass"},
    };
    (void)state;
    check_fields(cases, COUNT(cases));
}

static void pv_08_signing_schemes_and_fields_are_signatures(void **state) {
    static const struct field_case cases[] = {
        {"authorization", "AWS4-HMAC-SHA256 Credential=AKIA/x, SignedHeaders=host, Signature=00",
         "signature AWS4-HMAC-SHA256 Credential=AKIA/x, SignedHeaders=host, Signature=00"},
        {"authorization", "AWS AKIA:sig", "signature AWS AKIA:sig"},
        {"authorization", "Digest username=\"u\", nonce=\"n\"",
         "signature Digest username=\"u\", nonce=\"n\""},
        {"authorization", "Signature keyId=\"k\"", "signature Signature keyId=\"k\""},
        {"authorization", "OAuth oauth_token=\"t\", oauth_signature=\"s\"",
         "signature OAuth oauth_token=\"t\", oauth_signature=\"s\""},
        {"authorization", "TC3-HMAC-SHA256 x=1, y=2", "signature TC3-HMAC-SHA256 x=1, y=2"},
        {"authorization", "DPoP abc", "signature DPoP abc"},
        {"authorization", "SharedKey a:b", "signature SharedKey a:b"},
        {"dpop", "eyJ.e.s", "signature eyJ.e.s"},
        {"Signature", "sig1=:AA==:", "signature sig1=:AA==:"},
        {"signature-input", "sig1=(\"@method\")", "signature sig1=(\"@method\")"},
        {"x-hub-signature-256", "sha256=00", "signature sha256=00"},
        {"x-amz-security-token", "FwoG", "signature FwoG"},
    };
    (void)state;
    check_fields(cases, COUNT(cases));
}

static void hd_07_each_cookie_is_material(void **state) {
    static const struct field_case cases[] = {
        {"cookie", "session=abc", "cookie abc"},
        {"Cookie", "a=1; b=2;c=3", "cookie 1 | cookie 2 | cookie 3"},
        {"cookie", "bare", "cookie bare"},
        {"cookie", "a=b=c", "cookie b=c"},
        {"cookie", " ; ;a=;", "cookie "},
        {"cookie", "", ""},
    };
    (void)state;
    check_fields(cases, COUNT(cases));
    read_field("cookie", "first=1; second=2");
    assert_true(view_equal(m.at[1].name, VIEW("second")));
}

static void pv_09_subprotocols_that_carry_a_token_are_material(void **state) {
    static const struct field_case cases[] = {
        {"sec-websocket-protocol", "openai-insecure-api-key.sk-ATTACKER",
         "subprotocol sk-ATTACKER"},
        {"sec-websocket-protocol",
         "realtime, openai-insecure-api-key.sk-ATTACKER, openai-beta.realtime-v1",
         "subprotocol sk-ATTACKER"},
        {"Sec-WebSocket-Protocol",
         "base64url.bearer.authorization.k8s.io.ZXhhbXBsZS10b2tlbg, base64.binary.k8s.io",
         "subprotocol bearer.authorization.k8s.io.ZXhhbXBsZS10b2tlbg"},
        {"sec-websocket-protocol", "bearer,eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhdHRhY2tlciJ9.c2ln",
         "subprotocol eyJzdWIiOiJhdHRhY2tlciJ9.c2ln"},
        {"sec-websocket-protocol", "access_token, 0123456789abcdef01234567",
         "subprotocol 0123456789abcdef01234567"},
        {"sec-websocket-protocol", "v1, bearer, abcdef", "subprotocol abcdef"},
        {"sec-websocket-protocol", "Authorization,QmVhcmVy, v1", "subprotocol QmVhcmVy"},
        {"sec-websocket-protocol", "graphql-transport-ws", ""},
        {"sec-websocket-protocol", "mqtt, v12.stomp, wamp.2.msgpack.batched, v4.channel.k8s.io",
         ""},
        {"sec-websocket-protocol", "json.reliable.webpubsub.azure.v1, actioncable-v1-json", ""},
    };
    (void)state;
    check_fields(cases, COUNT(cases));
}

/* ---- placeholders where names say nothing ---- */

static char placeholder[PLACEHOLDER_SIZE];

static const char *with_placeholder(const char *before, const char *behind) {
    static char text[256];
    static const uint8_t random[32] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    assert_int_equal(placeholder_make(VIEW("sk-"), random, placeholder), 0);
    snprintf(text, sizeof text, "%s%s%s", before, placeholder, behind);
    return text;
}

static void check_only(enum place place, const char *scheme) {
    assert_int_equal(m.n, 1);
    assert_int_equal(m.at[0].place, place);
    assert_true(view_equal(m.at[0].scheme, view_str(scheme)));
    assert_true(view_equal(m.at[0].token, view_str(placeholder)));
    assert_false(m.at[0].malformed);
}

static void ph_02_a_placeholder_alone_in_any_field_is_material(void **state) {
    (void)state;
    read_field("x-team", with_placeholder("", ""));
    check_only(PLACE_HEADER, "");
    read_field("x-team", with_placeholder("Word ", ""));
    check_only(PLACE_HEADER, "Word");
    read_field("user-agent", with_placeholder("curl/8 (", ")"));
    assert_int_equal(m.n, 0); /* egress looks for what hides elsewhere */
    read_field("authorization", with_placeholder("Bearer ", ""));
    check_only(PLACE_HEADER, "Bearer");
    read_field("sec-websocket-protocol", with_placeholder("openai-insecure-api-key.", ""));
    check_only(PLACE_SUBPROTOCOL, "");
    read_field("authorization", with_placeholder("", " sk-ATTACKER"));
    assert_int_equal(m.n, 1);
    assert_true(m.at[0].malformed);
}

/* A token is read eight bytes at a time. */
static void pv_06_a_byte_that_no_token_has_shows_wherever_it_stands(void **state) {
    static const char odd[] = {',', '"', ' ', 0x1f, 0x7f, (char)0x80, (char)0xff};
    (void)state;
    for (size_t n = 1; n <= 26; n++)
        for (size_t at = 0; at <= n; at++)
            for (size_t k = 0; k < sizeof odd; k++) {
                char text[64] = "Bearer ";
                memset(text + 7, 'a', n);
                if (at < n)
                    text[7 + at] = odd[k];
                read_field("authorization", text);
                assert_int_equal(m.at[0].malformed, at < n);
            }
}

static void ph_08_basic_gives_the_placeholder_of_either_half(void **state) {
    struct buf pair, value;
    (void)state;
    for (int half = 0; half < 2; half++) {
        buf_init(&pair, 256);
        buf_init(&value, 256);
        buf_put_str(&pair, half ? with_placeholder("x:", "") : with_placeholder("", ":"));
        buf_put_str(&value, "Basic ");
        base64_encode(buf_view(&pair), &value);
        clear();
        provenance_field(VIEW("authorization"), buf_view(&value), NULL, &m);
        const struct material *last = &m.at[m.n - 1];
        assert_int_equal(m.n, half ? 2 : 1);
        assert_int_equal(last->place, half ? PLACE_BASIC_PASSWORD : PLACE_BASIC_USER);
        assert_true(view_equal(last->token, view_str(placeholder)));
        buf_free(&pair);
        buf_free(&value);
    }
}

static void ph_04_a_placeholder_in_the_path_or_query_is_material(void **state) {
    (void)state;
    read_target(with_placeholder("/a/", "/b"));
    check_only(PLACE_PATH, "");
    read_target(with_placeholder("/a/x-", "-y/b"));
    assert_int_equal(m.n, 1);
    assert_int_equal(m.at[0].place, PLACE_PATH);
    read_target(with_placeholder("/a?key=", "&x=1"));
    check_only(PLACE_QUERY, "");
    char text[256];
    snprintf(text, sizeof text, "/a?access_token=%%73%%6b%s", placeholder + 2);
    read_target(text);
    check_only(PLACE_QUERY, "");
}

/* ---- keys where names say nothing ---- */

#define GUESSED "sk-live-Qx7LmV2aBcD4eFgH6iJk"

static void pv_02_a_key_of_a_known_form_is_material_in_any_field(void **state) {
    static const struct field_case cases[] = {
        {"X-Access", GUESSED, "header " GUESSED},
        {"X-Access", "Custom k=\"" GUESSED "\", v=1", "header " GUESSED},
        {"Referer", "https://x.test/?q=" GUESSED "&r=1", "header " GUESSED},
        {"X-Access", "sk-learn-examples-2024-and-more", ""},
    };
    (void)state;
    check_fields(cases, COUNT(cases));
}

/* ---- targets ---- */

struct target_case {
    const char *target, *told;
};

static void check_targets(const struct target_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        read_target(cases[i].target);
        if (strcmp(told(), cases[i].told) != 0)
            fail_msg("%s\n is     %s\n not    %s", cases[i].target, told(), cases[i].told);
    }
}

static void pv_02_a_key_of_a_known_form_is_material_in_any_target(void **state) {
    static const struct target_case cases[] = {
        {"/a?x=" GUESSED "&y=1", "query " GUESSED},
        {"/a?x=%22" GUESSED "%22", "query \"" GUESSED "\""},
        {"/a?" GUESSED, "query " GUESSED},
        {"/a?" GUESSED "=1", "query " GUESSED},
        {"/a?x=1;y=" GUESSED, "query 1;y=" GUESSED " | !query " GUESSED},
        {"/a/" GUESSED "/b", "path " GUESSED},
        {"/a/sk-learn-examples-2024?q=sk-learn-examples-2024", ""},
    };
    (void)state;
    check_targets(cases, COUNT(cases));
}

static void pv_02_query_names_are_compared_decoded_and_without_case(void **state) {
    static const struct target_case cases[] = {
        {"/x?key=k", "query k"},
        {"/x?api_key=k", "query k"},
        {"/x?apikey=k", "query k"},
        {"/x?API-Key=k", "query k"},
        {"/x?ap%69_key=k", "query k"},
        {"/x?ap%69%5Fkey=k", "query k"},
        {"/x?key[]=k", "query k"},
        {"/x?api_key[x]=k", "query k"},
        {"/x?api_key[=k", "query k"},
        {"/x?$httpHeaders=Authorization%3Ak", "query Authorization:k"},
        {"/x?key[0]=k", "query k"},
        {"/x?key%5B%5D=k", "query k"},
        {"/x?user[password]=k", "query k"},
        {"/x?access_token=k", "query k"},
        {"/x?accessToken=k", "query k"},
        {"/x?token=k&auth=l&jwt=m", "query k | query l | query m"},
        {"/x?id_token=k&refresh_token=l&oauth_token=o", "query k | query l | query o"},
        {"/x?password=p&passwd=q&secret=s&client_secret=c",
         "query p | query q | query s | query c"},
        {"/x?private_token=k&session=s&sessionid=t", "query k | query s | query t"},
        {"/x?access_token=a%2Fb+c%20d", "query a/b c d"},
        {"/x?a=1;api_key=k", "!query k"},
        {"/x?a;key=k", "!query k"},
        {"/x?key=a;b", "query a;b"},
        {"/x?q=1&page_token=abc&nextPageToken=d&csrf_token=e&max_tokens=5", ""},
        {"/x?q=api_key&mode=token&sort=key", ""},
        {"/x?key=&token", ""},
        {"/x?x-http-method-override=PUT", ""},
        {"/x", ""},
    };
    (void)state;
    check_targets(cases, COUNT(cases));
}

static void pv_05_presigned_addresses_are_signatures(void **state) {
    static const struct target_case cases[] = {
        {"/b/x?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA&X-Amz-Signature=00",
         "signature AKIA | signature 00"},
        {"/b/x?x-amz-security-token=FwoG", "signature FwoG"},
        {"/b/x?X-Goog-Signature=00&X-Goog-Credential=c", "signature 00 | signature c"},
        {"/b/x?AWSAccessKeyId=AKIA&Expires=1&Signature=s", "signature AKIA | signature s"},
        {"/c/x?sv=2022&se=2030&sp=rw&sig=s%3D", "signature s%3D"},
        {"/c/x?Policy=p&Signature=s&Key-Pair-Id=K", "signature s | signature K"},
        {"/c/x?OSSAccessKeyId=L&Signature=s", "signature L | signature s"},
    };
    (void)state;
    check_targets(cases, COUNT(cases));
}

static void pv_04_secrets_in_paths_are_material(void **state) {
    static const struct target_case cases[] = {
        {"/services/T000/B000/XXXX", "path XXXX"},
        {"/services/T000/B000", ""},
        {"/workflows/T0/A0/123/abc", "path 123"},
        {"/bot123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/sendMessage",
         "path 123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"},
        {"/bot123456%3AAAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/x",
         "path 123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"},
        {"/bots/123", ""},
        {"/bot123456:short/x", ""},
        {"/botany/x", ""},
        {"/hook/4711", "path 4711"},
        {"/hooks/catch/123/abc", "path abc"},
        {"/api/webhooks/1234567890/0a1b2c3d4e5f6a7b8c9d0e1f", "path 0a1b2c3d4e5f6a7b8c9d0e1f"},
        {"/hooks/9z8y7x6w5v4u3t2s1r0q9p8o7n", "path 9z8y7x6w5v4u3t2s1r0q9p8o7n"},
        {"/repos/o/r/hooks/12345678901234567890", ""},
        {"/repos/o/hooks/dependabot-alerts", ""},
        {"/repos/o/hook/issues", ""},
        {"/v1/services/list", ""},
    };
    (void)state;
    check_targets(cases, COUNT(cases));
}

static void pv_02_05_body_names(void **state) {
    static const char *const credentials[] = {
        "access_token",
        "api_key",
        "apiKey",
        "token",
        "client_secret",
        "password",
        "refresh_token",
        "X-Amz-Signature",
        "x-amz-credential",
        "AWSAccessKeyId",
        "x-goog-signature",
        "assertion",
        "auth",
        "X-Amz-Security-Token",
        "user[password]",
        "authorization",
        "api_key[x]",
        "_method", /* PN-09 */
        "x-http-method-override",
    };
    static const char *const others[] = {
        "model",       "messages",   "max_tokens", "key",  "session", "signature",
        "content",     "page_token", "csrf_token", "stop", "sig",     "name",
        "clientToken", "",           "tokens",     "keys", "method",  "httpMethod",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(credentials); i++)
        if (!provenance_body_name(view_str(credentials[i])))
            fail_msg("%s is none", credentials[i]);
    for (size_t i = 0; i < COUNT(others); i++)
        if (provenance_body_name(view_str(others[i])))
            fail_msg("%s is one", others[i]);
}

/* ---- limits ---- */

static void more_than_the_list_holds_is_said(void **state) {
    (void)state;
    clear();
    for (int i = 0; i < MATERIALS_MAX; i++)
        provenance_field(VIEW("x-api-key"), VIEW("k"), NULL, &m);
    assert_int_equal(m.n, MATERIALS_MAX);
    assert_false(m.overflow);
    provenance_field(VIEW("x-api-key"), VIEW("k"), NULL, &m);
    assert_int_equal(m.n, MATERIALS_MAX);
    assert_true(m.overflow);
}

static void two_fields_of_one_name_are_two_materials(void **state) {
    (void)state;
    clear();
    provenance_field(VIEW("authorization"), VIEW("Bearer a"), NULL, &m);
    provenance_field(VIEW("authorization"), VIEW("Bearer b"), NULL, &m);
    assert_string_equal(told(), "header Bearer a | header Bearer b");
}

static void a_name_too_long_to_compare_is_a_credential(void **state) {
    char target[400] = "/x?";
    (void)state;
    memset(target + 3, 'a', 200);
    strcpy(target + 203, "=v");
    read_target(target);
    assert_string_equal(told(), "query v");
}

static void basic_that_does_not_fit_is_refused(void **state) {
    struct buf plain, value;
    (void)state;
    buf_init(&plain, 8192);
    buf_init(&value, 16384);
    for (int i = 0; i < 3000; i++)
        buf_put_u8(&plain, i == 5 ? ':' : 'a');
    buf_put_str(&value, "Basic ");
    base64_encode(buf_view(&plain), &value);
    clear();
    provenance_field(VIEW("authorization"), buf_view(&value), NULL, &m);
    assert_int_equal(m.n, 2);
    assert_false(m.overflow);
    provenance_field(VIEW("authorization"), buf_view(&value), NULL, &m);
    assert_true(m.overflow);
    buf_free(&plain);
    buf_free(&value);
}

/* PV-02: a service may read its key from a field of any name. */
static void pv_02_the_field_that_a_service_reads_is_watched_whatever_its_name(void **state) {
    (void)state;
    static const struct {
        const char *watched, *name, *value, *told;
    } cases[] = {
        {"", "X-Team", "sk-1", ""},
        {"x-team", "X-Team", "sk-1", "header sk-1"},
        {"x-team", "X_Team", "sk-1", "header sk-1"}, /* HD-03 */
        {"x-team", "xteam", "sk-1", "header sk-1"},
        {"x-team", "X-Team", "Bearer sk-1", "header Bearer sk-1"},
        {"x-team", "X-Team", "a, b c", "!header a, b c"},
        {"x-team", "X-Team", "", "!header "},
        {"x-team", "X-Teams", "sk-1", ""},
        {"x-team", "X-Tea", "sk-1", ""},
        {"x-team", "Authorization", "Bearer sk-1", "header Bearer sk-1"},
        {"x-team", "-", "sk-1", ""},
        {"", "-", "sk-1", ""},
        /* what is no credential elsewhere, or a signature */
        {"x-csrf-token", "X-CSRF-Token", "sk-1", "header sk-1"},
        {"signature", "Signature", "sk-1", "header sk-1"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct credential_place place = {.place = PLACE_HEADER,
                                               .name = view_str(cases[i].watched)};
        const struct watched watched = {{&place}, place.name.n > 0};
        clear();
        provenance_field(view_str(cases[i].name), view_str(cases[i].value), &watched, &m);
        if (strcmp(told(), cases[i].told) != 0)
            fail_msg("%s: %s with %s: '%s'", cases[i].name, cases[i].value, cases[i].watched,
                     told());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pv_01_02_credential_fields_are_material),
        cmocka_unit_test(ordinary_fields_are_not),
        cmocka_unit_test(pv_02_the_field_that_a_service_reads_is_watched_whatever_its_name),
        cmocka_unit_test(hd_03_underscore_and_dash_twins_are_one_name),
        cmocka_unit_test(pv_06_authorization_is_one_scheme_and_one_token),
        cmocka_unit_test(pv_06_a_byte_that_no_token_has_shows_wherever_it_stands),
        cmocka_unit_test(ph_08_basic_is_decoded_strictly),
        cmocka_unit_test(pv_08_signing_schemes_and_fields_are_signatures),
        cmocka_unit_test(hd_07_each_cookie_is_material),
        cmocka_unit_test(pv_09_subprotocols_that_carry_a_token_are_material),
        cmocka_unit_test(ph_02_a_placeholder_alone_in_any_field_is_material),
        cmocka_unit_test(ph_08_basic_gives_the_placeholder_of_either_half),
        cmocka_unit_test(ph_04_a_placeholder_in_the_path_or_query_is_material),
        cmocka_unit_test(pv_02_a_key_of_a_known_form_is_material_in_any_field),
        cmocka_unit_test(pv_02_a_key_of_a_known_form_is_material_in_any_target),
        cmocka_unit_test(pv_02_query_names_are_compared_decoded_and_without_case),
        cmocka_unit_test(pv_05_presigned_addresses_are_signatures),
        cmocka_unit_test(pv_04_secrets_in_paths_are_material),
        cmocka_unit_test(pv_02_05_body_names),
        cmocka_unit_test(more_than_the_list_holds_is_said),
        cmocka_unit_test(two_fields_of_one_name_are_two_materials),
        cmocka_unit_test(a_name_too_long_to_compare_is_a_credential),
        cmocka_unit_test(basic_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("provenance", tests, NULL, NULL);
}

/* Names of credentials, and names like them that are none (themes PV, HD). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/credential_name.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check(enum credential_kind ask(struct view), const char *const *names, size_t n,
                  bool credentials) {
    for (size_t i = 0; i < n; i++)
        if ((ask(view_str(names[i])) != CREDENTIAL_NONE) != credentials)
            fail_msg("%s is %s", names[i], credentials ? "none" : "one");
}

static void pv_01_fields_are_found_by_a_word_in_their_name(void **state) {
    static const char *const names[] = {
        "X-JFrog-Art-Api",
        "X-Storage-Pass",
        "X-Passcode",
        "X-Signature-Ed25519",
        "X-Shop-Hmac-Sha256",
        "Token-Id",
        "X-Secret-Id",
        "Cookie2",
        "X-Vercel-Protection-Bypass",
        "X-Authz",
        "vmware-api-session-id",
        "X-Session-Id",
        "X_Session_Id",
        "X.Session.Id",
        "X-SessionId",
        "X-Metabase-Session",
        "X-Session",
        "Session",
        "X-Ops-Authorization-1",
        "X-Ops-Authorization-12",
        "Grpc-Metadata-macaroon",
        "Macaroons",
        "API-Sign",
        "X-Api-Sign",
        "OK-ACCESS-SIGN",
        "OK-ACCESS-PASSPHRASE",
        "X-Passphrase-Text",
        "Authentication",
        "X-Authentication",
        "Authorization2",
        "Authorization-V2",
        "Authorization-Extra",
        "HTTP_AUTHORIZATION",
        "X-Api-Key-Id",
        "X-Api-Token-V2",
        "X-Auth-Token-2",
        "X-Apikey-1",
        "X-Credential",
        "X-Credentials",
        "X-Credential-Value",
    };
    (void)state;
    check(credential_name_in_header, names, COUNT(names), true);
}

static void ordinary_fields_are_none(void **state) {
    static const char *const names[] = {
        "Sec-Fetch-Site",
        "Sec-Fetch-Mode",
        "Sec-Fetch-Dest",
        "Sec-Fetch-User",
        "X-Request-Id",
        "Idempotency-Key",
        "X-CSRF-Token",
        "X-CSRF-Token-1",
        "Lock-Token",
        "If-Match",
        "If-None-Match",
        "If-Modified-Since",
        "If-Unmodified-Since",
        "If-Range",
        "Accept",
        "Accept-Encoding",
        "Accept-Language",
        "Accept-Signature-Input",
        "X-Compass",
        "X-Bypass-Cache",
        "X-Author",
        "X-Tokenizer",
        "Content-Type",
        "Content-Encoding",
        "Content-MD5",
        "Content-Digest",
        "Content-Disposition",
        "X-Amz-Date",
        "X-Amz-Content-Sha256",
        "X-Amz-Target",
        "x-amz-server-side-encryption-aws-kms-key-id",
        "x-amz-server-side-encryption-customer-key-MD5",
        "Anthropic-Version",
        "Anthropic-Beta",
        "OpenAI-Organization",
        "OpenAI-Project",
        "OpenAI-Beta",
        "X-GitHub-Api-Version",
        "X-Stainless-Lang",
        "X-Stainless-Retry-Count",
        "X-Stainless-Runtime-Version",
        "npm-session",
        "Kubectl-Session",
        "npm-command",
        "Sec-WebSocket-Key",
        "Sec-WebSocket-Key1",
        "Sec-WebSocket-Version",
        "Mcp-Session-Id",
        "Mcp-Protocol-Version",
        "X-Claude-Code-Session-Id",
        "session_id",
        "X-Campaign",
        "X-Design",
        "X-Design-System",
        "X-Sessions-Used",
        "X-Authority",
        "X-Amzn-Trace-Id",
        "Prefer-V2",
        "V2",
        "2",
    };
    (void)state;
    check(credential_name_in_header, names, COUNT(names), false);
}

static void pv_02_parameters(void **state) {
    static const char *const credentials[] = {
        "$httpHeaders",       "api_key[x]",   "api_key[",      "api_key[]",     "key[0]",
        "key[a][b]",          "x[api_key]",   "x[0][api_key]", "api_key[x][y]", "passphrase",
        "session[id]",        "auth.api_key", "sentry_key",    "writeKey",      "x.license_key",
        "InstrumentationKey", "user_key",     "passkey",       "session-key",   "hmac_sha256",
        "credential",         "device_code",  "code_verifier", "SAMLResponse",  "credentials",
        "passcode",
    };
    static const char *const others[] = {
        "code",
        "issue_key",
        "monkey",
        "response",
        "credentials_of",
        "",
        "[",
        "[]",
        "[x]",
        "filter[name]",
        "filter[key]",
        "token1",
        "api_key_id",
        "key1",
        "page_token[x]",
        "pagination_token",
        "$skiptoken",
        "$deltatoken",
        "sign_in",
        "sort_key",
        "projectKey",
        "dsn",
        "sessions",
        "authors[]",
        "credential_type",
        "http_header",
    };
    (void)state;
    check(credential_name_in_query, credentials, COUNT(credentials), true);
    check(credential_name_in_query, others, COUNT(others), false);
}

static void pv_05_body_names_are_cut_at_an_index(void **state) {
    static const char *const credentials[] = {
        "api_key[x]",  "api_key[",    "api_key[][]", "x[api_key]", "auth[user]",
        "password[0]", "session[id]", "dsn",         "write_key",
    };
    static const char *const others[] = {
        "key[x]", "messages[0][content]", "x[key]", "token0", "token1", "sign", "PaginationToken",
    };
    (void)state;
    check(credential_name_in_body, credentials, COUNT(credentials), true);
    check(credential_name_in_body, others, COUNT(others), false);
    assert_int_equal(credential_name_in_body(VIEW("api_key\0x")), CREDENTIAL_VALUE);
    assert_int_equal(credential_name_in_body(VIEW("a\0b")), CREDENTIAL_NONE);
    assert_int_equal(credential_name_in_body(VIEW("pwd\0x")), CREDENTIAL_VALUE);
}

static void pv_02_odd_bytes_hide_no_name_but_the_shortest_in_a_body(void **state) {
    (void)state;
    static const char *const credentials[] = {
        "\x01"
        "api\xff_\x7fkey\xfe",
        "t\x80oken",
        "\xef\xbb\xbfpwd",
        "db_pwd\x01\xff",
        "\r\n\tdb\tpwd",
        "\xfe\xff[jwt",
        "my-auth\nToken",
    };
    static const char *const others[] = {"p\xffwd", "a\x80pwd", "x\x01jwt", "a\xc3\xbcth",
                                         "d\xffsn"};
    check(credential_name_in_body, credentials, COUNT(credentials), true);
    check(credential_name_in_body, others, COUNT(others), false);
    assert_int_equal(credential_name_in_query(VIEW("a\x80pwd")), CREDENTIAL_VALUE);
}

static void a_name_of_any_length_is_looked_at_or_counts_as_one(void **state) {
    uint8_t name[CREDENTIAL_LABEL_MAX + 1];
    (void)state;
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % 2 ? '[' : 'b';
    assert_int_equal(credential_name_in_header(view_of(name, sizeof name - 1)), CREDENTIAL_NONE);
    assert_int_equal(credential_name_in_header(view_of(name, sizeof name)), CREDENTIAL_VALUE);
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = 'b';
    assert_int_equal(credential_name_in_header(view_of(name, sizeof name - 1)), CREDENTIAL_NONE);
}

static void names_are_the_same_to_readers_that_disregard_case_and_signs(void **state) {
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"fileUri", "file_uri", true},
        {"X-Token", "xtoken", true},
        {"to\xe2\x84\xaa"
         "en",
         "token", true},
        {"\xc5\xbf"
         "ecret",
         "secret", true},
        {"\xc4\xb0nput", "input", true},
        {"\xc4\xb1nput", "input", true},
        {"n\xc3\xa9", "n", true},
        {"token", "tokens", false},
        {"a1", "a2", false},
        {"\xe2\x84\xab"
         "a",
         "ka", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(credential_name_same(view_str(cases[i].a), view_str(cases[i].b)),
                         cases[i].same);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pv_01_fields_are_found_by_a_word_in_their_name),
        cmocka_unit_test(ordinary_fields_are_none),
        cmocka_unit_test(pv_02_parameters),
        cmocka_unit_test(pv_05_body_names_are_cut_at_an_index),
        cmocka_unit_test(pv_02_odd_bytes_hide_no_name_but_the_shortest_in_a_body),
        cmocka_unit_test(a_name_of_any_length_is_looked_at_or_counts_as_one),
        cmocka_unit_test(names_are_the_same_to_readers_that_disregard_case_and_signs),
    };
    return cmocka_run_group_tests_name("credential_name", tests, NULL, NULL);
}

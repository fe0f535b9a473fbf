#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/dns_message.h"

static bool asks(const char *name, const char *value, const char *query) {
    struct field field = {view_str(name), view_str(value)};
    struct target target = {.query = view_str(query), .has_query = query[0] != 0};
    struct request_facts f = {.target = &target, .fields = &field, .n_fields = 1};
    return dns_message_is_in(&f);
}

static void dn_06_a_question_is_known_by_its_types(void **state) {
    (void)state;
    assert_true(asks("content-type", "application/dns-message", ""));
    assert_true(asks("content-type", "Application/DNS-Message; x=y", ""));
    assert_true(asks("accept", "text/html, application/dns-json;q=0.5", ""));
    assert_true(asks("Accept", "application/dns+json", ""));
    assert_true(asks("content-type", "application/oblivious-dns-message", ""));
    assert_true(asks("accept", "application/dns-udpwireformat", ""));
    assert_false(asks("content-type", "application/json", ""));
    assert_false(asks("content-type", "application/dnsx", ""));
    assert_false(asks("content-type", "text/plain; a=dns-message", ""));
    assert_false(asks("accept", "*/*", ""));
    assert_false(asks("x-other", "application/dns-message", ""));
    assert_false(asks("accept", "", ""));
}

static void dn_06_a_question_is_known_in_a_query(void **state) {
    (void)state;
    static const char message[] = "dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";
    assert_true(asks("accept", "*/*", message));
    assert_true(asks("accept", "*/*", "a=b&DNS=q80BAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB"));
    assert_true(asks("accept", "*/*", "dns=%2B%2fABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB"));
    assert_true(asks("accept", "*/*", "name=a.test&ct=application/dns-json"));
    assert_true(asks("accept", "*/*", "CT=application%2Fdns-message&name=a.test"));
    assert_false(asks("accept", "*/*", "ct=application/json"));
    assert_false(asks("accept", "*/*", "path=/dns-records"));
    assert_false(asks("accept", "*/*", "dns=%2B%2"));
    assert_false(asks("accept", "*/*", "dns=8.8.8.8"));
    assert_false(asks("accept", "*/*", "dns=AAABAAAB"));
    assert_false(asks("accept", "*/*", "dns=exampleexampleexample"));
    assert_false(asks("accept", "*/*", "dns"));
    assert_false(asks("accept", "*/*", "x=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB"));
}

static void dn_06_a_line_is_for_them_when_it_says_so(void **state) {
    (void)state;
    struct view types[] = {view_str("image/png"), view_str("application/dns-message")};
    struct condition type = {.kind = CONDITION_TYPE, .names = types, .n_names = 2};
    struct condition accept = {.kind = CONDITION_HEADER, .name = view_str("accept")};
    struct condition query = {.kind = CONDITION_QUERY, .name = view_str("dns")};
    struct condition other = {.kind = CONDITION_HEADER, .name = view_str("x"), .next = &query};
    assert_false(dns_message_is_named(NULL));
    assert_true(dns_message_is_named(&type));
    assert_true(dns_message_is_named(&accept));
    assert_true(dns_message_is_named(&other));
    query.name = view_str("ct");
    assert_true(dns_message_is_named(&query));
    type.n_names = 1;
    query.no = true;
    assert_false(dns_message_is_named(&type));
    assert_false(dns_message_is_named(&other));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dn_06_a_question_is_known_by_its_types),
        cmocka_unit_test(dn_06_a_question_is_known_in_a_query),
        cmocka_unit_test(dn_06_a_line_is_for_them_when_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

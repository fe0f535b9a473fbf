#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/credential_name.h"
#include "policy/own_field.h"

static const struct {
    const char *name;
    bool removed, own;
} cases[] = {
    {"via", true, true},
    {"expect", true, true},
    {"proxy", true, true},
    {"x-forwarded-for", true, true},
    {"x-http-method-override", true, true},
    {"proxy-authorization", true, true},
    /* what CGI and frameworks take for these */
    {"x_forwarded_for", true, true},
    {"X_HTTP_Method_Override", true, true},
    {"-via", true, true},
    {"content_length", false, true},
    {"Content.Type", false, true},
    {"content.encoding", false, true},
    {"x.forwarded.for", true, true},
    /* other ways to ask for another path, method, host or part */
    {"X-MS-Client-Principal-Name", true, true},
    {"X-Amzn-Oidc-Data", true, true},
    {"Cf-Access-Authenticated-User-Email", true, true},
    {"X-Original-URI", true, true},
    {"X-Original-Path", true, true},
    {"X-Original-Method", true, true},
    {"X-Forwarded-Uri", true, true},
    {"X-Forwarded-Path", true, true},
    {"X-Forwarded-Method", true, true},
    {"X-Envoy-Original-Path", true, true},
    {"X-Host", true, true},
    {"Request-Range", true, true},
    {"Method-Override", true, true},
    {"HTTP-Method-Override", true, true},
    {"X-Method", true, true},
    {"_method", true, true},
    {"Access-Control-Request-Method", false, false},
    {"X-Http-Path-Override", true, true},
    {"X-Forwarded-User", true, true},
    {"X-Forwarded-Preferred-Username", true, true},
    {"Remote-User", true, true},
    {"X-Url-Scheme", true, true},
    {"X-Forwarded", true, true},
    {"X-Forwarded-Client-Cert", true, true},
    {"Forwarded-For", true, true},
    {"X-Original-Forwarded-For", true, true},
    {"X-Middleware-Subrequest", true, true},
    {"Proxy-Host", true, true},
    {"X-Real-Host", true, true},
    /* whatever relays tell, under names that nobody has listed */
    {"X-Forwarded-Tls-Client-Cert-Info", true, true},
    {"X-Forwarded-Roles", true, true},
    {"X-Forwarded-Access-Token", true, true},
    {"X-Auth-Request-Groups", true, true},
    {"X-MS-Client-Principal-Idp", true, true},
    {"X-Amzn-Oidc-Identity", true, true},
    {"Tailscale-User-Name", true, true},
    {"X-Envoy-Original-Method", true, true},
    {"X-Middleware-Request-Host", true, true},
    {"X-My-Remote-User", true, true},
    {"X-Http-Url-Path-Override", true, true},
    {"X-Forwarded-Anything-That-Whatever-Gateway-Chooses-To-Tell-Whoever-Stands-Behind-It", true,
     true},
    {"X-The-Gateway-Of-Somebody-Who-Gives-Whatever-He-Makes-A-Long-Name-Client-IP", true, true},
    {"X-The-Gateway-Of-Somebody-Who-Gives-Whatever-He-Makes-A-Long-Name-Method-Override", true,
     true},
    /* the address of who asks, whatever relay says so */
    {"X-Real-IP", true, true},
    {"Client-IP", true, true},
    {"WL-Proxy-Client-IP", true, true},
    {"X-Azure-ClientIP", true, true},
    {"X-Appengine-User-IP", true, true},
    {"CF-Connecting-IPv6", true, true},
    {"X-Original-Remote-Addr", true, true},
    /* ours, but not to be taken out: the request needs them */
    {"host", false, true},
    {"cookie", false, true},
    {"content-type", false, true},
    {"range", false, true},
    /* others, and near misses */
    {"authorization", false, false},
    {"x-api-key", false, false},
    {"vi", false, false},
    {"viaduct", false, false},
    {"x-forward", false, false},
    {"x-middle", false, false},
    {"override", false, false},
    {"x-user", false, false},
    {"equip", false, false},
    {"x-ip", false, false},
    {"x-original-filename", false, false},
    {"X-The-Gateway-Of-Somebody-Who-Gives-Whatever-He-Makes-A-Long-Name-Client-IP-Or-Not", false,
     false},
    {"hosts", false, false},
    {"", false, false},
    {"-", false, false},
};

static void hd_03_pn_09_what_claims_another_request_is_removed_and_nothing_else(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (own_field_is_removed(view_str(cases[i].name)) != cases[i].removed)
            fail_msg("removed: %s", cases[i].name);
        if (own_field_is(view_str(cases[i].name)) != cases[i].own)
            fail_msg("own: %s", cases[i].name);
    }
}

static void hd_03_names_are_the_same_by_letters_and_digits(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } names[] = {
        {"X-Api-Key", "x_api_key", true},
        {"xapikey", "X-Api-Key", true},
        {"a", "ab", false},
        {"ab", "a", false},
        {"a-", "a", true},
        {"", "", true},
        {"-", "", true},
        {"a", "", false},
        {"x-1", "x-2", false},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (credential_name_same(view_str(names[i].a), view_str(names[i].b)) != names[i].same)
            fail_msg("%s and %s", names[i].a, names[i].b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hd_03_pn_09_what_claims_another_request_is_removed_and_nothing_else),
        cmocka_unit_test(hd_03_names_are_the_same_by_letters_and_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

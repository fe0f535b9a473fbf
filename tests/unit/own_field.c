#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/own_field.h"

#include <stdbool.h>

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
    /* ours, but not to be taken out: the request needs them */
    {"host", false, true},
    {"cookie", false, true},
    {"content-type", false, true},
    /* others, and near misses */
    {"authorization", false, false},
    {"x-api-key", false, false},
    {"vi", false, false},
    {"viaduct", false, false},
    {"x-forwarded", false, false},
    {"", false, false},
};

static void pn_09_what_claims_another_request_is_removed_and_nothing_else(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (own_field_is_removed(view_str(cases[i].name)) != cases[i].removed)
            fail_msg("removed: %s", cases[i].name);
        if (own_field_is(view_str(cases[i].name)) != cases[i].own)
            fail_msg("own: %s", cases[i].name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pn_09_what_claims_another_request_is_removed_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

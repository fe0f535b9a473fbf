#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/suffix.h"

struct suffix_case {
    const char *name;
    bool shared, deep;
};

static const struct suffix_case cases[] = {
    /* of a registry, and of nobody */
    {"com", true, true},
    {"co.uk", true, true},
    {"ck", true, true},
    {"foo.ck", true, true},
    {"www.ck", false, false}, /* an exception in the list */
    {"internal", true, true},
    {"xn--55qx5d.cn", true, true},
    {"xn--p1ai", true, true},
    /* of users */
    {"github.io", true, true},
    {"workers.dev", true, true},
    {"s3.amazonaws.com", true, true},
    {"compute.amazonaws.com", true, true},
    {"eu-west-1.compute.amazonaws.com", true, true},
    /* what the list does not have */
    {"s3.eu-west-1.amazonaws.com", true, true},
    {"blob.core.windows.net", true, true},
    {"storage.googleapis.com", true, true},
    {"eu.web.core.windows.net", true, true},
    {"lambda-url.eu-west-1.on.aws", true, true},
    /* only further below */
    {"amazonaws.com", false, true},
    {"eu-west-1.amazonaws.com", false, true},
    {"core.windows.net", false, true},
    {"windows.net", false, true},
    {"azure.com", false, true},
    {"on.aws", false, true},
    /* of one owner */
    {"example.com", false, false},
    {"example.co.uk", false, false},
    {"user.github.io", false, false},
    {"bucket.s3.amazonaws.com", false, false},
    {"bucket.s3.eu-west-1.amazonaws.com", false, false},
    {"account.blob.core.windows.net", false, false},
    {"myamazonaws.com", false, false},
    {"allowed.test", false, false},
    {"amazonaws.com.example.com", false, false},
};

static void wc_04_domains_of_strangers_are_known(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct suffix_case *c = &cases[i];
        if (suffix_is_shared(view_str(c->name), false) != c->shared)
            fail_msg("%s must%s be shared", c->name, c->shared ? "" : " not");
        if (suffix_is_shared(view_str(c->name), true) != c->deep)
            fail_msg("%s must%s be shared with what is below", c->name, c->deep ? "" : " not");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wc_04_domains_of_strangers_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

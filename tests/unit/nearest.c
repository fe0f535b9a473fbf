#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/nearest.h"
#include "policy/policy.h"

#include <string.h>

static void a_distance_is_the_number_of_changes(void **state) {
    static const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"abc", "", 3},
        {"abc", "abc", 0},
        {"abc", "ABC", 0},
        {"demo-key", "demo-kye", 2},
        {"demo", "demos", 1},
        {"kitten", "sitting", 3},
        {"github-token", "gihtub-token", 2},
        {"a", "bbbbbbbbbb", 10},
    };
    char long_a[NEAREST_MAX + 10], long_b[NEAREST_MAX + 10];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(nearest_distance(view_str(cases[i].a), view_str(cases[i].b)),
                         cases[i].distance);
    memset(long_a, 'a', sizeof long_a);
    memset(long_b, 'b', sizeof long_b);
    assert_int_equal(
        nearest_distance(view_of(long_a, sizeof long_a), view_of(long_b, sizeof long_b)),
        NEAREST_MAX);
}

static void the_nearest_credential_is_that_of_a_service(void **state) {
    static const char text[] = "service a { host a.test; credential demo-key { in header x-api-key "
                               "}; operation o { GET / } }\n"
                               "service b { host b.test; credential other { in header x-api-key }; "
                               "operation o { GET / } }\n"
                               "service c { host c.test; operation o { GET / } }\n";
    struct policy_errors errors;
    struct policy *p;
    struct view nearest;
    (void)state;
    assert_int_equal(policy_load(view_str(text), "policy", &p, &errors), 0);
    assert_true(policy_has_credential(p, VIEW("other"), &nearest));
    assert_false(policy_has_credential(p, VIEW("demo_key"), &nearest));
    assert_true(view_equal(nearest, VIEW("demo-key")));
    policy_free(p);
    assert_int_equal(policy_load(VIEW("service c { host c.test; operation o { GET / } }\n"),
                                 "policy", &p, &errors),
                     0);
    assert_false(policy_has_credential(p, VIEW("demo"), &nearest));
    assert_int_equal(nearest.n, 0);
    policy_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_distance_is_the_number_of_changes),
        cmocka_unit_test(the_nearest_credential_is_that_of_a_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

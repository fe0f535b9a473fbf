#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/merge.h"

#include <string.h>

static const char text[] = "# first\n"
                           "service a { host a.test; operation r { GET /r } }   # of a\n"
                           "sandbox one { grant a r; grant b all }\n"
                           "sandbox two { grant a r uses 3; grant c x note \"a\" }\n"
                           "expect deny as one GET https://b.test/\n";

struct merged {
    struct merge m;
    struct buf out;
};

static void begin(struct merged *t, const char *from) {
    static struct policy_errors errors;
    errors_reset(&errors);
    buf_init(&t->out, 1 << 16);
    assert_int_equal(merge_read(&t->m, view_str(from), "p", &errors), 0);
}

static const char *end(struct merged *t) {
    static char copy[4096];
    merge_print(&t->m, &t->out);
    assert_int_equal(view_cstr(buf_view(&t->out), copy, sizeof copy), 0);
    merge_free(&t->m);
    buf_free(&t->out);
    return copy;
}

static void grant(struct merged *t, const char *sandbox, const char *service,
                  const char *operation) {
    assert_int_equal(merge_grant(&t->m, view_str(sandbox), view_str(service), view_str(operation)),
                     0);
}

static void must_have(const char *all, const char *part) {
    if (!strstr(all, part))
        fail_msg("'%s' is missing in:\n%s", part, all);
}

static void statements_come_to_the_end_of_their_block_and_nothing_is_lost(void **state) {
    struct merged t;
    (void)state;
    begin(&t, text);
    assert_int_equal(merge_add(&t.m, "service", VIEW("a"), VIEW("operation n { POST \"/n\" }\n")),
                     0);
    const char *all = end(&t);
    must_have(all, "# first\nservice a {\n    host a.test\n    operation r { GET /r }\n"
                   "    operation n { POST \"/n\" }\n} # of a\n");
    must_have(all, "grant c x note \"a\"\n");
}

static void a_grant_whose_only_term_is_its_mode_takes_one_more_operation(void **state) {
    struct merged t;
    (void)state;
    begin(&t, "sandbox s { grant a r mode observe; grant b r mode observe uses 3 }\n");
    grant(&t, "s", "a", "w");
    grant(&t, "s", "b", "w");
    const char *all = end(&t);
    must_have(all, "grant a r w mode observe\n");
    must_have(all, "grant b r mode observe uses 3\n    grant b w\n");
}

static void outside_of_blocks_a_statement_stands_behind_the_last_of_its_kind(void **state) {
    struct merged t;
    (void)state;
    begin(&t, text);
    assert_int_equal(merge_add(&t.m, NULL, VIEW(""), VIEW("service n { host n.test }")), 0);
    assert_int_equal(merge_add(&t.m, NULL, VIEW(""), VIEW("guard g { }")), 0);
    const char *all = end(&t);
    const char *a = strstr(all, "service a"), *n = strstr(all, "service n"),
               *one = strstr(all, "sandbox one"), *g = strstr(all, "guard g");
    assert_true(a && n && one && g && a < n && n < one);
    assert_true(strstr(all, "expect deny") < g);
}

static void a_block_that_is_not_there_is_missing(void **state) {
    struct merged t;
    (void)state;
    begin(&t, text);
    assert_int_equal(merge_add(&t.m, "service", VIEW("one"), VIEW("x")), ERR_MISSING);
    assert_int_equal(merge_add(&t.m, "sandbox", VIEW("three"), VIEW("x")), ERR_MISSING);
    must_have(end(&t), "sandbox one {\n    grant a r\n    grant b all\n}\n");
}

static void a_grant_without_terms_is_made_longer(void **state) {
    struct merged t;
    (void)state;
    begin(&t, text);
    grant(&t, "one", "a", "n");
    grant(&t, "one", "a", "m");
    must_have(end(&t), "    grant a r n m\n");
}

/* The terms were meant for what stands there. */
static void a_grant_with_terms_gets_one_beside_it(void **state) {
    struct merged t;
    (void)state;
    begin(&t, text);
    grant(&t, "two", "a", "n");
    grant(&t, "two", "c", "n");
    must_have(end(&t), "    grant a r uses 3\n    grant c x note \"a\"\n    grant a n\n"
                       "    grant c n\n");
}

static void what_is_granted_already_is_not_granted_again(void **state) {
    struct merged t;
    (void)state;
    begin(&t, text);
    grant(&t, "one", "a", "r");
    grant(&t, "one", "b", "n");
    grant(&t, "two", "a", "r");
    const char *all = end(&t);
    must_have(all, "sandbox one {\n    grant a r\n    grant b all\n}\n");
    must_have(all, "sandbox two {\n    grant a r uses 3\n    grant c x note \"a\"\n}\n");
}

static void a_sandbox_that_is_not_there_gets_a_block(void **state) {
    struct merged t;
    (void)state;
    begin(&t, text);
    grant(&t, "three", "a", "r");
    grant(&t, "three", "a", "n");
    must_have(end(&t), "\nsandbox three {\n    grant a r n\n}\n");
    begin(&t, "");
    grant(&t, "three", "a", "r");
    assert_string_equal(end(&t), "sandbox three {\n    grant a r\n}\n");
}

static void a_text_with_errors_is_not_read(void **state) {
    static struct policy_errors errors;
    struct merge m;
    (void)state;
    errors_reset(&errors);
    assert_int_equal(merge_read(&m, VIEW("sandbox one {"), "p", &errors), ERR_BAD);
    assert_true(errors.n > 0);
    merge_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_come_to_the_end_of_their_block_and_nothing_is_lost),
        cmocka_unit_test(outside_of_blocks_a_statement_stands_behind_the_last_of_its_kind),
        cmocka_unit_test(a_grant_whose_only_term_is_its_mode_takes_one_more_operation),
        cmocka_unit_test(a_block_that_is_not_there_is_missing),
        cmocka_unit_test(a_grant_without_terms_is_made_longer),
        cmocka_unit_test(a_grant_with_terms_gets_one_beside_it),
        cmocka_unit_test(what_is_granted_already_is_not_granted_again),
        cmocka_unit_test(a_sandbox_that_is_not_there_gets_a_block),
        cmocka_unit_test(a_text_with_errors_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/field_name.h"
#include "policy/own_field.h"
#include "policy/placeholder.h"

#include <stdio.h>

static void check(struct view name) {
    struct field_name says = field_name_look(name);
    assert_int_equal(says.credential, credential_name_in_header(name));
    assert_int_equal(says.removed, own_field_is_removed(name));
    assert_int_equal(says.names_target, own_field_names_target(name));
    assert_int_equal(says.placeholder, placeholder_inside(name) || placeholder_inside_name(name));
}

static void what_is_remembered_is_what_is_worked_out(void **state) {
    (void)state;
    static const char *const names[] = {
        "authorization", "cookie",      "x-forwarded-for", "via",  "x-amz-copy-source",
        "destination",   "x-api-key",   "accept",          "a",    "user-agent",
        "x_api_key",     "x-api-keys",  "y-api-key",       "x-ap", "authorizatiom",
        "expect",        "destinatiom", "content-type"};
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            check(view_str(names[i]));
    assert_int_equal(field_name_look(VIEW("authorization")).credential, CREDENTIAL_AUTHORIZATION);
    assert_true(field_name_look(VIEW("via")).removed);
    assert_true(field_name_look(VIEW("x-amz-copy-source")).names_target);
    assert_false(field_name_look(VIEW("accept")).removed);
}

/* More names than are remembered, and each of them again: rows are shared, what they say is not. */
static void names_that_share_a_row_do_not_share_a_verdict(void **state) {
    (void)state;
    char name[64];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2000; i++) {
            snprintf(name, sizeof name, "x-%d-%s", i, i % 3 ? "forwarded" : "token");
            check(view_str(name));
            check(view_str(name + 2));
        }
    }
}

static void hd_03_names_of_any_length_are_told_apart_to_the_last_byte(void **state) {
    (void)state;
    char name[160];
    memset(name, 'x', sizeof name);
    check((struct view){NULL, 0});
    for (size_t n = 1; n < sizeof name; n++) {
        size_t tail = n < 6 ? n : 6;
        memcpy(name + n - tail, "-token" + 6 - tail, tail);
        check(view_of(name, n));
        name[n - 1] = 'm';
        check(view_of(name, n));
        memset(name, 'x', n);
    }
}

static void ph_08_a_placeholder_in_a_name_is_seen_each_time(void **state) {
    (void)state;
    char text[PLACEHOLDER_SIZE];
    uint8_t random[32] = {7};
    assert_int_equal(placeholder_make((struct view){NULL, 0}, random, text), 0);
    for (int i = 0; i < 3; i++) {
        assert_true(field_name_look(view_str(text)).placeholder);
        check(view_str(text));
        text[20] = text[20] == 'a' ? 'b' : 'a';
        assert_true(field_name_look(view_str(text)).placeholder);
        check(view_str(text));
        text[2] = 'i';
        assert_false(field_name_look(view_str(text)).placeholder);
        text[2] = 'e';
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_remembered_is_what_is_worked_out),
        cmocka_unit_test(names_that_share_a_row_do_not_share_a_verdict),
        cmocka_unit_test(hd_03_names_of_any_length_are_told_apart_to_the_last_byte),
        cmocka_unit_test(ph_08_a_placeholder_in_a_name_is_seen_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

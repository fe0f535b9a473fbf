#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/run_settings.h"

static void must_tell(const char *file, const char *said, const char *told) {
    struct buf out;
    buf_init(&out, 4096);
    run_settings_quote(file, "/run/x/exeat.conf", view_str(said), &out);
    assert_true(view_equal(buf_view(&out), view_str(told)));
    buf_free(&out);
}

static void what_is_said_of_our_configuration_is_told_of_the_users_settings(void **state) {
    (void)state;
    must_tell("mine", "fatal /run/x/exeat.conf:3: no\n/run/x/exeat.conf:4: no\n",
              "fatal mine:3: no\nmine:4: no\n");
    must_tell("mine", "no word of it\n", "no word of it\n");
}

/* There is no name to put in its place then. */
static void without_settings_the_configuration_is_named_as_it_is(void **state) {
    (void)state;
    must_tell("", "fatal /run/x/exeat.conf:3: no\n", "fatal /run/x/exeat.conf:3: no\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_of_our_configuration_is_told_of_the_users_settings),
        cmocka_unit_test(without_settings_the_configuration_is_named_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

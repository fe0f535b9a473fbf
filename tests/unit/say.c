/* What the launcher says is no order to the terminal, whoever chose the names in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/say.h"

static void says(const char *name, const char *wanted) {
    char said[256] = "";
    int out[2], before = dup(STDERR_FILENO);
    assert_int_equal(pipe(out), 0);
    dup2(out[1], STDERR_FILENO);
    assert_int_equal(run_say("%s: %d", name, 1), -1);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    assert_true(read(out[0], said, sizeof said - 1) > 0);
    assert_string_equal(said, wanted);
    close(before);
    close(out[0]);
    close(out[1]);
}

static void what_orders_a_terminal_is_a_question_mark(void **state) {
    static const struct {
        const char *name, *wanted;
    } cases[] = {
        {"/a b", "exeat: run: /a b: 1\n"},
        {"one\n\ttwo", "exeat: run: one\n\ttwo: 1\n"},
        {"\x1b]0;title\x07", "exeat: run: ?]0;title?: 1\n"},
        {"a\rb\x7f", "exeat: run: a?b?: 1\n"},
        {"\xc2\x9b"
         "31m",
         "exeat: run: ??31m: 1\n"},
        {"\xc3\xa4\xc2\xa0\xc2", "exeat: run: \xc3\xa4\xc2\xa0\xc2: 1\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        says(cases[i].name, cases[i].wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_orders_a_terminal_is_a_question_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

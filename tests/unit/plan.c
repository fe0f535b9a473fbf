#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/plan.h"

static void what_lies_below_a_bind_is_found_at_its_place(void **state) {
    static const struct {
        const char *from, *to, *path, *place;
    } cases[] = {
        {"/home/u", "/home/u", "/home/u/.env", "/home/u/.env"},
        {"/home/u", "/tmp/deep", "/home/u/a/b", "/tmp/deep/a/b"},
        {"/", "/mnt", "/etc/exeat", "/mnt/etc/exeat"},
        {"/home/u", "/home/u", "/home/u", NULL},
        {"/home/u", "/home/u", "/home/us/x", NULL},
        {"/home/u/inner", "/home/u/inner", "/home/u", NULL},
        {"/", "/mnt", "/", NULL},
        {"/a", "/b", "a/x", NULL},
    };
    char place[RUN_PLACE_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run_bind bind = {cases[i].from, cases[i].to};
        assert_int_equal(run_bind_place(&bind, cases[i].path, place), cases[i].place != NULL);
        if (cases[i].place)
            assert_string_equal(place, cases[i].place);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lies_below_a_bind_is_found_at_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/run_links.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder with links in it, in which the tests are. */
static char folder[] = "/tmp/run-links-XXXXXX";

static const char *const links[][2] = {
    {"one", "deep"},     {"two", "one/file"}, {"deep/up", ".././one"},   {"loop", "loop"},
    {"gone", "nowhere"}, {"root", "/"},       {"deep/out", "../../../"},
};
enum { N_LINKS = sizeof links / sizeof *links };

static int make(void **state) {
    (void)state;
    if (!mkdtemp(folder) || chdir(folder) != 0 || mkdir("deep", 0700) != 0)
        return -1;
    FILE *file = fopen("deep/file", "w");
    for (size_t i = 0; i < N_LINKS; i++)
        if (symlink(links[i][1], links[i][0]) != 0)
            return -1;
    return file ? fclose(file) : -1;
}

static int remove_all(void **state) {
    (void)state;
    for (size_t i = 0; i < N_LINKS; i++)
        unlink(links[i][0]);
    unlink("deep/file");
    rmdir("deep");
    return rmdir(folder);
}

/* The links that a name leads through, without the folder, with a blank behind each. */
static const char *through(const char *name) {
    static char text[256];
    struct buf out;
    size_t n = 0;
    buf_init(&out, 1 << 16);
    run_links_put(name, &out);
    assert_true(buf_ok(&out));
    text[0] = 0;
    for (struct view rest = buf_view(&out); rest.n > 0;) {
        struct view path = view_cut(&rest, 0);
        assert_true(view_starts(path, view_str(folder)));
        path = view_skip(path, sizeof folder);
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s ", VIEW_ARG(path));
        assert_true(n < sizeof text);
    }
    buf_free(&out);
    return text;
}

static void each_link_is_named_where_it_is(void **state) {
    static const struct {
        const char *name, *through;
    } cases[] = {
        {"deep/file", ""},
        {"one/file", "one "},
        {"two", "two one "},
        {"./deep//../two", "two one "},
        {"deep/up/file", "deep/up one "},
        {"deep/up/../two", "deep/up one two one "},
        {"root", "root "},
        {"root/nowhere/two", "root "},
        {"gone", "gone "},
        {"one/new/two", "one "},
        {"deep/out/..", "deep/out "},
        {"", ""},
        {"nowhere", ""},
    };
    char absolute[256];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(through(cases[i].name), cases[i].through);
        snprintf(absolute, sizeof absolute, "%s/%s", folder, cases[i].name);
        assert_string_equal(through(absolute), cases[i].through);
    }
}

static void a_loop_and_a_name_without_end_are_left(void **state) {
    static char name[3 * 4096];
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 16);
    run_links_put("loop", &out);
    assert_true(buf_ok(&out) && buf_len(&out) > 0);
    buf_reset(&out);
    memset(name, 'x', sizeof name - 1);
    run_links_put(name, &out);
    assert_int_equal(buf_len(&out), 0);
    buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_link_is_named_where_it_is),
        cmocka_unit_test(a_loop_and_a_name_without_end_are_left),
    };
    return cmocka_run_group_tests(tests, make, remove_all);
}

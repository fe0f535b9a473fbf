#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/child.h"
#include "base/file.h"
#include "daemon/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIG "state s\npolicy policy\nlisten tcp 127.0.0.1:1 { sandbox a }\n"
#define GOOD_POLICY "sandbox a { }\n"
#define BEGIN "-----BEGIN CERTIFICATE-----\n"
#define END "-----END CERTIFICATE-----"

/* ---- a folder with files, and what the load child says about it ---- */

static char folder[64];
static struct buf said;

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/exeat-load-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    static const char *const files[] = {"exeat.conf", "policy", "a.pem", "b.pem"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    buf_free(&said);
    return rmdir(folder);
}

static void put_file(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Runs the child; whether it says that all is good. The rest of what it said is returned. */
static bool load(const char *config, const char *policy, struct view *rest) {
    char path[128];
    put_file("exeat.conf", config);
    put_file("policy", policy);
    snprintf(path, sizeof path, "%s/exeat.conf", folder);
    int fd = memfd_create("said", 0), status;
    assert_true(fd >= 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(dup2(fd, PARENT_FD) == PARENT_FD ? load_main(path) : 2);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    buf_free(&said);
    buf_init(&said, 32 << 20);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(file_read(fd, 32 << 20, &said), 0);
    struct view v = buf_view(&said);
    assert_true(v.n > 0);
    *rest = view_skip(v, 1);
    return v.p[0] != 0;
}

static struct view anchors_of(const char *config) {
    struct view rest;
    struct bundle b;
    if (!load(config, GOOD_POLICY, &rest))
        fail_msg("%.*s", VIEW_ARG(rest));
    assert_int_equal(bundle_read(rest, &b), 0);
    return b.anchors;
}

/* ---- trust anchors ---- */

static void several_trust_files_follow_each_other_on_lines_of_their_own(void **state) {
    (void)state;
    put_file("a.pem", BEGIN "QQ==\n" END);
    put_file("b.pem", "# ours\n" BEGIN "Qg==\n" END "\n");
    struct view anchors = anchors_of(CONFIG "trust file a.pem\ntrust file b.pem\n");
    assert_true(
        view_equal(anchors, VIEW(BEGIN "QQ==\n" END "\n# ours\n" BEGIN "Qg==\n" END "\n\n")));
}

static void the_systems_anchors_are_kept_beside_a_file_only_when_named(void **state) {
    (void)state;
    put_file("a.pem", BEGIN "QQ==\n" END);
    size_t alone = anchors_of(CONFIG "trust file a.pem\n").n;
    size_t system = anchors_of(CONFIG).n;
    size_t named = anchors_of(CONFIG "trust system\n").n;
    size_t both = anchors_of(CONFIG "trust file a.pem\ntrust system\n").n;
    assert_true(system > alone);
    assert_int_equal(named, system);
    assert_int_equal(both, system + alone);
}

static void a_trust_file_without_a_certificate_is_refused(void **state) {
    (void)state;
    struct view rest;
    put_file("a.pem", "-----BEGIN PRIVATE KEY-----\n");
    assert_false(load(CONFIG "trust file a.pem\ntrust system\n", GOOD_POLICY, &rest));
    assert_true(view_search(rest, VIEW("/a.pem: no certificate (PEM) in it\n")) < rest.n);
    assert_false(load(CONFIG "trust file c.pem\n", GOOD_POLICY, &rest));
    assert_true(view_search(rest, VIEW("/c.pem: No such file")) < rest.n);
}

/* ---- errors ---- */

static void errors_of_every_kind_show_their_line_and_a_caret(void **state) {
    (void)state;
    static const struct {
        const char *config, *policy, *says;
    } cases[] = {
        {CONFIG "stat x\n", GOOD_POLICY, "    stat x\n    ^\n"},
        {CONFIG, GOOD_POLICY "sandbox b { grnt x }\n",
         "    sandbox b { grnt x }\n                ^\n"},
        {CONFIG, "sandbox b { }\n", "    listen tcp 127.0.0.1:1 { sandbox a }\n    ^\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct view rest;
        assert_false(load(cases[i].config, cases[i].policy, &rest));
        if (view_search(rest, view_str(cases[i].says)) == rest.n)
            fail_msg("%.*s", VIEW_ARG(rest));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_trust_files_follow_each_other_on_lines_of_their_own),
        cmocka_unit_test(the_systems_anchors_are_kept_beside_a_file_only_when_named),
        cmocka_unit_test(a_trust_file_without_a_certificate_is_refused),
        cmocka_unit_test(errors_of_every_kind_show_their_line_and_a_caret),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

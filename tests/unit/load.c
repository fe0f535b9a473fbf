#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/child.h"
#include "base/file.h"
#include "daemon/load.h"
#include "tests/unit/certificates.h"

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

/* Behind the configuration's text, which comes first, as it was read. */
static struct view bundle_of(struct view said_good) {
    struct reader r = reader_of(said_good);
    struct view config = read_block(&r, 1 << 20);
    assert_true(!r.bad && view_starts(config, VIEW(CONFIG)));
    return r.rest;
}

static struct view anchors_of(const char *config) {
    struct view rest;
    struct bundle b;
    if (!load(config, GOOD_POLICY, &rest))
        fail_msg("%.*s", VIEW_ARG(rest));
    assert_int_equal(bundle_read(bundle_of(rest), &b), 0);
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

#define OF_ITS_OWN                                                                                 \
    "service s { host a.test; upstream ca a.pem; operation r { GET / } }\nsandbox a { grant s r "  \
    "}\n"

static void a_service_has_anchors_of_its_own_from_beside_the_policy(void **state) {
    (void)state;
    struct certificate root = certificate_make(&(struct wish){.cn = "root", .ca = true});
    struct buf pem;
    struct view rest, service, anchors;
    struct bundle b;
    buf_init(&pem, 1 << 16);
    put_pem(&pem, &root);
    buf_put_u8(&pem, 0);
    put_file("a.pem", (const char *)buf_view(&pem).p);
    assert_true(load(CONFIG, OF_ITS_OWN, &rest));
    assert_int_equal(bundle_read(bundle_of(rest), &b), 0);
    rest = b.own_anchors;
    assert_true(bundle_anchors(&rest, &service, &anchors));
    assert_true(view_equal(service, VIEW("s")));
    assert_true(view_starts(anchors, view_head(buf_view(&pem), buf_len(&pem) - 1)));
    assert_int_equal(rest.n, 0);
    buf_free(&pem);
    certificate_free(&root);
}

static void what_is_wrong_with_a_services_anchors_is_said_with_its_place(void **state) {
    (void)state;
    struct view rest;
    char path[128];
    snprintf(path, sizeof path, "%s/a.pem", folder);
    unlink(path);
    assert_false(load(CONFIG, OF_ITS_OWN, &rest));
    assert_true(view_search(rest, VIEW("/a.pem: No such file")) < rest.n);
    assert_true(view_search(rest, VIEW("policy:1:26: `upstream ca` of service s names it\n")) <
                rest.n);
    put_file("a.pem", BEGIN "QQ==\n" END);
    assert_false(load(CONFIG, OF_ITS_OWN, &rest));
    assert_true(view_search(rest, VIEW("/a.pem: none of its certificates can be read\n")) < rest.n);
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
        cmocka_unit_test(what_is_wrong_with_a_services_anchors_is_said_with_its_place),
        cmocka_unit_test(a_service_has_anchors_of_its_own_from_beside_the_policy),
        cmocka_unit_test(errors_of_every_kind_show_their_line_and_a_caret),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/refusal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A /proc of our own below a directory. */
static char root[] = "/tmp/refusal-XXXXXX";

static const char *const folders[] = {"/proc",          "/proc/sys",  "/proc/sys/kernel",
                                      "/proc/sys/user", "/proc/self", "/proc/self/attr"};
enum { N_FOLDERS = sizeof folders / sizeof *folders };

static int make_proc(void **state) {
    char path[256];
    (void)state;
    if (!mkdtemp(root))
        return -1;
    for (size_t i = 0; i < N_FOLDERS; i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        mkdir(path, 0700);
    }
    return 0;
}

static int remove_proc(void **state) {
    char path[256];
    (void)state;
    for (size_t i = N_FOLDERS; i > 0; i--) {
        snprintf(path, sizeof path, "%s%s", root, folders[i - 1]);
        rmdir(path);
    }
    return rmdir(root);
}

static void put(const char *file, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, file);
    if (!text) {
        unlink(path);
        return;
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void the_rule_that_refuses_is_named_with_its_remedy(void **state) {
    static const struct {
        const char *file, *text;
        int why;
        const char *said;
    } cases[] = {
        {"/proc/sys/kernel/unprivileged_userns_clone", "0\n", EPERM,
         "sysctl -w kernel.unprivileged_userns_clone=1"},
        {"/proc/sys/kernel/unprivileged_userns_clone", "1\n", EPERM, "chroot"},
        {"/proc/sys/user/max_user_namespaces", "0\n", ENOSPC, "sysctl -w user.max_user_namespaces"},
        {"/proc/sys/user/max_user_namespaces", "100\n", ENOSPC, "limit of user namespaces"},
        {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", EACCES,
         "apparmor_parser"},
        {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n", EACCES, NULL},
        {"/proc/sys/user/max_net_namespaces", "0\n", ENOSPC, "sysctl -w user.max_net_namespaces"},
        {"/proc/sys/user/max_mnt_namespaces", "0\n", ENOSPC, "sysctl -w user.max_mnt_namespaces"},
        {"/proc/sys/user/max_pid_namespaces", "0\n", ENOSPC, "sysctl -w user.max_pid_namespaces"},
        {"/proc/sys/user/max_ipc_namespaces", "0\n", ENOSPC, "sysctl -w user.max_ipc_namespaces"},
        {"/proc/self/status", "Name:\tx\nSeccomp:\t2\n", EPERM, "seccomp=unconfined"},
        {"/proc/self/status", "Name:\tx\nSeccomp:\t0\n", EPERM, "chroot"},
        {"/proc/self/status", "Name:\tx\n", EINVAL, "CONFIG_USER_NS"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put(cases[i].file, cases[i].text);
        const char *said = refusal_reason(root, cases[i].why);
        put(cases[i].file, NULL);
        assert_ptr_equal(strstr(said, strerror(cases[i].why)), said);
        if (cases[i].said)
            assert_non_null(strstr(said, cases[i].said));
        else
            assert_string_equal(said, strerror(cases[i].why));
    }
}

static void where_our_profile_is_loaded_apparmor_does_not_refuse(void **state) {
    static const char rule[] = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    static const char profile[] = "/proc/self/attr/current";
    (void)state;
    put(rule, "1\n");
    put(profile, "unconfined\n");
    assert_non_null(strstr(refusal_reason(root, EPERM), "AppArmor"));
    put(profile, "exeat (unconfined)\n");
    assert_null(strstr(refusal_reason(root, EPERM), "AppArmor"));
    put(profile, NULL);
    put(rule, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_that_refuses_is_named_with_its_remedy),
        cmocka_unit_test(where_our_profile_is_loaded_apparmor_does_not_refuse),
    };
    return cmocka_run_group_tests(tests, make_proc, remove_proc);
}

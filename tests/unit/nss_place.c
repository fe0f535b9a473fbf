#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/nss_place.h"
#include "cli/nss_store.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SANDBOXES = 3, ROUNDS = 5000 };

struct home {
    char path[64], parent[96], place[128];
};

static int setup(void **state) {
    static struct home h;
    const char *folder = getenv("TMPDIR");
    snprintf(h.path, sizeof h.path, "%.40s/exeat-nss-XXXXXX", folder ? folder : "/tmp");
    assert_non_null(mkdtemp(h.path));
    snprintf(h.parent, sizeof h.parent, "%s/.pki", h.path);
    snprintf(h.place, sizeof h.place, "%s/nssdb", h.parent);
    setenv("HOME", h.path, 1);
    *state = &h;
    return 0;
}

static int teardown(void **state) {
    struct home *h = *state;
    rmdir(h->place);
    rmdir(h->parent);
    return rmdir(h->path);
}

static bool is_there(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* How often it was gone while the sandbox used it. */
static int use(const struct home *h) {
    int gone = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct nss_place p = NSS_PLACE_NONE;
        nss_place_make(&p);
        gone += !is_there(h->place);
        if (rand() % 4 == 0)
            usleep(1);
        gone += !is_there(h->place);
        nss_place_remove(&p);
    }
    return gone;
}

static void need_certutil(void) {
    if (!nss_store_can_be_made())
        skip();
}

static void who_uses_it_has_it_whoever_comes_and_goes_and_nothing_is_left(void **state) {
    const struct home *h = *state;
    need_certutil();
    for (unsigned i = 0; i < SANDBOXES; i++)
        if (fork() == 0) {
            srand(i);
            _exit(use(h) > 0);
        }
    int status, bad = 0;
    while (wait(&status) > 0)
        bad += status != 0;
    assert_int_equal(bad, 0);
    assert_false(is_there(h->parent));
}

static void the_users_own_stays_also_when_two_come_at_once(void **state) {
    const struct home *h = *state;
    struct nss_place one = NSS_PLACE_NONE, two = NSS_PLACE_NONE;
    need_certutil();
    assert_int_equal(mkdir(h->parent, 0700), 0);
    assert_int_equal(mkdir(h->place, 0755), 0);
    /* As it is while another sandbox looks whose it is. */
    int held = open(h->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_EX), 0);
    nss_place_make(&one);
    nss_place_make(&two);
    close(held);
    nss_place_remove(&one);
    nss_place_remove(&two);
    assert_true(is_there(h->place));
}

/* As home folders are where a user has a group of his own. */
static void what_was_made_is_known_where_groups_are_inherited(void **state) {
    const struct home *h = *state;
    struct nss_place p = NSS_PLACE_NONE;
    need_certutil();
    assert_int_equal(chmod(h->path, S_ISGID | 0700), 0);
    nss_place_make(&p);
    assert_true(is_there(h->place));
    nss_place_remove(&p);
    assert_false(is_there(h->parent));
}

/* Of what was made a sandbox sees the outer one. */
static void whoever_locks_it_keeps_nobody_from_it(void **state) {
    const struct home *h = *state;
    struct nss_place one = NSS_PLACE_NONE, two = NSS_PLACE_NONE;
    need_certutil();
    nss_place_make(&one);
    nss_place_remove(&one);
    nss_place_make(&one);
    int held = open(h->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* That of the one who uses it is in the way, as long as he does. */
    assert_int_equal(flock(held, LOCK_EX | LOCK_NB), -1);
    nss_place_remove(&one);
    assert_false(is_there(h->parent));
    close(held);
    assert_int_equal(mkdir(h->parent, S_ISVTX | 0700), 0);
    held = open(h->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_EX), 0);
    nss_place_make(&two);
    assert_true(is_there(h->place));
    nss_place_remove(&two);
    assert_true(!is_there(h->place) && is_there(h->parent));
    close(held);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            who_uses_it_has_it_whoever_comes_and_goes_and_nothing_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(the_users_own_stays_also_when_two_come_at_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_was_made_is_known_where_groups_are_inherited, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(whoever_locks_it_keeps_nobody_from_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ca/mint.h"
#include "cli/ca_store.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOW UINT64_C(1790000000)

static const char *const files[] = {"ca/ca.key",         "ca/ca.pem",
                                    "ca/previous.pem",   "ca/next.key",
                                    "ca/next.pem",       "ca/ca.key.new",
                                    "ca/ca.pem.new",     "ca/next.key.new",
                                    "ca/next.pem.new",   "ca/previous.pem.new",
                                    "public/ca.pem",     "public/bundle.pem",
                                    "public/ca.pem.new", "public/bundle.pem.new",
                                    "public/roots.p12",  "public/roots.p12.new",
                                    "public/wgetrc",     "public/wgetrc.new",
                                    "public/apt.conf",   "public/apt.conf.new",
                                    "public/gitconfig",  "public/gitconfig.new",
                                    "public/php.ini",    "public/php.ini.new",
                                    "public/proxy.php",  "public/proxy.php.new"};

struct place {
    char state[64];
    struct ca_store store;
};

static void place_open(struct place *p) {
    char above[] = "/tmp/exeat-ca-XXXXXX";
    assert_non_null(mkdtemp(above));
    snprintf(p->state, sizeof p->state, "%s/state", above);
    assert_int_equal(ca_store_open(p->state, true, &p->store), 0);
}

static const char *path_of(const struct place *p, const char *name) {
    static char path[8][256];
    static int at;
    at = (at + 1) % 8;
    snprintf(path[at], sizeof path[at], "%s/%s", p->state, name);
    return path[at];
}

static void place_close(struct place *p) {
    ca_store_close(&p->store);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(path_of(p, files[i]));
    rmdir(path_of(p, "ca"));
    rmdir(path_of(p, "public"));
    assert_int_equal(rmdir(p->state), 0);
    *strrchr(p->state, '/') = 0;
    assert_int_equal(rmdir(p->state), 0);
}

static mode_t mode_of(const struct place *p, const char *name) {
    struct stat st;
    assert_int_equal(stat(path_of(p, name), &st), 0);
    return st.st_mode & 07777;
}

static uid_t owner_of(const struct place *p, const char *name) {
    struct stat st;
    assert_int_equal(stat(path_of(p, name), &st), 0);
    return st.st_uid;
}

static struct buf content_of(const struct place *p, const char *name) {
    struct buf b;
    buf_init(&b, 4 << 20);
    int fd = open(path_of(p, name), O_RDONLY);
    uint8_t *at = buf_reserve(&b, 3 << 20);
    ssize_t n = fd < 0 ? -1 : read(fd, at, 3 << 20);
    if (n < 0)
        fail_msg("%s", name);
    buf_commit(&b, (size_t)n);
    close(fd);
    return b;
}

static bool same_content(const struct place *p, const char *a, const char *b) {
    struct buf x = content_of(p, a), y = content_of(p, b);
    bool same = view_equal(buf_view(&x), buf_view(&y));
    buf_free(&x);
    buf_free(&y);
    return same;
}

static bool exists(const struct place *p, const char *name) {
    return access(path_of(p, name), F_OK) == 0;
}

static void copy_file(const struct place *p, const char *from, const char *to) {
    struct buf b = content_of(p, from);
    int fd = open(path_of(p, to), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, buf_view(&b).p, buf_len(&b)), buf_len(&b));
    close(fd);
    buf_free(&b);
}

/* Key and certificate belong together, and the public files hold exactly the certificates there are. */
static void must_fit(const struct place *p, bool previous) {
    struct buf key = content_of(p, "ca/ca.key"), certificate = content_of(p, "ca/ca.pem");
    struct buf public = content_of(p, "public/ca.pem"), bundle = content_of(p, "public/bundle.pem");
    struct mint *m = NULL;
    assert_int_equal(mint_new(buf_view(&key), buf_view(&certificate), &m), 0);
    mint_free(m);
    assert_int_equal(exists(p, "ca/previous.pem"), previous);
    assert_true(view_starts(buf_view(&public), buf_view(&certificate)));
    struct view rest = view_skip(buf_view(&public), buf_len(&certificate));
    if (previous) {
        struct buf old = content_of(p, "ca/previous.pem");
        assert_true(view_equal(rest, buf_view(&old)));
        assert_false(view_equal(buf_view(&certificate), buf_view(&old)));
        buf_free(&old);
    } else {
        assert_int_equal(rest.n, 0);
    }
    assert_true(view_ends(buf_view(&bundle), buf_view(&public)));
    assert_false(exists(p, "ca/next.key"));
    assert_false(exists(p, "ca/next.pem"));
    buf_free(&key);
    buf_free(&certificate);
    buf_free(&public);
    buf_free(&bundle);
}

static void ad_02_a_new_ca_has_the_modes_that_keep_its_key(void **state) {
    (void)state;
    struct place p;
    mode_t mask = umask(0);
    place_open(&p);
    assert_int_equal(ca_store_init(&p.store, NOW), 0);
    assert_int_equal(mode_of(&p, "ca"), 0700);
    assert_int_equal(mode_of(&p, "ca/ca.key"), 0600);
    assert_int_equal(mode_of(&p, "public"), 0755);
    assert_int_equal(mode_of(&p, "public/ca.pem"), 0644);
    assert_int_equal(mode_of(&p, "public/bundle.pem"), 0644);
    must_fit(&p, false);
    struct buf public = content_of(&p, "public/bundle.pem");
    assert_int_equal(view_search(buf_view(&public), VIEW("PRIVATE KEY")), buf_len(&public));
    buf_free(&public);
    umask(mask);
    place_close(&p);
}

static void clients_that_read_settings_files_find_the_bundle_in_them(void **state) {
    static const struct {
        const char *name, *before;
    } cases[] = {
        {"public/wgetrc", "ca_certificate = "},
        {"public/apt.conf", "Acquire::https::CaInfo \""},
        {"public/php.ini", "openssl.cafile = \""},
    };
    (void)state;
    struct place p;
    place_open(&p);
    assert_int_equal(ca_store_init(&p.store, NOW), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[256];
        snprintf(wanted, sizeof wanted, "%s%s/public/bundle.pem", cases[i].before, p.state);
        struct buf text = content_of(&p, cases[i].name);
        assert_true(view_search(buf_view(&text), view_str(wanted)) < buf_len(&text));
        assert_int_equal(view_find(buf_view(&text), '@'), buf_len(&text));
        assert_int_equal(mode_of(&p, cases[i].name), 0644);
        buf_free(&text);
    }
    place_close(&p);
}

static void public_files_are_readable_whatever_the_umask(void **state) {
    (void)state;
    struct place p;
    mode_t mask = umask(077);
    place_open(&p);
    assert_int_equal(ca_store_init(&p.store, NOW), 0);
    assert_int_equal(mode_of(&p, ""), 0755);
    assert_int_equal(mode_of(&p, "public"), 0755);
    assert_int_equal(mode_of(&p, "public/ca.pem"), 0644);
    umask(mask);
    place_close(&p);
}

static void ad_03_two_installations_differ_in_name_and_key(void **state) {
    (void)state;
    struct place p, q;
    struct mint_facts a, b;
    place_open(&p);
    place_open(&q);
    assert_int_equal(ca_store_init(&p.store, NOW), 0);
    assert_int_equal(ca_store_init(&q.store, NOW), 0);
    struct buf x = content_of(&p, "ca/ca.pem"), y = content_of(&q, "ca/ca.pem");
    assert_int_equal(mint_describe(buf_view(&x), &a), 0);
    assert_int_equal(mint_describe(buf_view(&y), &b), 0);
    assert_string_not_equal(a.subject, b.subject);
    assert_memory_not_equal(a.fingerprint, b.fingerprint, sizeof a.fingerprint);
    assert_int_equal(strncmp(a.subject, "CN=exeat CA ", 12), 0);
    assert_int_equal(a.validity.not_before, NOW - 3600);
    assert_int_equal(a.validity.not_after, NOW + 3650 * UINT64_C(86400));
    buf_free(&x);
    buf_free(&y);
    place_close(&p);
    place_close(&q);
}

static void nothing_is_ever_overwritten_by_init(void **state) {
    (void)state;
    static const char *const parts[] = {"ca/ca.key", "ca/ca.pem"};
    struct place p;
    place_open(&p);
    assert_int_equal(ca_store_init(&p.store, NOW), 0);
    assert_int_equal(ca_store_init(&p.store, NOW), ERR_EXISTS);
    for (size_t i = 0; i < 2; i++) {
        copy_file(&p, parts[i], "ca/next.key");
        assert_int_equal(unlink(path_of(&p, parts[i])), 0);
        assert_int_equal(ca_store_init(&p.store, NOW), ERR_EXISTS);
        copy_file(&p, "ca/next.key", parts[i]);
        unlink(path_of(&p, "ca/next.key"));
    }
    must_fit(&p, false);
    place_close(&p);
}

static void two_commands_do_not_work_at_once(void **state) {
    (void)state;
    struct place p;
    struct ca_store second;
    place_open(&p);
    assert_int_equal(ca_store_open(p.state, false, &second), ERR_AGAIN);
    ca_store_close(&second);
    place_close(&p);
}

static void a_rotation_overlaps_until_it_is_finished(void **state) {
    (void)state;
    struct place p;
    place_open(&p);
    assert_int_equal(ca_store_rotate(&p.store, NOW), ERR_MISSING);
    assert_int_equal(ca_store_finish(&p.store), ERR_MISSING);
    assert_int_equal(ca_store_init(&p.store, NOW), 0);
    copy_file(&p, "ca/ca.pem", "ca/ca.pem.new");
    assert_int_equal(ca_store_rotate(&p.store, NOW), 0);
    assert_true(same_content(&p, "ca/ca.pem.new", "ca/previous.pem"));
    must_fit(&p, true);
    assert_int_equal(mode_of(&p, "ca/ca.key"), 0600);
    assert_int_equal(ca_store_rotate(&p.store, NOW), ERR_EXISTS);
    must_fit(&p, true);
    assert_int_equal(ca_store_finish(&p.store), 0);
    must_fit(&p, false);
    assert_int_equal(ca_store_finish(&p.store), ERR_MISSING);
    assert_int_equal(ca_store_rotate(&p.store, NOW), 0);
    must_fit(&p, true);
    place_close(&p);
}

/* Every state that a power cut can leave, by hand. */
static void ad_05_a_rotation_that_was_cut_off_is_taken_up_or_undone(void **state) {
    (void)state;
    struct place p, other;
    place_open(&other);
    assert_int_equal(ca_store_init(&other.store, NOW), 0);
    for (int form = 0; form < 5; form++) {
        place_open(&p);
        assert_int_equal(ca_store_init(&p.store, NOW), 0);
        struct buf key = content_of(&other, "ca/ca.key"), cert = content_of(&other, "ca/ca.pem");
        int fd = open(path_of(&p, "ca/next.key"), O_WRONLY | O_CREAT, 0600);
        size_t kept = form == 1 ? buf_len(&key) / 2 : buf_len(&key);
        assert_int_equal(write(fd, buf_view(&key).p, kept), kept);
        close(fd);
        if (form != 0) { /* 0: only the key was written; 1: it is torn */
            fd = open(path_of(&p, "ca/next.pem"), O_WRONLY | O_CREAT, 0644);
            assert_int_equal(write(fd, buf_view(&cert).p, buf_len(&cert)), buf_len(&cert));
            close(fd);
        }
        if (form >= 3) /* 2: the pair is whole; 3: the old certificate was kept, too */
            copy_file(&p, "ca/ca.pem", "ca/previous.pem");
        if (form == 4) { /* 4: between the two renames */
            assert_int_equal(rename(path_of(&p, "ca/next.key"), path_of(&p, "ca/ca.key")), 0);
            struct buf both;
            buf_init(&both, 1 << 20);
            buf_put(&both, buf_view(&cert));
            struct buf old = content_of(&p, "ca/previous.pem");
            buf_put(&both, buf_view(&old));
            fd = open(path_of(&p, "public/ca.pem"), O_WRONLY | O_TRUNC);
            assert_int_equal(write(fd, buf_view(&both).p, buf_len(&both)), buf_len(&both));
            close(fd);
            fd = open(path_of(&p, "public/bundle.pem"), O_WRONLY | O_TRUNC);
            assert_int_equal(write(fd, buf_view(&both).p, buf_len(&both)), buf_len(&both));
            close(fd);
            buf_free(&old);
            buf_free(&both);
        }
        assert_int_equal(ca_store_rotate(&p.store, NOW), 0);
        must_fit(&p, true);
        struct buf now = content_of(&p, "ca/ca.pem");
        assert_int_equal(view_equal(buf_view(&now), buf_view(&cert)), form >= 2);
        buf_free(&now);
        buf_free(&key);
        buf_free(&cert);
        place_close(&p);
    }
    place_close(&other);
}

static void a_key_that_is_not_the_certificates_is_not_rotated(void **state) {
    (void)state;
    struct place p, other;
    place_open(&p);
    place_open(&other);
    assert_int_equal(ca_store_init(&p.store, NOW), 0);
    assert_int_equal(ca_store_init(&other.store, NOW), 0);
    struct buf key = content_of(&other, "ca/ca.key");
    int fd = open(path_of(&p, "ca/ca.key"), O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, buf_view(&key).p, buf_len(&key)), buf_len(&key));
    close(fd);
    buf_free(&key);
    assert_int_equal(ca_store_rotate(&p.store, NOW), ERR_DENIED);
    assert_false(exists(&p, "ca/previous.pem"));
    place_close(&p);
    place_close(&other);
}

static void ad_05_a_rotation_killed_at_any_moment_ends_well(void **state) {
    (void)state;
    unsigned seed = (unsigned)getpid();
    print_message("seed %u\n", seed);
    srand(seed);
    struct place p;
    place_open(&p);
    assert_int_equal(ca_store_init(&p.store, NOW), 0);
    ca_store_close(&p.store);
    for (int round = 0; round < 100; round++) {
        int gate[2];
        assert_int_equal(pipe(gate), 0);
        pid_t child = fork();
        if (child == 0) {
            struct ca_store s;
            if (ca_store_open(p.state, false, &s) != 0 || write(gate[1], "x", 1) != 1)
                _exit(1);
            (void)!ca_store_rotate(&s, NOW);
            _exit(0);
        }
        char c;
        assert_int_equal(read(gate[0], &c, 1), 1);
        usleep((useconds_t)(rand() % 4000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(gate[0]);
        close(gate[1]);
        assert_int_equal(ca_store_open(p.state, false, &p.store), 0);
        int result = ca_store_rotate(&p.store, NOW);
        if (result != 0)
            assert_int_equal(result, ERR_EXISTS);
        must_fit(&p, true);
        assert_int_equal(ca_store_finish(&p.store), 0);
        must_fit(&p, false);
        ca_store_close(&p.store);
    }
    assert_int_equal(ca_store_open(p.state, false, &p.store), 0);
    place_close(&p);
}

static void what_root_makes_in_the_daemons_state_is_the_daemons(void **state) {
    static const char *const made[] = {"ca",           "public",          "ca/ca.key",
                                       "ca/ca.pem",    "ca/previous.pem", "public/ca.pem",
                                       "public/wgetrc"};
    enum { DAEMON = 61799 };
    struct place p;
    (void)state;
    if (geteuid() != 0)
        skip();
    place_open(&p);
    ca_store_close(&p.store);
    assert_int_equal(rmdir(path_of(&p, "ca")), 0);
    assert_int_equal(rmdir(path_of(&p, "public")), 0);
    assert_int_equal(chown(p.state, DAEMON, DAEMON), 0);
    assert_int_equal(ca_store_open(p.state, true, &p.store), 0);
    assert_int_equal(ca_store_init(&p.store, NOW), 0);
    assert_int_equal(ca_store_rotate(&p.store, NOW), 0);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (owner_of(&p, made[i]) != DAEMON)
            fail_msg("%s belongs to uid %u", made[i], (unsigned)owner_of(&p, made[i]));
    assert_int_equal(mode_of(&p, "ca/ca.key"), 0600);
    place_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ad_02_a_new_ca_has_the_modes_that_keep_its_key),
        cmocka_unit_test(clients_that_read_settings_files_find_the_bundle_in_them),
        cmocka_unit_test(public_files_are_readable_whatever_the_umask),
        cmocka_unit_test(what_root_makes_in_the_daemons_state_is_the_daemons),
        cmocka_unit_test(ad_03_two_installations_differ_in_name_and_key),
        cmocka_unit_test(nothing_is_ever_overwritten_by_init),
        cmocka_unit_test(two_commands_do_not_work_at_once),
        cmocka_unit_test(a_rotation_overlaps_until_it_is_finished),
        cmocka_unit_test(ad_05_a_rotation_that_was_cut_off_is_taken_up_or_undone),
        cmocka_unit_test(a_key_that_is_not_the_certificates_is_not_rotated),
        cmocka_unit_test(ad_05_a_rotation_killed_at_any_moment_ends_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"
#include "base/secret.h"
#include "broker/vault.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char first[] = "sk-live-the-first-value-000000001";
static const char second[] = "sk-live-the-second-value-00000002";
static const uint8_t kek[SEAL_KEY_SIZE] = {1, 2, 3}, other_kek[SEAL_KEY_SIZE] = {9};

struct fixture {
    char directory[64];
    struct vault *vault;
    char why[VAULT_WHY_SIZE];
    struct buf value;
};

static const char *path_in(const struct fixture *f, const char *name) {
    static char path[2][128];
    static int which;
    which = !which;
    snprintf(path[which], sizeof path[which], "%s/%s", f->directory, name);
    return path[which];
}

static int open_with(struct fixture *f, const uint8_t *key) {
    vault_close(f->vault);
    f->why[0] = 0;
    return vault_open(f->directory, key, &f->vault, f->why);
}

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->directory, "/tmp/exeat-vault-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    buf_init_secret(&f->value, SECRET_MAX);
    *state = f;
    assert_int_equal(open_with(f, kek), 0);
    return 0;
}

static int teardown(void **state) {
    static const char *const names[] = {
        "vault.db",
        "vault.head",
        "vault.db-journal",
        "vault.head.new",
        "vault.db.damaged",
        "vault.restored",
        "vault.db.damaged-journal",
        "old.db",
        "old.head",
        "vault.restored-journal",
        "vault.db-wal",
        "vault.db-shm",
    };
    struct fixture *f = *state;
    vault_close(f->vault);
    buf_free(&f->value);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_in(f, names[i]));
    assert_int_equal(rmdir(f->directory), 0);
    free(f);
    assert_int_equal(secret_in_use(), 0);
    return 0;
}

static int add(struct fixture *f, const char *name, const char *value) {
    return vault_add(f->vault, view_str(name), VIEW("sk-"), view_str(value), 1000);
}

static int reveal(struct fixture *f, const char *name, uint32_t *version) {
    buf_reset(&f->value);
    return vault_reveal(f->vault, view_str(name), &f->value, version);
}

static void assert_holds(struct fixture *f, const char *name, const char *value, uint32_t version) {
    uint32_t got = 0;
    assert_int_equal(reveal(f, name, &got), 0);
    assert_true(view_equal(buf_view(&f->value), view_str(value)));
    assert_int_equal(got, version);
}

static void read_path(const char *path, struct buf *out) {
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(file_read(fd, 4 << 20, out), 0);
}

static void write_path(const char *path, struct view v) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, v.p, v.n), (ssize_t)v.n);
    close(fd);
}

static void file_copy(struct fixture *f, const char *from, const char *to) {
    struct buf b;
    buf_init(&b, 8 << 20);
    read_path(path_in(f, from), &b);
    write_path(path_in(f, to), buf_view(&b));
    buf_free(&b);
}

/* ---- what a vault does ---- */

static void a_secret_is_there_after_opening_again(void **state) {
    struct fixture *f = *state;
    assert_int_equal(add(f, "demo", first), 0);
    assert_int_equal(open_with(f, kek), 0);
    assert_holds(f, "demo", first, 1);
    const struct vault_secret *s = inventory_secret(vault_inventory(f->vault), VIEW("demo"));
    assert_string_equal(s->like, "sk-");
    assert_int_equal(s->created, 1000);
}

static void rotation_makes_a_new_version_and_keeps_the_id(void **state) {
    struct fixture *f = *state;
    assert_int_equal(add(f, "demo", first), 0);
    uint64_t id = inventory_secret(vault_inventory(f->vault), VIEW("demo"))->id;
    assert_int_equal(vault_rotate(f->vault, VIEW("demo"), view_str(second), 2000), 0);
    assert_holds(f, "demo", second, 2);
    assert_int_equal(open_with(f, kek), 0);
    assert_holds(f, "demo", second, 2);
    const struct vault_secret *s = inventory_secret(vault_inventory(f->vault), VIEW("demo"));
    assert_true(s->id == id && s->created == 1000 && s->rotated == 2000);
}

static void what_is_not_there_is_missing_and_what_is_there_exists(void **state) {
    struct fixture *f = *state;
    uint32_t version;
    assert_int_equal(reveal(f, "demo", &version), ERR_MISSING);
    assert_int_equal(vault_rotate(f->vault, VIEW("demo"), view_str(first), 1), ERR_MISSING);
    assert_int_equal(vault_remove(f->vault, VIEW("demo")), ERR_MISSING);
    assert_int_equal(vault_drop_sandbox(f->vault, VIEW("agent")), ERR_MISSING);
    assert_int_equal(add(f, "demo", first), 0);
    assert_int_equal(add(f, "demo", second), ERR_EXISTS);
    assert_holds(f, "demo", first, 1);
}

static void put_sandbox(struct fixture *f, const char *name, const char *credential) {
    struct vault_placeholder p = {.fingerprint = {5}};
    struct vault_sandbox s = {.token = {6}, .created = 7, .placeholders = &p, .n = 1};
    strcpy(p.credential, credential);
    strcpy(s.name, name);
    p.secret_id = inventory_secret(vault_inventory(f->vault), view_str(credential))->id;
    assert_int_equal(vault_put_sandbox(f->vault, &s), 0);
}

static void a_removed_secret_takes_its_placeholders_along(void **state) {
    struct fixture *f = *state;
    assert_int_equal(add(f, "demo", first), 0);
    assert_int_equal(add(f, "keep", second), 0);
    put_sandbox(f, "agent", "demo");
    put_sandbox(f, "build", "keep");
    assert_int_equal(vault_remove(f->vault, VIEW("demo")), 0);
    assert_int_equal(open_with(f, kek), 0);
    const struct inventory *v = vault_inventory(f->vault);
    assert_null(inventory_secret(v, VIEW("demo")));
    assert_int_equal(inventory_sandbox(v, VIEW("agent"))->n, 0);
    assert_int_equal(inventory_sandbox(v, VIEW("build"))->n, 1);
    assert_int_equal(inventory_sandbox(v, VIEW("build"))->token[0], 6);
}

static void ph_13_a_name_used_again_gets_another_id(void **state) {
    struct fixture *f = *state;
    assert_int_equal(add(f, "demo", first), 0);
    uint64_t id = inventory_secret(vault_inventory(f->vault), VIEW("demo"))->id;
    assert_int_equal(vault_remove(f->vault, VIEW("demo")), 0);
    assert_int_equal(add(f, "demo", second), 0);
    assert_true(inventory_secret(vault_inventory(f->vault), VIEW("demo"))->id > id);
}

static void ph_05_a_value_is_visible_ascii_of_a_fair_length(void **state) {
    static char longest[SECRET_MAX + 1];
    const struct {
        struct view value;
        bool allow_short, kept;
    } cases[] = {
        {VIEW("0123456789abcdef"), false, true},
        {VIEW("0123456789abcde"), false, false},
        {VIEW("0123456789abcde"), true, true},
        {VIEW("x"), true, true},
        {VIEW(""), true, false},
        {VIEW("0123456789abcdef\n"), false, false},
        {VIEW("0123456789abcdef\r\nX: y"), false, false},
        {VIEW("0123456789\0abcdef"), false, false},
        {VIEW("0123456789 abcdef"), false, false},
        {VIEW("0123456789\tabcdef"), false, false},
        {VIEW("0123456789abcde\x7f"), false, false},
        {VIEW("0123456789abcde\xc3\xa9"), false, false},
        {view_of(longest, SECRET_MAX), false, true},
        {view_of(longest, SECRET_MAX + 1), false, false},
        {VIEW("!~!~!~!~!~!~!~!~"), false, true},
    };
    struct fixture *f = *state;
    memset(longest, 'a', sizeof longest);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why = vault_refuses_value(cases[i].value, cases[i].allow_short);
        assert_int_equal(why == NULL, cases[i].kept);
        if (!cases[i].kept && cases[i].value.n != 15)
            assert_int_equal(vault_add(f->vault, VIEW("bad"), VIEW(""), cases[i].value, 1),
                             ERR_BAD);
    }
    assert_int_equal(vault_add(f->vault, VIEW("long"), VIEW(""), view_of(longest, SECRET_MAX), 1),
                     0);
    uint32_t version;
    assert_int_equal(reveal(f, "long", &version), 0);
    assert_int_equal(buf_len(&f->value), SECRET_MAX);
}

static void xs_05_names_are_short_ascii_words(void **state) {
    static const struct {
        const char *name;
        bool good;
    } cases[] = {
        {"a", true},
        {"demo-key.2_x", true},
        {"0", true},
        {"", false},
        {"A-z", true},
        {"a b", false},
        {".a", false},
        {"-a", false},
        {"a/../b", false},
        {"\xc3\xa9", false},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(vault_name_is_good(view_str(cases[i].name)), cases[i].good);
        assert_int_equal(add(f, cases[i].name, first), cases[i].good ? 0 : ERR_BAD);
    }
    assert_int_equal(add(f, "DEMO-key.2_x", first), ERR_EXISTS);
    assert_int_equal(vault_add(f->vault, VIEW("a\0b"), VIEW(""), view_str(first), 1), ERR_BAD);
}

static void no_value_is_in_any_file(void **state) {
    struct fixture *f = *state;
    struct buf b;
    assert_int_equal(add(f, "demo", first), 0);
    assert_int_equal(vault_rotate(f->vault, VIEW("demo"), view_str(second), 1), 0);
    buf_init(&b, 8 << 20);
    read_path(path_in(f, "vault.db"), &b);
    assert_int_equal(view_search(buf_view(&b), VIEW("sk-live")), buf_len(&b));
    buf_free(&b);
    struct stat st;
    assert_int_equal(stat(path_in(f, "vault.db"), &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
}

/* ---- damage ---- */

/* Opens, and if that works, whatever is read must be what was written. */
static bool opens_with_the_truth(struct fixture *f) {
    uint32_t version;
    if (open_with(f, kek) != 0) {
        assert_null(f->vault);
        assert_true(strlen(f->why) > 0);
        return false;
    }
    assert_int_equal(vault_inventory(f->vault)->n_secrets, 2);
    int result = reveal(f, "demo", &version);
    assert_true(result == 0 ? view_equal(buf_view(&f->value), view_str(second)) && version == 2
                            : result == ERR_CRYPTO);
    assert_int_equal(inventory_sandbox(vault_inventory(f->vault), VIEW("agent"))->token[0], 6);
    return true;
}

static void fill(struct fixture *f) {
    assert_int_equal(add(f, "demo", first), 0);
    assert_int_equal(add(f, "keep", first), 0);
    assert_int_equal(vault_rotate(f->vault, VIEW("demo"), view_str(second), 2), 0);
    put_sandbox(f, "agent", "demo");
    vault_close(f->vault);
    f->vault = NULL;
}

static void ad_06_no_flipped_byte_gives_a_wrong_value(void **state) {
    struct fixture *f = *state;
    struct buf good, head;
    size_t refused = 0;
    fill(f);
    buf_init(&good, 8 << 20);
    buf_init(&head, 8 << 20);
    read_path(path_in(f, "vault.db"), &good);
    read_path(path_in(f, "vault.head"), &head);
    for (size_t i = 0; i < buf_len(&good); i++) {
        uint8_t *at = good.p + good.pos + i;
        /* Pages are mostly unused space: there every 31st byte is enough. */
        if (*at == 0 && i % 31 != 0)
            continue;
        uint8_t mask = (uint8_t)(1u << i % 8 | (i % 3 == 0 ? 0x80u : 0u));
        *at ^= mask;
        write_path(path_in(f, "vault.db"), buf_view(&good));
        refused += !opens_with_the_truth(f);
        vault_close(f->vault);
        f->vault = NULL;
        *at ^= mask;
        write_path(path_in(f, "vault.head"), buf_view(&head));
    }
    assert_true(refused > 500);
    write_path(path_in(f, "vault.db"), buf_view(&good));
    assert_true(opens_with_the_truth(f));
    buf_free(&good);
    buf_free(&head);
}

static void ad_06_no_flipped_byte_of_the_head_is_accepted(void **state) {
    struct fixture *f = *state;
    struct buf head;
    fill(f);
    buf_init(&head, 8 << 20);
    read_path(path_in(f, "vault.head"), &head);
    for (size_t i = 0; i + 1 < buf_len(&head); i++) {
        uint8_t *at = head.p + head.pos + i, was = *at;
        *at ^= 1;
        write_path(path_in(f, "vault.head"), buf_view(&head));
        assert_false(opens_with_the_truth(f));
        *at = was;
    }
    buf_free(&head);
}

static void ad_06_a_cut_file_is_refused(void **state) {
    struct fixture *f = *state;
    struct buf good;
    fill(f);
    buf_init(&good, 8 << 20);
    read_path(path_in(f, "vault.db"), &good);
    for (size_t n = 0; n < buf_len(&good); n += 509) {
        write_path(path_in(f, "vault.db"), view_head(buf_view(&good), n));
        assert_false(opens_with_the_truth(f));
    }
    buf_free(&good);
}

static void ad_06_another_installations_file_is_refused(void **state) {
    struct fixture *f = *state;
    fill(f);
    assert_int_equal(open_with(f, other_kek), ERR_DENIED);
    assert_non_null(strstr(f->why, "another key"));
}

static void ad_06_an_older_file_is_noticed(void **state) {
    struct fixture *f = *state;
    assert_int_equal(add(f, "demo", first), 0);
    file_copy(f, "vault.db", "old.db");
    assert_int_equal(vault_rotate(f->vault, VIEW("demo"), view_str(second), 2), 0);
    vault_close(f->vault);
    f->vault = NULL;
    file_copy(f, "old.db", "vault.db");
    assert_int_equal(open_with(f, kek), ERR_CRYPTO);
    assert_non_null(strstr(f->why, "older"));
}

static void ad_06_a_missing_file_or_head_is_noticed(void **state) {
    struct fixture *f = *state;
    assert_int_equal(add(f, "demo", first), 0);
    file_copy(f, "vault.db", "old.db");
    vault_close(f->vault);
    f->vault = NULL;
    unlink(path_in(f, "vault.db"));
    assert_int_equal(open_with(f, kek), ERR_CRYPTO);
    assert_non_null(strstr(f->why, "vault.db is missing"));
    assert_int_equal(access(path_in(f, "vault.db"), F_OK), -1);
    file_copy(f, "old.db", "vault.db");
    unlink(path_in(f, "vault.head"));
    assert_int_equal(open_with(f, kek), ERR_CRYPTO);
    assert_non_null(strstr(f->why, "vault.head is missing"));
}

/* Through the store alone, as somebody would who has the file and no key. */
static void ad_06_rows_cannot_be_taken_back_or_away(void **state) {
    struct fixture *f = *state;
    struct store *s;
    bool fresh;
    struct buf body;
    static const uint8_t kinds[] = {ROW_SECRET, ROW_SANDBOX, ROW_STATE};
    static const char *const names[] = {"keep", "agent", ""};
    assert_int_equal(add(f, "demo", first), 0);
    buf_init(&body, STORE_BODY_MAX);
    vault_close(f->vault);
    f->vault = NULL;
    assert_int_equal(store_open(path_in(f, "vault.db"), false, &s, &fresh), 0);
    assert_int_equal(store_get(s, ROW_SECRET, VIEW("demo"), &body), 0);
    store_close(s);
    assert_int_equal(open_with(f, kek), 0);
    assert_int_equal(add(f, "keep", first), 0);
    assert_int_equal(vault_rotate(f->vault, VIEW("demo"), view_str(second), 2), 0);
    put_sandbox(f, "agent", "demo");
    vault_close(f->vault);
    f->vault = NULL;
    file_copy(f, "vault.db", "old.db");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(store_open(path_in(f, "vault.db"), false, &s, &fresh), 0);
        assert_int_equal(store_drop(s, kinds[i], view_str(names[i])), 0);
        store_close(s);
        assert_false(opens_with_the_truth(f));
        file_copy(f, "old.db", "vault.db");
    }
    assert_int_equal(store_open(path_in(f, "vault.db"), false, &s, &fresh), 0);
    assert_int_equal(store_put(s, &(struct row){ROW_SECRET, VIEW("demo"), buf_view(&body)}), 0);
    store_close(s);
    assert_false(opens_with_the_truth(f));
    file_copy(f, "old.db", "vault.db");
    assert_true(opens_with_the_truth(f));
    buf_free(&body);
}

/* ---- copies and keys ---- */

static void a_backup_restores_and_what_came_later_is_gone(void **state) {
    struct fixture *f = *state;
    struct buf image;
    buf_init(&image, STORE_IMAGE_MAX);
    assert_int_equal(add(f, "demo", first), 0);
    assert_int_equal(vault_backup(f->vault, &image), 0);
    assert_int_equal(vault_rotate(f->vault, VIEW("demo"), view_str(second), 2), 0);
    assert_int_equal(add(f, "late", second), 0);
    uint64_t counter = vault_counter(f->vault);
    assert_int_equal(vault_restore(&f->vault, f->directory, kek, buf_view(&image), f->why), 0);
    assert_true(vault_counter(f->vault) > counter);
    assert_int_equal(open_with(f, kek), 0);
    assert_holds(f, "demo", first, 1);
    assert_null(inventory_secret(vault_inventory(f->vault), VIEW("late")));
    assert_int_equal(add(f, "more", second), 0);
    buf_free(&image);
}

static void a_bad_copy_changes_nothing(void **state) {
    struct fixture *f = *state;
    struct buf image;
    buf_init(&image, STORE_IMAGE_MAX);
    assert_int_equal(add(f, "demo", first), 0);
    assert_int_equal(vault_backup(f->vault, &image), 0);
    assert_int_equal(vault_rotate(f->vault, VIEW("demo"), view_str(second), 2), 0);
    const struct view bad[] = {
        VIEW(""), VIEW("no database at all, only some text that is long enough to be one"),
        view_head(buf_view(&image), buf_len(&image) - 4096), view_skip(buf_view(&image), 1)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(vault_restore(&f->vault, f->directory, kek, bad[i], f->why), 0);
        assert_holds(f, "demo", second, 2);
    }
    assert_int_equal(vault_restore(&f->vault, f->directory, other_kek, buf_view(&image), f->why),
                     ERR_DENIED);
    assert_int_equal(open_with(f, kek), 0);
    assert_holds(f, "demo", second, 2);
    buf_free(&image);
}

static void a_damaged_vault_is_restored_and_kept_aside(void **state) {
    static const char *const damaged[] = {"vault.db", "vault.head"};
    struct fixture *f = *state;
    struct buf image;
    buf_init(&image, STORE_IMAGE_MAX);
    assert_int_equal(add(f, "demo", first), 0);
    assert_int_equal(vault_backup(f->vault, &image), 0);
    for (size_t i = 0; i < 2; i++) {
        vault_close(f->vault);
        f->vault = NULL;
        write_path(path_in(f, damaged[i]), VIEW("damaged"));
        assert_int_not_equal(open_with(f, kek), 0);
        assert_int_equal(vault_restore(&f->vault, f->directory, kek, buf_view(&image), f->why), 0);
        assert_holds(f, "demo", first, 1);
        assert_int_equal(access(path_in(f, "vault.db.damaged"), F_OK), 0);
    }
    buf_free(&image);
}

static void a_rekey_keeps_the_values_and_ends_the_old_key(void **state) {
    struct fixture *f = *state;
    assert_int_equal(add(f, "demo", first), 0);
    assert_int_equal(add(f, "keep", second), 0);
    assert_int_equal(vault_rekey(f->vault, other_kek), 0);
    assert_holds(f, "demo", first, 1);
    assert_int_equal(vault_rotate(f->vault, VIEW("keep"), view_str(first), 2), 0);
    assert_int_equal(open_with(f, kek), ERR_DENIED);
    assert_int_equal(open_with(f, other_kek), 0);
    assert_holds(f, "demo", first, 1);
    assert_holds(f, "keep", first, 2);
}

/* ---- kills ---- */

/* Writes without end: each name's value ends in its version, and a rekey to the same key now and then. */
static void write_for_ever(struct fixture *f, int report) {
    static const char *const names[] = {"one", "two", "three"};
    for (unsigned i = 0;; i++) {
        const char *name = names[i % 3];
        const struct vault_secret *s = inventory_secret(vault_inventory(f->vault), view_str(name));
        char value[128];
        snprintf(value, sizeof value, "value-of-%s-version-%08u", name, s ? s->version + 1 : 1);
        int result =
            s ? vault_rotate(f->vault, view_str(name), view_str(value), i) : add(f, name, value);
        if (i % 7 == 6)
            result = vault_rekey(f->vault, kek);
        uint64_t counter = vault_counter(f->vault);
        if (result != 0 || write(report, &counter, sizeof counter) != sizeof counter)
            _exit(1);
    }
}

/*
 * The test's own other processes, by executing itself: an arena is not inherited.
 * "open DIR" tells by its exit code what opening gave, "write DIR" writes until it is killed.
 */
static int other_process(char **argv) {
    struct fixture f = {.vault = NULL};
    if (strlen(argv[2]) >= sizeof f.directory || secret_arena_open(1 << 20) != 0)
        return 100;
    strcpy(f.directory, argv[2]);
    int result = open_with(&f, kek);
    if (strcmp(argv[1], "write") == 0 && result == 0)
        write_for_ever(&f, STDOUT_FILENO);
    return -result;
}

static pid_t start_other(const struct fixture *f, const char *what, int *report) {
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(fds[1], STDOUT_FILENO);
        execl("/proc/self/exe", "vault", what, f->directory, (char *)NULL);
        _exit(101);
    }
    close(fds[1]);
    *report = fds[0];
    return child;
}

static void only_one_process_has_the_vault_open(void **state) {
    struct fixture *f = *state;
    int report, status;
    waitpid(start_other(f, "open", &report), &status, 0);
    close(report);
    assert_int_equal(WEXITSTATUS(status), -ERR_EXISTS);
}

/* Lets the writer make some changes, kills it a little later; the last counter that it reported as done. */
static uint64_t kill_a_writer(const struct fixture *f, unsigned changes, unsigned microseconds) {
    uint64_t counter = 0, seen = 0;
    int report, status;
    pid_t child = start_other(f, "write", &report);
    for (unsigned i = 0; i < changes; i++)
        assert_int_equal(read(report, &seen, sizeof seen), sizeof seen);
    usleep(microseconds);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    do
        counter = seen;
    while (read(report, &seen, sizeof seen) == sizeof seen);
    close(report);
    return counter;
}

static void ad_05_a_kill_at_any_moment_leaves_the_old_or_the_new_state(void **state) {
    enum { KILLS = 60 };
    struct fixture *f = *state;
    for (unsigned i = 0; i < KILLS; i++) {
        vault_close(f->vault);
        f->vault = NULL;
        uint64_t done = kill_a_writer(f, i % 9, i * 137 % 4000);
        assert_int_equal(open_with(f, kek), 0);
        assert_true(vault_counter(f->vault) >= done);
        const struct inventory *v = vault_inventory(f->vault);
        for (size_t k = 0; k < v->n_secrets; k++) {
            char value[128];
            snprintf(value, sizeof value, "value-of-%s-version-%08u", v->secrets[k].name,
                     v->secrets[k].version);
            assert_holds(f, v->secrets[k].name, value, v->secrets[k].version);
        }
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(a_secret_is_there_after_opening_again),
        TEST(rotation_makes_a_new_version_and_keeps_the_id),
        TEST(what_is_not_there_is_missing_and_what_is_there_exists),
        TEST(a_removed_secret_takes_its_placeholders_along),
        TEST(ph_13_a_name_used_again_gets_another_id),
        TEST(ph_05_a_value_is_visible_ascii_of_a_fair_length),
        TEST(xs_05_names_are_short_ascii_words),
        TEST(no_value_is_in_any_file),
        TEST(only_one_process_has_the_vault_open),
        TEST(ad_06_no_flipped_byte_gives_a_wrong_value),
        TEST(ad_06_no_flipped_byte_of_the_head_is_accepted),
        TEST(ad_06_a_cut_file_is_refused),
        TEST(ad_06_another_installations_file_is_refused),
        TEST(ad_06_an_older_file_is_noticed),
        TEST(ad_06_a_missing_file_or_head_is_noticed),
        TEST(ad_06_rows_cannot_be_taken_back_or_away),
        TEST(a_backup_restores_and_what_came_later_is_gone),
        TEST(a_bad_copy_changes_nothing),
        TEST(a_damaged_vault_is_restored_and_kept_aside),
        TEST(a_rekey_keeps_the_values_and_ends_the_old_key),
        TEST(ad_05_a_kill_at_any_moment_leaves_the_old_or_the_new_state),
    };
    umask(077);
    log_open("vault", LOG_FATAL);
    if (argc == 3)
        return other_process(argv);
    if (secret_arena_open(1 << 20) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

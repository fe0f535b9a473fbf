/* What control asks of the broker: secrets, sandboxes, and the vault as a whole. */
#include "tests/unit/broker_world.h"

/* ---- the operator's requests ---- */

static void ph_05_values_are_checked_before_they_are_kept(void **state) {
    static const struct {
        const char *value;
        int result;
    } cases[] = {
        {"0123456789abcdef\n", 0},
        {"0123456789abcdef\n\n", ERR_BAD},
        {"0123456789abcdef\r\n", ERR_BAD},
        {"0123456789 abcdef", ERR_BAD},
        {"0123456789abcde", ERR_BAD},
        {"", ERR_BAD},
        {"\n", ERR_BAD},
        {"0123456789\r\nX: abcdef", ERR_BAD},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(give(w, BROKER_SECRET_ADD, "key", cases[i].value), cases[i].result);
        if (cases[i].result == 0)
            assert_int_equal(ask(w, BROKER_SECRET_REMOVE, "key"), 0);
        w->control.n = w->parent.n = 1;
    }
}

static void ph_05_too_long_a_value_is_refused(void **state) {
    static char longest[SECRET_MAX + 3];
    struct world *w = *state;
    memset(longest, 'x', SECRET_MAX + 2);
    assert_int_equal(give(w, BROKER_SECRET_ADD, "key", longest), ERR_LIMIT);
    longest[SECRET_MAX + 1] = 0;
    assert_int_equal(give(w, BROKER_SECRET_ADD, "key", longest), ERR_BAD);
    longest[SECRET_MAX] = '\n';
    assert_int_equal(give(w, BROKER_SECRET_ADD, "key", longest), 0);
}

static void short_values_need_a_word(void **state) {
    struct world *w = *state;
    struct ask a = {.type = BROKER_SECRET_ADD, .name = "pin", .allow_short = true};
    assert_int_equal(ask_fd(w, &a, memory_file(VIEW("1234"))), 0);
}

static void a_request_that_cannot_be_is_refused_with_a_sentence(void **state) {
    static const struct {
        uint16_t type;
        const char *name, *value;
        int result;
        const char *says;
    } cases[] = {
        {BROKER_SECRET_ADD, "demo", value_1, ERR_EXISTS, "rotate"},
        {BROKER_SECRET_ADD, "DEMO", value_1, ERR_EXISTS, "case"},
        {BROKER_SECRET_ADD, "no good", value_1, ERR_BAD, "letters"},
        {BROKER_SECRET_ADD, "", value_1, ERR_BAD, "letters"},
        {BROKER_SECRET_ROTATE, "none", value_1, ERR_MISSING, "no secret"},
        {BROKER_SECRET_REMOVE, "none", NULL, ERR_MISSING, "no secret"},
        {BROKER_SANDBOX_ADD, "nobody", NULL, ERR_MISSING, "declare"},
        {BROKER_SANDBOX_REMOVE, "worker", NULL, ERR_MISSING, "nothing was issued"},
    };
    struct world *w = *state;
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_1), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int result = cases[i].value ? give(w, cases[i].type, cases[i].name, cases[i].value)
                                    : ask(w, cases[i].type, cases[i].name);
        assert_int_equal(result, cases[i].result);
        assert_says(w, cases[i].says);
    }
    struct ask like = {.type = BROKER_SECRET_ADD, .name = "more", .like = "sk ant"};
    assert_int_equal(ask_fd(w, &like, memory_file(view_str(value_1))), ERR_BAD);
}

static void a_credential_without_a_secret_is_an_error_that_names_it(void **state) {
    struct world *w = *state;
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "worker"), ERR_MISSING);
    assert_says(w, "exeat secret add demo");
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "idle"), 0);
}

static void adding_a_sandbox_is_answered_only_when_it_is_in_use(void **state) {
    struct world *w = *state;
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_1), 0);
    size_t before = w->control.n;
    send_ask(w, &(struct ask){.type = BROKER_SANDBOX_ADD, .name = "worker"}, -1);
    settle(w);
    settle(w);
    assert_int_equal(w->control.n, before);
    struct told told = told_by(last_of(&w->parent, ROLE_REGISTRY));
    assert_true(told.registry.n > 0 && view_equal(told.sandbox, VIEW("worker")));
    assert_int_equal(told.change, REGISTRY_ISSUED);
    /* A generation with an earlier registry is not the one. */
    say_in_use(w, told.state - 1);
    settle(w);
    assert_int_equal(w->control.n, before);
    send_generation(w);
    settle(w);
    assert_int_equal(w->control.n, before + 1);
    assert_int_equal(done(w, &w->control.got[before]), 0);
    assert_true(view_starts(w->text, VIEW("{\"name\":\"worker\",\"token\":\"ext_")));
}

/* The registry that it brought is in no generation by itself, and the newest is in none yet. */
static void a_later_registry_in_use_answers_who_waits_for_an_earlier_one(void **state) {
    struct world *w = *state;
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_1), 0);
    size_t before = w->control.n;
    send_ask(w, &(struct ask){.type = BROKER_SANDBOX_ADD, .name = "worker"}, -1);
    settle(w);
    send_ask(w, &(struct ask){.type = BROKER_SANDBOX_ADD, .name = "other"}, -1);
    settle(w);
    uint64_t second = told_by(last_of(&w->parent, ROLE_REGISTRY)).state;
    send_ask(w, &(struct ask){.type = BROKER_SANDBOX_ADD, .name = "idle"}, -1);
    settle(w);
    assert_int_equal(w->control.n, before);
    say_in_use(w, second);
    settle(w);
    assert_int_equal(w->control.n, before + 2);
    send_generation(w);
    settle(w);
    assert_int_equal(w->control.n, before + 3);
}

/* Also when what is left is as the generation in use has it: another one is on its way. */
static void a_sandbox_that_goes_at_once_takes_what_was_issued_with_it(void **state) {
    struct world *w = *state;
    size_t before = w->control.n;
    send_ask(w, &(struct ask){.type = BROKER_SANDBOX_ADD, .name = "idle"}, -1);
    settle(w);
    send_ask(w, &(struct ask){.type = BROKER_SANDBOX_REMOVE, .name = "idle"}, -1);
    settle(w);
    assert_int_equal(w->control.n, before);
    assert_int_equal(told_by(last_of(&w->parent, ROLE_REGISTRY)).registry.n, 0);
    /* What the operator ends ends at once. */
    assert_int_equal(told_by(last_of(&w->parent, ROLE_REGISTRY)).change, REGISTRY_OTHER);
    send_generation(w);
    settle(w);
    assert_int_equal(w->control.n, before + 2);
}

static void what_is_there_is_listed_without_values(void **state) {
    struct world *w = *state;
    add_all(w);
    assert_int_equal(ask(w, BROKER_SECRET_LIST, NULL), 0);
    assert_true(view_starts(w->text, VIEW("[{\"name\":\"demo\",\"like\":\"sk-\",\"version\":1,")));
    assert_int_equal(ask(w, BROKER_SANDBOX_LIST, NULL), 0);
    static const char *const parts[] = {
        "{\"name\":\"worker\",\"declared\":true,\"registered\":true,\"issued\":[\"demo\"],\"not_"
        "issued\":[]}",
        "{\"name\":\"other\",\"declared\":true,\"registered\":false,\"issued\":[],\"not_issued\":["
        "\"demo\"]}",
        "{\"name\":\"idle\",\"declared\":true,\"registered\":false,\"issued\":[],\"not_issued\":[]"
        "}",
    };
    for (size_t i = 0; i < 3; i++)
        assert_says(w, parts[i]);
}

static void each_request_leaves_a_record(void **state) {
    struct world *w = *state;
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_1), 0);
    assert_true(recorded(w, "secret_added", "demo"));
    assert_int_equal(give(w, BROKER_SECRET_ROTATE, "demo", value_1), 0);
    assert_true(recorded(w, "secret_rotated", "demo"));
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "worker"), 0);
    assert_true(recorded(w, "sandbox_added", ""));
    assert_int_equal(ask(w, BROKER_SANDBOX_REMOVE, "worker"), 0);
    assert_true(recorded(w, "sandbox_removed", ""));
    assert_int_equal(ask(w, BROKER_SECRET_REMOVE, "demo"), 0);
    assert_true(recorded(w, "secret_removed", "demo"));
    assert_int_equal(give(w, BROKER_SECRET_ROTATE, "demo", value_1), ERR_MISSING);
    assert_false(recorded(w, "secret_rotated", "demo"));
}

static void a_slow_pipe_does_not_stall_the_broker(void **state) {
    struct world *w = *state;
    int fds[2];
    add_all(w);
    assert_int_equal(pipe(fds), 0);
    size_t before = w->control.n;
    send_ask(w, &(struct ask){.type = BROKER_SECRET_ADD, .name = "slow"}, fds[0]);
    assert_int_equal(write(fds[1], "0123456789", 10), 10);
    settle(w);
    assert_lent(ask_right(w), 1, value_1);
    assert_int_equal(write(fds[1], "abcdefghij", 10), 10);
    settle(w);
    assert_int_equal(w->control.n, before);
    close(fds[1]);
    assert_int_equal(done(w, await(w, &w->control, before)), 0);
}

static void a_cancelled_request_reads_no_more(void **state) {
    struct world *w = *state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    uint32_t id = send_ask(w, &(struct ask){.type = BROKER_SECRET_ADD, .name = "slow"}, fds[0]);
    settle(w);
    channel_send(w->control.channel, BROKER_CANCEL, id, 0, VIEW(""));
    settle(w);
    settle(w);
    assert_int_equal(write(fds[1], "x", 1), -1);
    close(fds[1]);
    assert_int_equal(ask(w, BROKER_SECRET_LIST, NULL), 0);
    assert_true(view_equal(w->text, VIEW("[]")));
}

/* ---- the vault as a whole ---- */

static int backup(struct world *w) {
    int fd = memfd_create("copy", MFD_CLOEXEC), given = dup(fd);
    assert_int_equal(ask_fd(w, &(struct ask){.type = BROKER_VAULT_BACKUP}, given), 0);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void a_backup_brings_a_secret_back(void **state) {
    struct world *w = *state;
    add_all(w);
    int copy = backup(w);
    assert_int_equal(give(w, BROKER_SECRET_ROTATE, "demo", value_2), 0);
    assert_int_equal(ask(w, BROKER_SANDBOX_REMOVE, "worker"), 0);
    assert_int_equal(ask_fd(w, &(struct ask){.type = BROKER_VAULT_RESTORE}, copy), 0);
    assert_true(recorded(w, "vault_restored", ""));
    assert_says(w, "\"sandboxes_back\":[\"worker\"]");
    assert_says(w, "\"secrets_back\":[\"demo\"]");
    assert_lent(ask_right(w), 1, value_1);
}

static void a_bad_copy_is_refused_and_nothing_changes(void **state) {
    struct world *w = *state;
    add_all(w);
    assert_int_not_equal(
        ask_fd(w, &(struct ask){.type = BROKER_VAULT_RESTORE}, memory_file(VIEW("no copy"))), 0);
    assert_true(recorded(w, "vault_failed", ""));
    assert_lent(ask_right(w), 1, value_1);
}

static void a_rekeyed_vault_opens_with_the_new_key_after_a_restart(void **state) {
    struct world *w = *state;
    add_all(w);
    struct ask rekey = {.type = BROKER_VAULT_REKEY};
    assert_int_equal(ask_fd(w, &rekey, memory_file(VIEW("short"))), ERR_BAD);
    assert_int_equal(ask_fd(w, &rekey, memory_file(VIEW(KEY_B))), 0);
    stop(w);
    start(w, VIEW(KEY_B));
    assert_lent(ask_right(w), 1, value_1);
}

static void ad_06_a_vault_that_cannot_be_opened_is_locked_and_says_why(void **state) {
    static const struct {
        const char *key, *says;
    } cases[] = {
        {KEY_B, "another key"},
        {"", "exeat vault init"},
        {"zz", "64 hexadecimal digits"},
        {KEY_A "more", "64 hexadecimal digits"},
    };
    struct world *w = *state;
    add_all(w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stop(w);
        start(w, view_str(cases[i].key));
        struct view registry = told_by(last_of(&w->parent, ROLE_REGISTRY)).registry;
        struct registry_entry only;
        assert_true(registry_next(&registry, &only) && only.kind == REGISTRY_LOCKED);
        assert_int_equal(registry.n, 0);
        assert_refused(ask_right(w), REASON_BROKER_UNAVAILABLE);
        assert_int_equal(ask(w, BROKER_SECRET_LIST, NULL), ERR_DENIED);
        assert_says(w, cases[i].says);
        struct got *g = settle(w);
        struct view status = view_of(g->body, g->n);
        assert_true(view_search(status, VIEW("\"vault\":\"locked\"")) < status.n);
        assert_true(view_search(status, view_str(cases[i].says)) < status.n);
    }
    stop(w);
    start(w, VIEW(KEY_A));
    assert_lent(ask_right(w), 1, value_1);
}

static void ad_06_a_locked_vault_is_mended_by_a_copy(void **state) {
    struct world *w = *state;
    char path[128];
    add_all(w);
    int copy = backup(w);
    stop(w);
    snprintf(path, sizeof path, "%s/vault.db", w->directory);
    assert_int_equal(truncate(path, 5000), 0);
    start(w, VIEW(KEY_A));
    assert_refused(ask_right(w), REASON_BROKER_UNAVAILABLE);
    assert_int_equal(ask_fd(w, &(struct ask){.type = BROKER_VAULT_RESTORE}, copy), 0);
    assert_lent(ask_right(w), 1, value_1);
}

static void control_that_breaks_the_contract_is_dropped_and_may_come_again(void **state) {
    struct world *w = *state;
    channel_send(w->control.channel, BROKER_SECRET_REMOVE, 1, 0, VIEW("xy"));
    settle(w);
    settle(w);
    assert_true(w->control.closed);
    assert_non_null(last_of(&w->parent, ROLE_BAD_PEER));
    channel_free(w->control.channel);
    connect_peer(w, &w->control, ROLE_CONTROL, 0);
    assert_int_equal(ask(w, BROKER_SECRET_LIST, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ph_05_values_are_checked_before_they_are_kept),
        TEST(ph_05_too_long_a_value_is_refused),
        TEST(short_values_need_a_word),
        TEST(a_request_that_cannot_be_is_refused_with_a_sentence),
        TEST(a_credential_without_a_secret_is_an_error_that_names_it),
        TEST(adding_a_sandbox_is_answered_only_when_it_is_in_use),
        TEST(a_later_registry_in_use_answers_who_waits_for_an_earlier_one),
        TEST(a_sandbox_that_goes_at_once_takes_what_was_issued_with_it),
        TEST(what_is_there_is_listed_without_values),
        TEST(each_request_leaves_a_record),
        TEST(a_slow_pipe_does_not_stall_the_broker),
        TEST(a_cancelled_request_reads_no_more),
        TEST(a_backup_brings_a_secret_back),
        TEST(a_bad_copy_is_refused_and_nothing_changes),
        TEST(a_rekeyed_vault_opens_with_the_new_key_after_a_restart),
        TEST(ad_06_a_vault_that_cannot_be_opened_is_locked_and_says_why),
        TEST(ad_06_a_locked_vault_is_mended_by_a_copy),
        TEST(control_that_breaks_the_contract_is_dropped_and_may_come_again),
    };
    return cmocka_run_group_tests(tests, start_group, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/issue.h"
#include "policy/bundle.h"

#include <string.h>

static struct vault_secret secrets[] = {
    {.name = "demo", .like = "sk-ant-", .id = 4, .version = 1},
    {.name = "git", .like = "ghp_", .id = 9, .version = 2},
    {.name = "plain", .like = "", .id = 11, .version = 1},
};
static struct inventory inventory = {.secrets = secrets, .n_secrets = 3};
static const struct view credentials[] = {{(const uint8_t *)"git", 3},
                                          {(const uint8_t *)"demo", 4}};

static void count_up(void *p, size_t n) {
    static uint8_t next;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = next++;
}

static struct issued issue(issue_random *random) {
    struct issued i;
    struct view which;
    assert_int_equal(
        issue_sandbox(&inventory, VIEW("agent"), credentials, 2, random, 77, &i, &which), 0);
    return i;
}

static void a_token_is_256_bits_in_base_62(void **state) {
    static const struct {
        uint8_t first, last;
        const char *text;
    } cases[] = {
        {0, 0, "ext_0000000000000000000000000000000000000000000"},
        {0, 61, "ext_000000000000000000000000000000000000000000z"},
        {0, 62, "ext_0000000000000000000000000000000000000000010"},
    };
    uint8_t most[32];
    char token[TOKEN_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t random[32] = {cases[i].first};
        random[31] = cases[i].last;
        issue_token(random, token);
        assert_string_equal(token, cases[i].text);
    }
    memset(most, 0xff, sizeof most);
    issue_token(most, token);
    assert_int_equal(strlen(token), TOKEN_SIZE - 1);
    assert_true(strcmp(token, "ext_z") < 0);
}

static void ph_12_placeholders_have_the_prefix_of_their_secret(void **state) {
    struct issued i = issue(random_bytes);
    (void)state;
    assert_int_equal(i.sandbox.n, 2);
    assert_memory_equal(i.values[0], "ghp_exeat", 9);
    assert_memory_equal(i.values[1], "sk-ant-exeat", 12);
    for (size_t k = 0; k < 2; k++)
        assert_true(placeholder_is(view_str(i.values[k])));
    assert_string_not_equal(i.values[0] + 4, i.values[1] + 7);
    issued_free(&i);
}

static void only_fingerprints_stay(void **state) {
    uint8_t digest[DIGEST_SIZE];
    struct issued i = issue(count_up);
    (void)state;
    digest_sha256(view_str(i.token), digest);
    assert_memory_equal(i.sandbox.token, digest, DIGEST_SIZE);
    digest_sha256(view_str(i.values[1]), digest);
    assert_memory_equal(i.sandbox.placeholders[1].fingerprint, digest, DIGEST_SIZE);
    assert_string_equal(i.sandbox.placeholders[1].credential, "demo");
    assert_int_equal(i.sandbox.placeholders[1].secret_id, 4);
    assert_int_equal(i.sandbox.created, 77);
    issued_free(&i);
}

static void a_credential_without_a_secret_is_named(void **state) {
    static const struct view wanted[] = {{(const uint8_t *)"demo", 4},
                                         {(const uint8_t *)"gone", 4}};
    struct issued i;
    struct view which;
    (void)state;
    assert_int_equal(issue_sandbox(&inventory, VIEW("agent"), wanted, 2, count_up, 1, &i, &which),
                     ERR_MISSING);
    assert_true(view_equal(which, VIEW("gone")));
    assert_int_equal(issue_sandbox(&inventory, VIEW("no good"), wanted, 1, count_up, 1, &i, &which),
                     ERR_BAD);
}

static void the_answer_is_json(void **state) {
    struct issued i = issue(count_up);
    struct buf b, want;
    (void)state;
    buf_init(&b, 4096);
    buf_init(&want, 4096);
    issued_write(&i, &b);
    buf_printf(&want,
               "{\"name\":\"agent\",\"token\":\"%s\",\"placeholders\":[{\"credential\":\"git\","
               "\"value\":\"%s\"},{\"credential\":\"demo\",\"value\":\"%s\"}],\"replaces\":false}",
               i.token, i.values[0], i.values[1]);
    assert_true(view_equal(buf_view(&b), buf_view(&want)));
    buf_free(&b);
    buf_free(&want);
    issued_free(&i);
}

static void the_registry_has_a_token_and_each_placeholder(void **state) {
    struct issued i = issue(count_up);
    struct inventory v = inventory;
    struct registry_entry e;
    struct buf b;
    (void)state;
    v.sandboxes = &i.sandbox;
    v.n_sandboxes = 1;
    buf_init(&b, 4096);
    issue_registry(&v, &b);
    struct view rest = buf_view(&b);
    assert_true(registry_next(&rest, &e));
    assert_int_equal(e.kind, REGISTRY_TOKEN);
    assert_true(view_equal(e.sandbox, VIEW("agent")));
    assert_memory_equal(e.fingerprint, i.sandbox.token, FINGERPRINT_SIZE);
    for (size_t k = 0; k < 2; k++) {
        assert_true(registry_next(&rest, &e));
        assert_int_equal(e.kind, REGISTRY_PLACEHOLDER);
        assert_true(view_equal(e.credential, credentials[k]));
        assert_memory_equal(e.fingerprint, i.sandbox.placeholders[k].fingerprint, FINGERPRINT_SIZE);
    }
    assert_false(registry_next(&rest, &e));
    assert_true(view_is_empty(rest));
    buf_free(&b);
    issued_free(&i);
}

static void ph_11_a_near_miss_is_not_covered(void **state) {
    struct issued i = issue(random_bytes);
    struct inventory v = inventory;
    uint8_t f[DIGEST_SIZE];
    (void)state;
    v.sandboxes = &i.sandbox;
    v.n_sandboxes = 1;
    memcpy(f, i.sandbox.placeholders[1].fingerprint, sizeof f);
    assert_true(issue_covers(&v, VIEW("agent"), VIEW("demo"), f));
    assert_false(issue_covers(&v, VIEW("agent"), VIEW("git"), f));
    assert_false(issue_covers(&v, VIEW("agen"), VIEW("demo"), f));
    assert_false(issue_covers(&v, VIEW("AGENT"), VIEW("demo"), f));
    assert_false(issue_covers(&v, VIEW("agent"), VIEW("plain"), f));
    assert_false(issue_covers(&v, VIEW("agent"), VIEW("demo"), i.sandbox.token));
    for (size_t k = 0; k < sizeof f; k++) {
        f[k] ^= 1;
        assert_false(issue_covers(&v, VIEW("agent"), VIEW("demo"), f));
        f[k] ^= 1;
    }
    issued_free(&i);
}

static void ph_13_a_secret_added_again_does_not_revive_its_placeholders(void **state) {
    struct issued i = issue(random_bytes);
    struct vault_secret again[] = {{.name = "demo", .id = 20, .version = 1}};
    struct inventory v = {
        .secrets = again, .n_secrets = 1, .sandboxes = &i.sandbox, .n_sandboxes = 1};
    (void)state;
    assert_false(
        issue_covers(&v, VIEW("agent"), VIEW("demo"), i.sandbox.placeholders[1].fingerprint));
    v.n_secrets = 0;
    assert_false(
        issue_covers(&v, VIEW("agent"), VIEW("demo"), i.sandbox.placeholders[1].fingerprint));
    issued_free(&i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_256_bits_in_base_62),
        cmocka_unit_test(ph_12_placeholders_have_the_prefix_of_their_secret),
        cmocka_unit_test(only_fingerprints_stay),
        cmocka_unit_test(a_credential_without_a_secret_is_named),
        cmocka_unit_test(the_answer_is_json),
        cmocka_unit_test(the_registry_has_a_token_and_each_placeholder),
        cmocka_unit_test(ph_11_a_near_miss_is_not_covered),
        cmocka_unit_test(ph_13_a_secret_added_again_does_not_revive_its_placeholders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

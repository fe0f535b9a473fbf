#include "tests/unit/guard_flow.h"

static void secrets_are_kept_until_their_last_time(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    assert_int_equal(guard_set_add(set, view_str(other), VIEW("key"), 0, 200), 0);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 4, 150), 0);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 4, 120), 0);
    assert_int_equal(guard_set_count(set), 2);
    guard_set_expire(set, 149);
    assert_int_equal(guard_set_count(set), 2);
    guard_set_expire(set, 150);
    assert_int_equal(guard_set_count(set), 1);
    uint8_t copy[sizeof secret];
    memcpy(copy, secret, strlen(secret));
    assert_int_equal(guard_mask(set, copy, strlen(secret)), 0);
    memcpy(copy, other, strlen(other));
    assert_int_equal(guard_mask(set, copy, strlen(other)), 1);
    guard_set_expire(set, 200);
    assert_int_equal(guard_set_count(set), 0);
    guard_set_free(set);
}

static void a_longer_prefix_makes_the_public_head_longer(void **state) {
    (void)state;
    struct guard_set *set = guard_set_new(8, RUN, 9);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 4, 100), 0);
    char text[128];
    fragment_at(9, 25, text);
    assert_int_equal(guard_mask(set, (uint8_t *)text, strlen(text)), 1);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 16, 90), 0);
    assert_int_equal(guard_set_count(set), 1);
    fragment_at(9, 25, text);
    assert_int_equal(guard_mask(set, (uint8_t *)text, strlen(text)), 0);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 4, 100), 0);
    assert_int_equal(guard_mask(set, (uint8_t *)text, strlen(text)), 0);
    guard_set_expire(set, 99);
    assert_int_equal(guard_set_count(set), 1);
    guard_set_free(set);
}

static void what_cannot_be_guarded_is_refused(void **state) {
    (void)state;
    static uint8_t big[GUARD_SECRET_MAX + 1];
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (uint8_t)(0x21 + (i * i + i / 7) % 90);
    struct guard_set *set = guard_set_new(2, RUN, 1);
    assert_int_equal(guard_set_add(set, VIEW("1234567"), VIEW("key"), 0, 1), ERR_BAD);
    assert_int_equal(guard_set_add(set, view_of(big, sizeof big), VIEW("key"), 0, 1), ERR_BAD);
    assert_int_equal(guard_set_add(set, VIEW("12345678"), VIEW("key"), 0, 1), 0);
    assert_int_equal(guard_set_add(set, view_of(big, GUARD_SECRET_MAX), VIEW("key"), 0, 1), 0);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 0, 1), ERR_LIMIT);
    uint8_t text[] = "pin 12345678.";
    assert_int_equal(guard_mask(set, text, sizeof text - 1), 1);
    assert_string_equal((char *)text, "pin ********.");
    assert_int_equal(guard_mask(set, big, GUARD_SECRET_MAX), 1);
    guard_set_free(set);
}

static size_t masked_of(struct guard_set *set, size_t from, size_t to) {
    char text[128];
    fragment_at(from, to, text);
    return guard_mask(set, (uint8_t *)text, strlen(text));
}

static void another_run_holds_for_what_is_lent_already(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    size_t head = spelling_public_head(view_str(secret), 4, RUN);
    assert_int_equal(masked_of(set, head, head + 12), 0);
    assert_int_equal(guard_set_limit(set, 8, 12), 0);
    assert_int_equal(masked_of(set, head, head + 12), 1);
    assert_int_equal(masked_of(set, head, head + 11), 0);
    char text[128];
    for (char *c = (char *)memcpy(text, secret, sizeof secret); *c; c++)
        *c = (char)to_lower((uint8_t)*c);
    assert_int_equal(guard_mask(set, (uint8_t *)text + head, 12), 1);
    assert_int_equal(guard_set_limit(set, 8, 20), 0);
    assert_int_equal(masked_of(set, head, head + 19), 0);
    assert_int_equal(masked_of(set, head, head + 20), 1);
    guard_set_free(set);
}

static void another_run_keeps_the_longest_prefix(void **state) {
    (void)state;
    struct guard_set *set = guard_set_new(8, 24, 9);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 15, 100), 0);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 20, 100), 0);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 4, 100), 0);
    assert_int_equal(guard_set_limit(set, 8, 12), 0);
    assert_int_equal(masked_of(set, 8, 31), 0);
    assert_int_equal(masked_of(set, 8, 32), 1);
    guard_set_free(set);
}

static void another_number_of_secrets_holds_for_the_next(void **state) {
    (void)state;
    struct guard_set *set = guard_set_new(1, RUN, 1);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 4, 100), 0);
    assert_int_equal(guard_set_add(set, view_str(other), VIEW("key"), 0, 100), ERR_LIMIT);
    assert_int_equal(guard_set_limit(set, 2, RUN), 0);
    assert_int_equal(guard_set_add(set, view_str(other), VIEW("key"), 0, 100), 0);
    assert_int_equal(guard_set_limit(set, 1, RUN), 0);
    assert_int_equal(guard_set_count(set), 2);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 16, 200), 0);
    assert_int_equal(guard_set_add(set, view_str(jwt), VIEW("key"), 0, 100), ERR_LIMIT);
    guard_set_expire(set, 100);
    assert_int_equal(guard_set_count(set), 1);
    assert_int_equal(guard_set_add(set, view_str(jwt), VIEW("key"), 0, 300), ERR_LIMIT);
    guard_set_expire(set, 200);
    assert_int_equal(guard_set_add(set, view_str(jwt), VIEW("key"), 0, 300), 0);
    guard_set_free(set);
}

/* The arena is full: what is lent stays guarded by the run it was guarded by. */
static void a_run_without_memory_changes_nothing(void **state) {
    (void)state;
    struct guard_set *set = set_of(secret, NULL);
    size_t head = spelling_public_head(view_str(secret), 4, RUN);
    void *all[64];
    size_t n = 0, size = (size_t)4 << 20;
    while (n < 64 && size >= 64)
        if ((all[n] = secret_alloc(size)) != NULL)
            n++;
        else
            size /= 2;
    assert_int_equal(guard_set_limit(set, 8, 12), ERR_MEMORY);
    assert_int_equal(masked_of(set, head, head + 15), 0);
    assert_int_equal(masked_of(set, head, head + 16), 1);
    while (n > 0)
        secret_free(all[--n]);
    assert_int_equal(guard_set_limit(set, 8, 12), 0);
    assert_int_equal(masked_of(set, head, head + 12), 1);
    guard_set_free(set);
}

static void a_full_arena_refuses_the_newcomer_and_guards_the_rest(void **state) {
    (void)state;
    struct guard_set *set = guard_set_new(600, RUN, 3);
    assert_int_equal(guard_set_add(set, view_str(secret), VIEW("key"), 4, 1), 0);
    uint8_t value[2048];
    int result = 0;
    size_t n = 1;
    for (; n < 600 && result == 0; n++) {
        for (size_t i = 0; i < sizeof value; i++)
            value[i] = (uint8_t)('A' + (i * n * 31 + i * i + n) % 57);
        result = guard_set_add(set, view_of(value, sizeof value), VIEW("key"), 0, 1);
    }
    assert_int_equal(result, ERR_MEMORY);
    assert_int_equal(guard_set_count(set), n - 1);
    struct text t = {.n = 0};
    put(&t, view_str(secret), true);
    assert_int_equal(guard_mask(set, t.in, t.n), 1);
    assert_memory_equal(t.in, t.out, t.n);
    guard_set_free(set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(secrets_are_kept_until_their_last_time),
        TEST(a_longer_prefix_makes_the_public_head_longer),
        TEST(what_cannot_be_guarded_is_refused),
        TEST(another_run_holds_for_what_is_lent_already),
        TEST(another_run_keeps_the_longest_prefix),
        TEST(another_number_of_secrets_holds_for_the_next),
        TEST(a_run_without_memory_changes_nothing),
        TEST(a_full_arena_refuses_the_newcomer_and_guards_the_rest),
    };
    return cmocka_run_group_tests(tests, open_arena, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/secret.h"
#include "broker/seal.h"

#include <stdlib.h>
#include <string.h>

static const char secret_text[] = "sk-live-0123456789abcdefghijklmnop";

struct fixture {
    struct seal_keys *keys, *others;
    struct buf wrapped, box, plain;
    struct seal_label label;
};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    uint8_t kek[SEAL_KEY_SIZE] = {1}, other[SEAL_KEY_SIZE] = {2};
    f->keys = seal_keys_new(kek);
    f->others = seal_keys_new(other);
    f->label = (struct seal_label){7, 3, VIEW("demo")};
    buf_init(&f->wrapped, 1024);
    buf_init(&f->box, 16384);
    buf_init_secret(&f->plain, 16384);
    int result = seal_envelope(f->keys, &f->label, view_str(secret_text), &f->wrapped, &f->box);
    *state = f;
    return result;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    seal_keys_free(f->keys);
    seal_keys_free(f->others);
    buf_free(&f->wrapped);
    buf_free(&f->box);
    buf_free(&f->plain);
    free(f);
    assert_int_equal(secret_in_use(), 0);
    return 0;
}

static int reveal(struct fixture *f, const struct seal_label *l) {
    buf_reset(&f->plain);
    return seal_reveal(f->keys, l, buf_view(&f->wrapped), buf_view(&f->box), &f->plain);
}

static void what_was_sealed_opens_again(void **state) {
    struct fixture *f = *state;
    assert_int_equal(reveal(f, &f->label), 0);
    assert_true(view_equal(buf_view(&f->plain), view_str(secret_text)));
    assert_true(secret_owns(buf_view(&f->plain).p));
}

static void the_plain_text_is_nowhere_in_what_is_kept(void **state) {
    struct fixture *f = *state;
    struct view box = buf_view(&f->box);
    assert_int_equal(box.n, strlen(secret_text) + SEAL_OVERHEAD);
    assert_int_equal(view_search(box, VIEW("0123")), box.n);
    assert_int_equal(buf_len(&f->wrapped), SEAL_WRAPPED_SIZE);
}

static void another_id_version_or_name_does_not_open(void **state) {
    struct fixture *f = *state;
    const struct seal_label others[] = {
        {8, 3, VIEW("demo")}, {7, 2, VIEW("demo")}, {7, 4, VIEW("demo")},
        {7, 3, VIEW("dem")},  {7, 3, VIEW("demp")}, {7, 3, VIEW("")},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(reveal(f, &others[i]), ERR_CRYPTO);
        assert_int_equal(buf_len(&f->plain), 0);
    }
}

static void another_key_does_not_open(void **state) {
    struct fixture *f = *state;
    assert_int_equal(
        seal_reveal(f->others, &f->label, buf_view(&f->wrapped), buf_view(&f->box), &f->plain),
        ERR_CRYPTO);
}

static void ad_06_no_flipped_bit_opens(void **state) {
    struct fixture *f = *state;
    struct buf *both[] = {&f->wrapped, &f->box};
    for (size_t b = 0; b < 2; b++)
        for (size_t i = 0; i < buf_len(both[b]) * 8; i++) {
            uint8_t bit = (uint8_t)(1 << i % 8);
            both[b]->p[i / 8] ^= bit;
            assert_int_equal(reveal(f, &f->label), ERR_CRYPTO);
            assert_int_equal(buf_len(&f->plain), 0);
            both[b]->p[i / 8] ^= bit;
        }
    assert_int_equal(reveal(f, &f->label), 0);
}

static void ad_06_no_shorter_or_longer_box_opens(void **state) {
    struct fixture *f = *state;
    struct view wrapped = buf_view(&f->wrapped);
    for (size_t n = 0; n < buf_len(&f->box); n++)
        assert_int_equal(
            seal_reveal(f->keys, &f->label, wrapped, view_head(buf_view(&f->box), n), &f->plain),
            ERR_CRYPTO);
    for (size_t n = 0; n < wrapped.n; n++)
        assert_int_equal(
            seal_reveal(f->keys, &f->label, view_head(wrapped, n), buf_view(&f->box), &f->plain),
            ERR_CRYPTO);
    buf_put_u8(&f->box, 0);
    assert_int_equal(reveal(f, &f->label), ERR_CRYPTO);
}

static void a_wrapped_key_is_no_box_and_a_box_no_wrapped_key(void **state) {
    struct fixture *f = *state;
    assert_int_equal(
        seal_reveal(f->keys, &f->label, buf_view(&f->wrapped), buf_view(&f->wrapped), &f->plain),
        ERR_CRYPTO);
}

static void a_rewrapped_key_opens_under_the_new_key_only(void **state) {
    struct fixture *f = *state;
    struct buf again;
    buf_init(&again, 1024);
    assert_int_equal(seal_rewrap(f->keys, f->others, &f->label, buf_view(&f->wrapped), &again), 0);
    assert_int_equal(
        seal_reveal(f->others, &f->label, buf_view(&again), buf_view(&f->box), &f->plain), 0);
    assert_true(view_equal(buf_view(&f->plain), view_str(secret_text)));
    buf_reset(&f->plain);
    assert_int_equal(
        seal_reveal(f->keys, &f->label, buf_view(&again), buf_view(&f->box), &f->plain),
        ERR_CRYPTO);
    buf_free(&again);
}

static int compare_nonces(const void *a, const void *b) {
    return memcmp(a, b, SEAL_NONCE_SIZE);
}

static void ad_06_nonces_and_data_keys_never_repeat(void **state) {
    enum { SEALS = 10000 };
    struct fixture *f = *state;
    uint8_t(*nonces)[SEAL_NONCE_SIZE] = calloc(2 * SEALS, SEAL_NONCE_SIZE);
    for (size_t i = 0; i < SEALS; i++) {
        buf_reset(&f->wrapped);
        buf_reset(&f->box);
        assert_int_equal(
            seal_envelope(f->keys, &f->label, view_str(secret_text), &f->wrapped, &f->box), 0);
        memcpy(nonces[2 * i], buf_view(&f->wrapped).p, SEAL_NONCE_SIZE);
        memcpy(nonces[2 * i + 1], buf_view(&f->box).p, SEAL_NONCE_SIZE);
    }
    qsort(nonces, (size_t)2 * SEALS, SEAL_NONCE_SIZE, compare_nonces);
    for (size_t i = 1; i < (size_t)2 * SEALS; i++)
        assert_memory_not_equal(nonces[i - 1], nonces[i], SEAL_NONCE_SIZE);
    free(nonces);
}

static void a_key_file_is_64_hex_digits_and_nothing_else(void **state) {
#define DIGITS "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEF"
    static const struct {
        const char *text;
        int result;
    } cases[] = {
        {DIGITS "f", 0},        {DIGITS "f\n", 0},         {DIGITS "f\n\n", ERR_BAD},
        {DIGITS "f ", ERR_BAD}, {DIGITS "f\r\n", ERR_BAD}, {DIGITS, ERR_BAD},
        {DIGITS "ff", ERR_BAD}, {DIGITS "g", ERR_BAD},     {" " DIGITS, ERR_BAD},
        {"", ERR_BAD},          {"\n", ERR_BAD},           {DIGITS "\n", ERR_BAD},
    };
    (void)state;
    uint8_t *kek = secret_alloc(SEAL_KEY_SIZE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(seal_parse_key(view_str(cases[i].text), kek), cases[i].result);
    secret_free(kek);
}

static void the_purposes_keys_differ(void **state) {
    struct fixture *f = *state;
    assert_memory_not_equal(f->keys->wrap, f->keys->digest, SEAL_KEY_SIZE);
    assert_memory_not_equal(f->keys->wrap, f->keys->head, SEAL_KEY_SIZE);
    assert_memory_not_equal(f->keys->digest, f->keys->head, SEAL_KEY_SIZE);
    assert_memory_not_equal(f->keys->wrap, f->others->wrap, SEAL_KEY_SIZE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_was_sealed_opens_again),
        TEST(the_plain_text_is_nowhere_in_what_is_kept),
        TEST(another_id_version_or_name_does_not_open),
        TEST(another_key_does_not_open),
        TEST(ad_06_no_flipped_bit_opens),
        TEST(ad_06_no_shorter_or_longer_box_opens),
        TEST(a_wrapped_key_is_no_box_and_a_box_no_wrapped_key),
        TEST(a_rewrapped_key_opens_under_the_new_key_only),
        TEST(ad_06_nonces_and_data_keys_never_repeat),
        TEST(a_key_file_is_64_hex_digits_and_nothing_else),
        TEST(the_purposes_keys_differ),
    };
    if (secret_arena_open(1 << 20) != 0 || seal_open_library() != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

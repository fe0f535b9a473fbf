#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/secret.h"
#include "egress/substitute.h"

#include <string.h>

#define PH "sk-exeat0123456789012345678901234AAAAAA"

static int substitute(enum place place, const char *scheme, const char *token, const char *value,
                      struct view secret, struct buf *out) {
    struct material m = {.place = place,
                         .name = VIEW("authorization"),
                         .scheme = view_str(scheme),
                         .token = view_str(token)};
    buf_init_secret(out, SUBSTITUTE_MAX);
    return substitute_field(&m, view_str(value), secret, out);
}

struct basic_case {
    enum place place;
    const char *scheme, *token, *value, *secret;
    const char *expected; /* NULL: refused */
};

/* Encoded by coreutils' base64. */
static const struct basic_case forms[] = {
    {PLACE_HEADER, "", PH, PH, "real-secret", "real-secret"},
    {PLACE_HEADER, "Bearer", PH, "Bearer " PH, "real-secret", "Bearer real-secret"},
    {PLACE_HEADER, "bEARER", PH, "bEARER " PH, "real-secret", "bEARER real-secret"},
    {PLACE_HEADER, "token", PH, "token " PH, "a b:c", "token a b:c"},
    /* PH-08: user:PH */
    {PLACE_BASIC_PASSWORD, "Basic", "PH_A", "Basic dXNlcjpQSF9B", "s3cret",
     "Basic dXNlcjpzM2NyZXQ="},
    {PLACE_BASIC_PASSWORD, "basic", "PH_A", "basic dXNlcjpQSF9B", "s3cret",
     "basic dXNlcjpzM2NyZXQ="},
    /* PH: */
    {PLACE_BASIC_USER, "Basic", "PH_A", "Basic UEhfQTo=", "s3cret", "Basic czNjcmV0Og=="},
    /* PH:x-oauth-basic */
    {PLACE_BASIC_USER, "Basic", "PH_A", "Basic UEhfQTp4LW9hdXRoLWJhc2lj", "s3",
     "Basic czM6eC1vYXV0aC1iYXNpYw=="},
    /* :PH, and a password with colons in it */
    {PLACE_BASIC_PASSWORD, "Basic", "PH_A", "Basic OlBIX0E=", "a:b", "Basic OmE6Yg=="},
    {PLACE_BASIC_PASSWORD, "Basic", "PH:A", "Basic dTpQSDpB", "x", "Basic dTp4"},
    /* the same on both sides: one half only */
    {PLACE_BASIC_USER, "Basic", "PH_A", "Basic UEhfQTpQSF9B", "s3", "Basic czM6UEhfQQ=="},
    {PLACE_BASIC_PASSWORD, "Basic", "PH_A", "Basic UEhfQTpQSF9B", "s3", "Basic UEhfQTpzMw=="},
    /* a user with a colon would move the border */
    {PLACE_BASIC_USER, "Basic", "PH_A", "Basic UEhfQTo=", "s3:cret", NULL},
    /* not what was judged */
    {PLACE_HEADER, "", PH, PH "x", "s", NULL},
    {PLACE_HEADER, "", PH, "Bearer " PH, "s", NULL},
    {PLACE_HEADER, "Bearer", PH, "Bearer  " PH, "s", NULL},
    {PLACE_HEADER, "Bearer", PH, "Bearer\t" PH, "s", NULL},
    {PLACE_HEADER, "Bearer", PH, "bearer " PH, "s", NULL},
    {PLACE_HEADER, "Bearer", PH, "Bearer", "s", NULL},
    {PLACE_HEADER, "Bearer", "", "Bearer ", "s", NULL},
    {PLACE_BASIC_USER, "Basic", "PH_A", "Basic dXNlcjpQSF9B", "s", NULL},
    {PLACE_BASIC_PASSWORD, "Basic", "PH_A", "Basic UEhfQTo=", "s", NULL},
    {PLACE_BASIC_USER, "Basic", "PH_A", "Basic UEhfQQ==", "s", NULL}, /* no colon */
    {PLACE_BASIC_USER, "Basic", "PH_A", "Basic UEhfQTo", "s", NULL},  /* no padding */
    {PLACE_BASIC_USER, "Basic", "PH_A", "Basic UEhf QTo=", "s", NULL},
    {PLACE_BASIC_USER, "Basic", "PH_A", "Basic UEhfQTp=", "s", NULL}, /* spare bits */
    {PLACE_BASIC_USER, "", "PH_A", "UEhfQTo=", "s", NULL},
    /* other places are never swapped */
    {PLACE_COOKIE, "", "PH_A", "PH_A", "s", NULL},
    {PLACE_QUERY, "", "PH_A", "PH_A", "s", NULL},
    {PLACE_BODY, "", "PH_A", "PH_A", "s", NULL},
};

static void ph_08_each_form_is_written_once_and_canonically(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct basic_case *f = &forms[i];
        struct buf out;
        int result = substitute(f->place, f->scheme, f->token, f->value, view_str(f->secret), &out);
        if (f->expected) {
            assert_int_equal(result, 0);
            assert_int_equal(buf_len(&out), strlen(f->expected));
            assert_memory_equal(buf_view(&out).p, f->expected, strlen(f->expected));
            assert_true(secret_owns(out.p));
        } else {
            assert_int_equal(result, ERR_BAD);
        }
        buf_free(&out);
    }
}

static void ph_05_a_secret_that_could_split_a_head_is_refused(void **state) {
    (void)state;
    static const struct view secrets[] = {
        VIEW(""),     VIEW("abc\n"), VIEW("a\r\nX: y"), VIEW("a\0b"), VIEW("\rabc"),
        VIEW("a\tb"), VIEW("a\x7f"), VIEW("a\x1f"),     VIEW(" abc"), VIEW("abc "),
    };
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        struct buf out;
        assert_false(substitute_is_sendable(secrets[i]));
        assert_int_equal(substitute(PLACE_HEADER, "", PH, PH, secrets[i], &out), ERR_BAD);
        assert_int_equal(buf_len(&out), 0);
        buf_free(&out);
    }
    assert_true(substitute_is_sendable(VIEW("a b\xc3\xa9~!")));
}

static void a_secret_too_big_for_the_buffer_is_an_error(void **state) {
    (void)state;
    static uint8_t big[SUBSTITUTE_MAX + 1];
    struct buf out;
    memset(big, 'x', sizeof big);
    assert_int_equal(substitute(PLACE_HEADER, "", PH, PH, view_of(big, sizeof big), &out),
                     ERR_MEMORY);
    buf_free(&out);
    assert_int_equal(substitute(PLACE_BASIC_USER, "Basic", "PH_A",
                                "Basic UEhfQTo=", view_of(big, sizeof big), &out),
                     ERR_MEMORY);
    buf_free(&out);
}

static struct material bearer(void) {
    return (struct material){.place = PLACE_HEADER,
                             .name = VIEW("Authorization"),
                             .scheme = VIEW("Bearer"),
                             .token = VIEW(PH)};
}

static void ph_10_only_the_named_field_changes_and_what_was_put_in_is_not_read_again(void **state) {
    (void)state;
    struct material m = bearer();
    struct fields fields = {.n = 0};
    struct buf out;
    struct view value;
    /* The secret is itself a placeholder, and another field holds the same one. */
    buf_init_secret(&out, SUBSTITUTE_MAX);
    assert_int_equal(fields_add(&fields, VIEW("accept"), VIEW("*/*")), 0);
    assert_int_equal(fields_add(&fields, VIEW("authorization"), VIEW("Bearer " PH)), 0);
    assert_int_equal(fields_add(&fields, VIEW("x-note"), VIEW(PH)), 0);
    assert_int_equal(substitute_request(&fields, &m, VIEW(PH PH), &out), 0);
    assert_int_equal(fields_find(&fields, VIEW("authorization"), &value), 1);
    assert_true(view_equal(value, VIEW("Bearer " PH PH)));
    assert_true(secret_owns(value.p));
    assert_int_equal(fields_find(&fields, VIEW("x-note"), &value), 1);
    assert_true(view_equal(value, VIEW(PH)));
    /* A second time there is nothing to replace. */
    assert_int_equal(substitute_request(&fields, &m, VIEW("again"), &out), ERR_BAD);
    buf_free(&out);
}

static void ph_10_several_fields_of_the_name_or_none_are_refused(void **state) {
    (void)state;
    struct material m = bearer();
    struct fields fields = {.n = 0};
    struct buf out;
    buf_init_secret(&out, SUBSTITUTE_MAX);
    assert_int_equal(substitute_request(&fields, &m, VIEW("secret"), &out), ERR_BAD);
    assert_int_equal(fields_add(&fields, VIEW("authorization"), VIEW("Bearer " PH)), 0);
    assert_int_equal(fields_add(&fields, VIEW("authorization"), VIEW("Bearer " PH)), 0);
    assert_int_equal(substitute_request(&fields, &m, VIEW("secret"), &out), ERR_BAD);
    assert_int_equal(buf_len(&out), 0);
    buf_free(&out);
}

static int open_arena(void **state) {
    (void)state;
    return secret_arena_open((size_t)1 << 20);
}

static int nothing_is_left(void **state) {
    (void)state;
    return secret_in_use() == 0 ? 0 : -1;
}

#define TEST(f) cmocka_unit_test_teardown(f, nothing_is_left)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ph_08_each_form_is_written_once_and_canonically),
        TEST(ph_05_a_secret_that_could_split_a_head_is_refused),
        TEST(a_secret_too_big_for_the_buffer_is_an_error),
        TEST(ph_10_only_the_named_field_changes_and_what_was_put_in_is_not_read_again),
        TEST(ph_10_several_fields_of_the_name_or_none_are_refused),
    };
    return cmocka_run_group_tests(tests, open_arena, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/secret.h"
#include "egress/substitute.h"

#include <string.h>

#define PH "sk-exeat0123456789012345678901234AAAAAA"

struct request {
    struct fields fields;
    struct view target;
    struct materials materials;
    struct buf path, out;
};

/* A request as egress finds it; all that is material there is to be replaced. */
static int substitute(struct request *r, const struct credential_place *place, const char *target,
                      const char *name, const char *value, struct view secret) {
    struct watched watched = {{place}, 1};
    struct target parsed;
    memset(r, 0, sizeof *r);
    buf_init(&r->path, 4096);
    buf_init_secret(&r->out, SUBSTITUTE_MAX);
    assert_int_equal(fields_add(&r->fields, VIEW("accept"), VIEW("text/" PH)), 0);
    if (value)
        assert_int_equal(fields_add(&r->fields, view_str(name), view_str(value)), 0);
    assert_int_equal(target_parse(view_str(target), 16, &r->path, &parsed, NULL), 0);
    r->target = buf_view(&r->path);
    if (value)
        provenance_field(view_str(name), view_str(value), &watched, &r->materials);
    provenance_target(&parsed, &watched, &r->materials);
    uint32_t swaps = 0;
    for (size_t i = 0; i < r->materials.n; i++)
        if (view_equal(r->materials.at[i].token, VIEW(PH)))
            swaps |= UINT32_C(1) << i;
    return substitute_request(&r->fields, &r->target, &r->materials, swaps, secret, &r->out);
}

static void request_free(struct request *r) {
    buf_free(&r->path);
    buf_free(&r->out);
}

static void equal(struct view got, const char *expected) {
    assert_int_equal(got.n, strlen(expected));
    assert_memory_equal(got.p, expected, got.n);
}

#define PLACE(kind, text)                                                                          \
    {                                                                                              \
        .place = kind, .name = {(const uint8_t *)(text), sizeof(text) - 1 }                        \
    }
static const struct credential_place authorization = PLACE(PLACE_HEADER, "authorization"),
                                     x_key = PLACE(PLACE_HEADER, "x-key"),
                                     session = PLACE(PLACE_COOKIE, "session"),
                                     key = PLACE(PLACE_QUERY, "key"),
                                     second = {
                                         .place = PLACE_PATH, .name = {NULL, 0}, .segment = 2};

struct field_case {
    const struct credential_place *place;
    const char *name, *value, *secret;
    const char *expected; /* NULL: refused */
};

/* Encoded by coreutils' base64: sk-exeat0123456789012345678901234AAAAAA in a pair. */
#define B_PASSWORD "dXNlcjpzay1leGVhdDAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzRBQUFBQUE=" /* user: */
#define B_USER "c2stZXhlYXQwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0QUFBQUFBOng="         /* :x */

static const struct field_case forms[] = {
    {&x_key, "x-key", PH, "real-secret", "real-secret"},
    {&authorization, "authorization", "Bearer " PH, "real-secret", "Bearer real-secret"},
    {&authorization, "authorization", "bEARER " PH, "real-secret", "bEARER real-secret"},
    {&authorization, "authorization", "token " PH, "a b:c", "token a b:c"},
    /* PH-08 */
    {&authorization, "authorization", "Basic " B_PASSWORD, "s3cret", "Basic dXNlcjpzM2NyZXQ="},
    {&authorization, "authorization", "basic " B_PASSWORD, "a:b", "basic dXNlcjphOmI="},
    {&authorization, "authorization", "Basic " B_USER, "s3cret", "Basic czNjcmV0Ong="},
    /* cookies: only the one, and as it is */
    {&session, "cookie", "a=b; session=" PH "; c=d", "r/e+a=l%", "a=b; session=r/e+a=l%; c=d"},
    {&session, "cookie", "session=" PH, "real", "session=real"},
    {&session, "cookie", "session=" PH, "re;al", NULL},
    {&session, "cookie", "session=" PH, "re al", NULL},
    {&session, "cookie", "session=" PH, "re\"al", NULL},
    {&session, "cookie", "session=" PH, "re,al", NULL},
    {&session, "cookie", "session=" PH, "re\\al", NULL},
    {&session, "cookie", "session=" PH, "re\xc3\xa4l", NULL},
};

static void ph_08_each_form_of_a_field_is_written_once_and_canonically(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct field_case *f = &forms[i];
        struct request r;
        int result = substitute(&r, f->place, "/", f->name, f->value, view_str(f->secret));
        if (f->expected) {
            assert_int_equal(result, 0);
            equal(r.fields.at[1].value, f->expected);
            assert_true(secret_owns(r.fields.at[1].value.p));
            equal(r.fields.at[0].value, "text/" PH);
        } else {
            assert_int_equal(result, ERR_BAD);
        }
        request_free(&r);
    }
}

struct target_case {
    const struct credential_place *place;
    const char *target, *secret, *expected;
};

/* Every byte that is not unreserved is encoded. */
#define ODD "a+/=&?# %\"\xc3\xa4~-._Z"
#define SPELLED "a%2B%2F%3D%26%3F%23%20%25%22%C3%A4~-._Z"

static const struct target_case targets[] = {
    {&key, "/a?key=" PH, ODD, "/a?key=" SPELLED},
    {&key, "/a?x=1&key=" PH "&y=2", "s", "/a?x=1&key=s&y=2"},
    {&key, "/a/?k%65y=s%6B-exeat0123456789012345678901234AAAAAA", ODD, "/a/?key=" SPELLED},
    {&second, "/a/" PH "/c/?q", ODD, "/a/" SPELLED "/c/?q"},
    {&second, "/a/" PH, "s", "/a/s"},
    /* In another place there is nothing to be replaced. */
    {&key, "/a?other=1", "s", "/a?other=1"},
};

static void ph_04_a_secret_in_the_target_is_percent_encoded(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const struct target_case *c = &targets[i];
        struct request r;
        assert_int_equal(substitute(&r, c->place, c->target, NULL, NULL, view_str(c->secret)), 0);
        equal(r.target, c->expected);
        assert_int_equal(secret_owns(r.target.p), r.materials.n > 0);
        request_free(&r);
    }
}

static void ph_10_each_occurrence_is_replaced_and_nothing_is_read_again(void **state) {
    (void)state;
    struct request r;
    /* The secret is itself two placeholders, and another field holds one as well. */
    assert_int_equal(substitute(&r, &key, "/?key=" PH "&key=" PH, NULL, NULL, VIEW(PH PH)), 0);
    equal(r.target, "/?key=" PH PH "&key=" PH PH);
    equal(r.fields.at[0].value, "text/" PH);
    request_free(&r);
}

static void ph_05_a_secret_that_could_split_a_head_is_refused(void **state) {
    (void)state;
    static const struct view secrets[] = {
        VIEW(""),     VIEW("abc\n"), VIEW("a\r\nX: y"), VIEW("a\0b"), VIEW("\rabc"),
        VIEW("a\tb"), VIEW("a\x7f"), VIEW("a\x1f"),     VIEW(" abc"), VIEW("abc "),
    };
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        struct request r;
        for (enum place p = PLACE_HEADER; p <= PLACE_FORM; p++)
            assert_non_null(substitute_misfit(p, secrets[i]));
        assert_int_equal(substitute(&r, &x_key, "/", "x-key", PH, secrets[i]), ERR_BAD);
        request_free(&r);
        assert_int_equal(substitute(&r, &key, "/?key=" PH, NULL, NULL, secrets[i]), ERR_BAD);
        request_free(&r);
    }
}

static void ph_05_a_control_character_shows_wherever_it_stands(void **state) {
    (void)state;
    for (size_t n = 3; n <= 26; n++)
        for (size_t at = 0; at <= n; at++)
            for (unsigned c = 0; c < 256; c++) {
                uint8_t text[26];
                memset(text, 'a', n);
                if (at < n)
                    text[at] = (uint8_t)c;
                bool end = at == 0 || at == n - 1;
                bool fits = at == n || (c >= 0x20 && c != 0x7f && !(end && c == ' '));
                assert_int_equal(substitute_misfit(PLACE_HEADER, view_of(text, n)) == NULL, fits);
            }
}

static void a_secret_fits_where_it_can_be_spelled(void **state) {
    (void)state;
    assert_null(substitute_misfit(PLACE_HEADER, VIEW("a b\xc3\xa9~!")));
    assert_null(substitute_misfit(PLACE_QUERY, VIEW("a;b \xff")));
    assert_null(substitute_misfit(PLACE_BASIC_PASSWORD, VIEW("a:b")));
    assert_non_null(substitute_misfit(PLACE_BASIC_USER, VIEW("a:b")));
    assert_non_null(substitute_misfit(PLACE_COOKIE, VIEW("a;b")));
    assert_null(substitute_misfit(PLACE_COOKIE, VIEW("a:b/c+d=e")));
    assert_null(substitute_misfit(PLACE_JSON, VIEW("a\"\\\xc3\xa9")));
    assert_non_null(substitute_misfit(PLACE_JSON, VIEW("a\xff")));
    assert_null(substitute_misfit(PLACE_FORM, VIEW("a\xff")));
}

static void a_secret_is_spelled_for_its_body(void **state) {
    (void)state;
    struct buf out;
    buf_init_secret(&out, SUBSTITUTE_MAX);
    substitute_spell(PLACE_JSON, VIEW("a\"b\\c/d\xc3\xa9"), &out);
    equal(buf_view(&out), "a\\\"b\\\\c/d\xc3\xa9");
    buf_reset(&out);
    substitute_spell(PLACE_FORM, VIEW("a b+c&d"), &out);
    equal(buf_view(&out), "a%20b%2Bc%26d");
    buf_free(&out);
}

/* What the judge was told of must be what stands there. */
static void what_does_not_say_the_placeholder_is_not_replaced(void **state) {
    (void)state;
    static const enum place places[] = {PLACE_HEADER, PLACE_BASIC_USER, PLACE_COOKIE,   PLACE_QUERY,
                                        PLACE_PATH,   PLACE_BODY,       PLACE_SIGNATURE};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct fields fields = {.n = 0};
        struct materials m = {.n = 1};
        struct view target = VIEW("/a?key=something-else"), value = VIEW("Bearer something-else");
        struct buf out;
        assert_int_equal(fields_add(&fields, VIEW("authorization"), value), 0);
        for (int in_target = 0; in_target < 2; in_target++) {
            struct view whole = in_target ? target : value;
            m.at[0] = (struct material){
                .place = places[i], .token = VIEW(PH), .raw = view_skip(whole, 7)};
            buf_init_secret(&out, SUBSTITUTE_MAX);
            assert_int_equal(substitute_request(&fields, &target, &m, 1, VIEW("s"), &out), ERR_BAD);
            buf_free(&out);
        }
        /* It stands in none of them. */
        m.at[0] = (struct material){.place = PLACE_HEADER, .token = VIEW(PH), .raw = VIEW(PH)};
        buf_init_secret(&out, SUBSTITUTE_MAX);
        assert_int_equal(substitute_request(&fields, &target, &m, 1, VIEW("s"), &out), ERR_BAD);
        buf_free(&out);
    }
}

static void a_secret_too_big_for_the_buffer_is_an_error(void **state) {
    (void)state;
    static uint8_t big[SUBSTITUTE_MAX];
    struct request r;
    memset(big, 'x', sizeof big);
    assert_int_equal(substitute(&r, &x_key, "/", "x-key", PH, view_of(big, sizeof big)),
                     ERR_MEMORY);
    request_free(&r);
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
        TEST(ph_08_each_form_of_a_field_is_written_once_and_canonically),
        TEST(ph_04_a_secret_in_the_target_is_percent_encoded),
        TEST(ph_10_each_occurrence_is_replaced_and_nothing_is_read_again),
        TEST(ph_05_a_secret_that_could_split_a_head_is_refused),
        TEST(ph_05_a_control_character_shows_wherever_it_stands),
        TEST(a_secret_fits_where_it_can_be_spelled),
        TEST(a_secret_is_spelled_for_its_body),
        TEST(what_does_not_say_the_placeholder_is_not_replaced),
        TEST(a_secret_too_big_for_the_buffer_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_arena, NULL);
}

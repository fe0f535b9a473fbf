/* Credentials in bodies: what is material where a service reads one, and where it stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/body_credential.h"
#include "policy/body_read.h"

#include <stdlib.h>

static const struct credential_place json_place = {
    .place = PLACE_JSON, .name = {(const uint8_t *)"/auth/key", 9}, .pointer = 0};
static const struct credential_place form_place = {
    .place = PLACE_FORM, .name = {(const uint8_t *)"key", 3}, .pointer = 0};

enum { TOLD = 256 };

/* As text: place, ':' and token, '!' before what is malformed, and the bytes that say it behind '@' if others do. */
static void tell(enum body_source source, struct view body, size_t piece, char out[TOLD]) {
    bool form = source == BODY_SOURCE_FORM;
    struct view pointer = form ? VIEW("/key") : VIEW("/auth/key");
    struct body_wants wants = {.pointers = &pointer, .n_pointers = 1, .limit = 1 << 20};
    struct watched watched = {{form ? &form_place : &json_place}, 1};
    struct materials m = {.n = 0};
    struct body_read *r;
    struct buf b;
    assert_int_equal(body_read_new(source, &wants, &r), 0);
    for (struct view rest = body; rest.n > 0; rest = view_skip(rest, piece))
        body_read_feed(r, view_head(rest, piece));
    struct body_facts f = *body_read_end(r);
    struct body_value *values = calloc(f.n_values + 1, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < f.n_values; i++)
        values[i] = f.values[i];
    body_values_compare(values, f.n_values, body);
    f.values = values;
    body_credentials(&f, &watched, body, &m);
    buf_init(&b, TOLD - 1);
    for (size_t i = 0; i < m.n; i++) {
        const struct material *at = &m.at[i];
        buf_printf(&b, "%s%s%s:%.*s", i ? " " : "", at->malformed ? "!" : "",
                   at->place == PLACE_FORM ? "form" : "json", VIEW_ARG(at->token));
        if (!view_equal(at->raw, at->token))
            buf_printf(&b, "@%.*s", VIEW_ARG(at->raw));
        if (!at->malformed)
            assert_true(at->raw.p >= body.p && at->raw.p + at->raw.n <= body.p + body.n);
    }
    buf_put_str(&b, m.overflow ? "anything" : "");
    assert_int_equal(view_cstr(buf_view(&b), out, TOLD), 0);
    buf_free(&b);
    free(values);
    body_read_free(r);
}

struct example {
    struct view body;
    const char *want;
};

static void check(enum body_source source, const struct example *at, size_t n) {
    char told[TOLD];
    for (size_t i = 0; i < n; i++)
        for (size_t piece = 1; piece <= at[i].body.n; piece++) {
            tell(source, at[i].body, piece, told);
            assert_string_equal(told, at[i].want);
        }
}

static void ph_09_a_credential_in_json_is_one_plain_string(void **state) {
    static const struct example cases[] = {
        {VIEW("{\"auth\":{\"key\":\"PH\"}}"), "json:PH"},
        {VIEW(" {\"a\":[1,\"x\"],\"auth\" : {\"b\":{},\"key\": \"PH\" }} "), "json:PH"},
        {VIEW("{\"auth\":{\"\\u006bey\":\"PH\"}}"), "json:PH"},
        {VIEW("{\"\xc3\xa9\":\"\\u00e9\",\"auth\":{\"key\":\"PH\"}}"), "json:PH"},
        /* nothing */
        {VIEW("{}"), ""},
        {VIEW("{\"key\":\"PH\",\"auth\":\"PH\"}"), ""},
        {VIEW("{\"auth\":{\"key\":null}}"), ""},
        {VIEW("{\"auth\":{\"key\":false}}"), ""},
        {VIEW("{\"auth\":{\"key\":\"\"}}"), ""},
        /* in another coding, under another name, of another type */
        {VIEW("{\"auth\":{\"key\":\"\\u0050H\"}}"), "!json:PH"},
        {VIEW("{\"auth\":{\"key\":\"P\\/H\"}}"), "!json:P/H"},
        {VIEW("{\"auth\":{\"KEY\":\"PH\"}}"), "!json:PH"},
        {VIEW("{\"auth\":{\"key\":\"PH\",\"Key\":\"x\"}}"), "json:PH !json:x"},
        {VIEW("{\"auth\":{\"key\":17}}"), "!json:17"},
        {VIEW("{\"auth\":{\"key\":true}}"), "!json:true"},
        {VIEW("{\"auth\":{\"key\":[\"PH\"]}}"), "!json:"},
        {VIEW("{\"auth\":{\"key\":{\"a\":\"PH\"}}}"), "!json:"},
        /* read in two ways */
        {VIEW("{\"auth\":{\"key\":\"PH\",\"key\":\"PH\"}}"), "anything"},
        {VIEW("{\"auth\":{\"key\":\"PH\"}} {}"), "anything"},
        {VIEW("{\"auth\":{\"key\":\"PH\xff\"}}"), "anything"},
        {VIEW("{\"auth\":{\"key\":\"PH"), "anything"},
    };
    (void)state;
    check(BODY_SOURCE_JSON, cases, sizeof cases / sizeof *cases);
}

static void ph_09_a_credential_in_a_form_is_one_field(void **state) {
    static const struct example cases[] = {
        {VIEW("key=PH"), "form:PH"},
        {VIEW("a=b&key=PH&c=d"), "form:PH"},
        {VIEW("a=b&&k%65y=%50H&"), "form:PH@%50H"},
        {VIEW("a&key=P+H"), "form:P H@P+H"},
        {VIEW("a=b&key="), ""},
        {VIEW("keys=PH&a=key"), ""},
        {VIEW("key=PH&key=PH"), "form:PH form:PH"},
        {VIEW("Key=PH"), "!form:PH"},
        {VIEW("key[]=PH"), "!json:"},
        {VIEW("key=PH;a=b"), "anything"},
        {VIEW("key=%zz"), "anything"},
    };
    (void)state;
    check(BODY_SOURCE_FORM, cases, sizeof cases / sizeof *cases);
}

/* inspect can be taken over: what it says of where a value stands must be so. */
static void what_is_not_said_there_is_not_as_it_was_sent(void **state) {
    struct view body = VIEW("{\"k\":\"PH\"}"), form = VIEW("k=%50H");
    struct body_value v[] = {
        {.type = BODY_STRING, .value = VIEW("PH"), .from = 6, .to = 8},
        {.type = BODY_STRING, .value = VIEW("PH"), .from = 5, .to = 7},
        {.type = BODY_STRING, .value = VIEW("PH"), .from = 6, .to = 9},
        {.type = BODY_STRING, .value = VIEW("\"}"), .from = 8, .to = 11},
        {.type = BODY_STRING, .value = VIEW("PX"), .from = 6, .to = 8},
        {.type = BODY_NUMBER, .value = VIEW("PH"), .from = 6, .to = 8},
    };
    struct body_value in_form = {.type = BODY_TEXT, .value = VIEW("PH"), .from = 2, .to = 6};
    (void)state;
    body_values_compare(v, sizeof v / sizeof *v, body);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        assert_int_equal(v[i].as_sent, i == 0);
    body_values_compare(&in_form, 1, form);
    assert_true(in_form.as_sent);
    in_form.to = 5;
    body_values_compare(&in_form, 1, form);
    assert_false(in_form.as_sent);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ph_09_a_credential_in_json_is_one_plain_string),
        cmocka_unit_test(ph_09_a_credential_in_a_form_is_one_field),
        cmocka_unit_test(what_is_not_said_there_is_not_as_it_was_sent),
    };
    return cmocka_run_group_tests_name("body_credential", tests, NULL, NULL);
}

/*
 * DNS as a server: queries read, with every lie about lengths and counts, and replies written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/dns_query.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define HEAD(counts) "\x12\x34\x01\x00" counts
#define ONE "\x00\x01\x00\x00\x00\x00\x00\x00"
#define WITH_OPTIONS "\x00\x01\x00\x00\x00\x00\x00\x01"
#define NAME                                                                                       \
    "\x03"                                                                                         \
    "ApI\x04"                                                                                      \
    "test\x00"
#define TYPE_A "\x00\x01\x00\x01"
#define OPTIONS "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"

static int read_it(struct view bytes, struct dns_query *q, enum reply_code *code) {
    const char *why = NULL;
    int result = dns_query_read(bytes, q, code, &why);
    assert_int_equal(result == ERR_BAD, why != NULL);
    return result;
}

static void a_query_is_its_name_in_lower_case_and_its_type(void **state) {
    struct dns_query q;
    enum reply_code code;
    (void)state;
    assert_int_equal(read_it(VIEW(HEAD(ONE) NAME "\x00\x1c\x00\x01"), &q, &code), 0);
    assert_string_equal(q.name, "api.test");
    assert_int_equal(q.type, QUERY_AAAA);
    assert_int_equal(q.id, 0x1234);
    assert_true(q.recursion && !q.has_options);
    assert_int_equal(read_it(VIEW(HEAD(WITH_OPTIONS) NAME TYPE_A OPTIONS), &q, &code), 0);
    assert_true(q.has_options);
    assert_int_equal(read_it(VIEW(HEAD(ONE) "\x00" TYPE_A), &q, &code), 0);
    assert_string_equal(q.name, "");
}

static void dn_07_bytes_that_no_host_name_has_cannot_pass_for_dots(void **state) {
    struct dns_query q;
    enum reply_code code;
    (void)state;
    assert_int_equal(read_it(VIEW(HEAD(ONE) "\x05"
                                            "a.b\0\xff"
                                            "\x00" TYPE_A),
                             &q, &code),
                     0);
    assert_string_equal(q.name, "a\\046b\\000\\255");
}

static void dn_07_a_name_of_255_bytes_fits_and_a_longer_one_does_not(void **state) {
    struct dns_query q;
    enum reply_code code;
    struct buf b;
    (void)state;
    for (int last = 61; last <= 62; last++) {
        buf_init(&b, 512);
        buf_put(&b, VIEW(HEAD(ONE)));
        for (int i = 0; i < 4; i++) {
            int n = i < 3 ? 63 : last;
            buf_put_u8(&b, (uint8_t)n);
            while (n-- > 0)
                buf_put_u8(&b, 0xff);
        }
        buf_put_u8(&b, 0);
        buf_put(&b, VIEW(TYPE_A));
        assert_int_equal(read_it(buf_view(&b), &q, &code), last == 61 ? 0 : ERR_BAD);
        if (last == 61)
            assert_int_equal(strlen(q.name), 4 * 250 + 3);
        buf_free(&b);
    }
}

static void dn_07_malformed_queries_are_answered_so(void **state) {
    static const struct {
        struct view bytes;
        enum reply_code code;
    } cases[] = {
        {VIEW(HEAD(ONE) NAME TYPE_A "x"), REPLY_MALFORMED},
        {VIEW(HEAD(ONE) NAME "\x00\x01\x00"), REPLY_MALFORMED},
        {VIEW(HEAD(ONE)), REPLY_MALFORMED},
        {VIEW(HEAD(ONE) "\xc0\x0c" TYPE_A), REPLY_MALFORMED},
        {VIEW(HEAD(ONE) "\x40"
                        "aaaa" TYPE_A),
         REPLY_MALFORMED},
        {VIEW(HEAD("\x00\x00\x00\x00\x00\x00\x00\x00")), REPLY_MALFORMED},
        {VIEW(HEAD("\x00\x02\x00\x00\x00\x00\x00\x00") NAME TYPE_A NAME TYPE_A), REPLY_MALFORMED},
        {VIEW(HEAD("\x00\x01\x00\x01\x00\x00\x00\x00") NAME TYPE_A), REPLY_MALFORMED},
        {VIEW(HEAD("\x00\x01\x00\x00\x00\x00\x00\x02") NAME TYPE_A OPTIONS OPTIONS),
         REPLY_MALFORMED},
        {VIEW(HEAD(WITH_OPTIONS) NAME TYPE_A), REPLY_MALFORMED},
        /* An OPT of another version, one that is longer than it is, another record. */
        {VIEW(HEAD(WITH_OPTIONS) NAME TYPE_A "\x00\x00\x29\x04\xd0\x00\x01\x00\x00\x00\x00"),
         REPLY_MALFORMED},
        {VIEW(HEAD(WITH_OPTIONS) NAME TYPE_A "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x04"),
         REPLY_MALFORMED},
        {VIEW(HEAD(WITH_OPTIONS) NAME TYPE_A "\x00\x00\xfa\x04\xd0\x00\x00\x00\x00\x00\x00"),
         REPLY_MALFORMED},
        {VIEW(HEAD(ONE) NAME "\x00\x01\x00\x03"), REPLY_REFUSED},
        {VIEW("\x12\x34\x28\x00" ONE NAME TYPE_A), REPLY_NOT_OFFERED},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dns_query q;
        enum reply_code code = REPLY_OK;
        assert_int_equal(read_it(cases[i].bytes, &q, &code), ERR_BAD);
        assert_int_equal(code, cases[i].code);
    }
}

static void answers_and_less_than_a_head_are_not_answered(void **state) {
    struct dns_query q;
    enum reply_code code;
    (void)state;
    assert_int_equal(read_it(VIEW("\x12\x34\x81\x00" ONE NAME TYPE_A), &q, &code), ERR_DENIED);
    for (size_t n = 0; n < 12; n++)
        assert_int_equal(read_it(view_head(VIEW(HEAD(ONE)), n), &q, &code), ERR_DENIED);
}

/* ---- replies ---- */

static void write_reply(struct buf *b, struct view query, const struct dns_reply *r) {
    struct dns_query q;
    enum reply_code code;
    assert_true(read_it(query, &q, &code) != ERR_DENIED);
    buf_init(b, REPLY_BYTES_MAX);
    dns_reply_write(b, &q, r);
    assert_true(buf_ok(b));
}

static void a_reply_repeats_the_question_and_has_its_addresses(void **state) {
    struct dns_reply r = {.ttl = 60, .n = 1, .addresses = {{4, {198, 18, 0, 1}}}};
    struct buf b;
    (void)state;
    write_reply(&b, VIEW(HEAD(ONE) NAME TYPE_A), &r);
    assert_true(view_equal(
        buf_view(&b), VIEW("\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" NAME TYPE_A
                           "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x12\x00\x01")));
    buf_free(&b);
}

static void a_refusal_says_why_to_whoever_has_options(void **state) {
    struct dns_reply r = {.code = REPLY_NO_NAME, .text = VIEW("no")};
    struct buf b;
    (void)state;
    write_reply(&b, VIEW(HEAD(WITH_OPTIONS) NAME TYPE_A OPTIONS), &r);
    assert_true(view_equal(
        buf_view(&b), VIEW("\x12\x34\x81\x83\x00\x01\x00\x00\x00\x00\x00\x01" NAME TYPE_A
                           "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x08\x00\x0f\x00\x04\x00\x0f"
                           "no")));
    buf_free(&b);
    write_reply(&b, VIEW(HEAD(ONE) NAME TYPE_A), &r);
    assert_int_equal(buf_len(&b), 12 + 10 + 4);
    buf_free(&b);
}

static void a_question_that_was_not_read_is_not_repeated(void **state) {
    struct dns_reply r = {.code = REPLY_MALFORMED, .n = 1, .addresses = {{4, {1}}}};
    struct buf b;
    (void)state;
    write_reply(&b, VIEW(HEAD(ONE) "\xc0\x0c" TYPE_A), &r);
    assert_true(view_equal(buf_view(&b), VIEW("\x12\x34\x81\x81\x00\x00\x00\x00\x00\x00\x00\x00")));
    buf_free(&b);
}

static void types_have_names(void **state) {
    char text[12];
    (void)state;
    assert_string_equal(dns_query_type_name(65, text), "HTTPS");
    assert_string_equal(dns_query_type_name(65280, text), "TYPE65280");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_is_its_name_in_lower_case_and_its_type),
        cmocka_unit_test(dn_07_bytes_that_no_host_name_has_cannot_pass_for_dots),
        cmocka_unit_test(dn_07_a_name_of_255_bytes_fits_and_a_longer_one_does_not),
        cmocka_unit_test(dn_07_malformed_queries_are_answered_so),
        cmocka_unit_test(answers_and_less_than_a_head_are_not_answered),
        cmocka_unit_test(a_reply_repeats_the_question_and_has_its_addresses),
        cmocka_unit_test(a_refusal_says_why_to_whoever_has_options),
        cmocka_unit_test(a_question_that_was_not_read_is_not_repeated),
        cmocka_unit_test(types_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

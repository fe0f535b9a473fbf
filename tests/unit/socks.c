/*
 * SOCKS5's three messages, whole and cut at every place, and what is refused with which code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/socks.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- the greeting ---- */

static void a_login_is_preferred_and_no_login_is_taken(void **state) {
    static const struct {
        struct view bytes;
        enum socks_method method;
    } cases[] = {{VIEW("\x05\x01\x00"), SOCKS_NO_LOGIN},
                 {VIEW("\x05\x02\x00\x02"), SOCKS_LOGIN},
                 {VIEW("\x05\x03\x01\x02\x00"), SOCKS_LOGIN},
                 {VIEW("\x05\x01\x01"), SOCKS_NO_METHOD},
                 {VIEW("\x05\x00"), SOCKS_NO_METHOD}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        enum socks_method method = SOCKS_NO_METHOD;
        size_t used = 0;
        for (size_t n = 0; n < cases[i].bytes.n; n++)
            assert_int_equal(socks_greeting(view_head(cases[i].bytes, n), &used, &method),
                             ERR_AGAIN);
        assert_int_equal(socks_greeting(cases[i].bytes, &used, &method), 0);
        assert_int_equal(used, cases[i].bytes.n);
        assert_int_equal(method, cases[i].method);
    }
}

static void ct_10_other_versions_are_told_by_their_first_byte(void **state) {
    enum socks_method method;
    struct view user, password;
    size_t used;
    (void)state;
    assert_int_equal(socks_greeting(VIEW("\x04"), &used, &method), ERR_BAD);
    assert_int_equal(socks_login(VIEW("\x05"), &used, &user, &password), ERR_BAD);
}

/* ---- the login ---- */

static void a_login_may_be_empty_and_may_hold_anything(void **state) {
    struct view whole = VIEW("\x01\x03"
                             "a:\0"
                             "\x02"
                             "\xff:rest"),
                user, password;
    size_t used = 0;
    (void)state;
    for (size_t n = 0; n < 8; n++)
        assert_int_equal(socks_login(view_head(whole, n), &used, &user, &password), ERR_AGAIN);
    assert_int_equal(socks_login(whole, &used, &user, &password), 0);
    assert_int_equal(used, 8);
    assert_true(view_equal(user, VIEW("a:\0")));
    assert_true(view_equal(password, VIEW("\xff:")));
    assert_int_equal(socks_login(VIEW("\x01\x00\x00"), &used, &user, &password), 0);
    assert_true(view_is_empty(user) && view_is_empty(password));
}

/* ---- the request ---- */

static void a_request_is_the_authority_that_CONNECT_would_have(void **state) {
    static const struct {
        struct view bytes, authority;
    } cases[] = {
        {VIEW("\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb"), VIEW("127.0.0.1:443")},
        {VIEW("\x05\x01\x00\x03\x06"
              "A.test"
              "\x00\x50"),
         VIEW("A.test:80")},
        {VIEW("\x05\x01\x00\x03\x00\x00\x50"), VIEW(":80")},
        {VIEW("\x05\x01\x00\x03\x04"
              "a:\0@"
              "\x00\x00"),
         VIEW("a:\0@:0")},
        {VIEW("\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\xff\xff"),
         VIEW("[2001:db8::1]:65535")},
        {VIEW("\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\x01\x00\x50"),
         VIEW("[::ffff:127.0.0.1]:80")},
    };
    struct buf out;
    (void)state;
    buf_init(&out, 512);
    for (size_t i = 0; i < COUNT(cases); i++) {
        enum socks_reply reply;
        const char *why;
        size_t used = 0;
        for (size_t n = 0; n < cases[i].bytes.n; n++)
            assert_int_equal(socks_request(view_head(cases[i].bytes, n), &used, &out, &reply, &why),
                             ERR_AGAIN);
        assert_int_equal(buf_len(&out), 0);
        assert_int_equal(socks_request(cases[i].bytes, &used, &out, &reply, &why), 0);
        assert_int_equal(used, cases[i].bytes.n);
        assert_true(view_equal(buf_view(&out), cases[i].authority));
        buf_reset(&out);
    }
    buf_free(&out);
}

static void ct_10_what_is_no_CONNECT_is_refused_with_its_code(void **state) {
    static const struct {
        struct view bytes;
        enum socks_reply reply;
    } cases[] = {{VIEW("\x04"), SOCKS_FAILURE},
                 {VIEW("\x05\x02"), SOCKS_COMMAND_UNKNOWN},
                 {VIEW("\x05\x03"), SOCKS_COMMAND_UNKNOWN},
                 {VIEW("\x05\x00"), SOCKS_COMMAND_UNKNOWN},
                 {VIEW("\x05\x01\x01"), SOCKS_FAILURE},
                 {VIEW("\x05\x01\x00\x00"), SOCKS_ADDRESS_UNKNOWN},
                 {VIEW("\x05\x01\x00\x02"), SOCKS_ADDRESS_UNKNOWN},
                 {VIEW("\x05\x01\x00\x09"), SOCKS_ADDRESS_UNKNOWN}};
    struct buf out;
    (void)state;
    buf_init(&out, 512);
    for (size_t i = 0; i < COUNT(cases); i++) {
        enum socks_reply reply = SOCKS_SUCCEEDED;
        const char *why = NULL;
        size_t used;
        assert_int_equal(socks_request(cases[i].bytes, &used, &out, &reply, &why), ERR_BAD);
        assert_int_equal(reply, cases[i].reply);
        assert_non_null(why);
    }
    buf_free(&out);
}

static void a_refusal_has_a_code_by_its_status(void **state) {
    (void)state;
    assert_int_equal(socks_reply_of(403), SOCKS_NOT_ALLOWED);
    assert_int_equal(socks_reply_of(407), SOCKS_NOT_ALLOWED);
    assert_int_equal(socks_reply_of(502), SOCKS_HOST_UNREACHABLE);
    assert_int_equal(socks_reply_of(400), SOCKS_FAILURE);
    assert_int_equal(socks_reply_of(503), SOCKS_FAILURE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_login_is_preferred_and_no_login_is_taken),
        cmocka_unit_test(ct_10_other_versions_are_told_by_their_first_byte),
        cmocka_unit_test(a_login_may_be_empty_and_may_hold_anything),
        cmocka_unit_test(a_request_is_the_authority_that_CONNECT_would_have),
        cmocka_unit_test(ct_10_what_is_no_CONNECT_is_refused_with_its_code),
        cmocka_unit_test(a_refusal_has_a_code_by_its_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Reasons: the table is complete and says what it should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <string.h>

#include "policy/reason.h"

static void every_reason_has_a_code_of_its_own_and_texts(void **state) {
    (void)state;
    for (int r = 0; r < REASON_COUNT; r++) {
        const struct reason_info *info = reason_info((enum reason)r);
        assert_non_null(info->code);
        assert_true(strlen(info->code) > 0 && strlen(info->code) < 40);
        for (const char *c = info->code; *c; c++)
            assert_true(islower((unsigned char)*c) || *c == '_');
        for (int other = 0; other < r; other++)
            assert_string_not_equal(info->code, reason_info((enum reason)other)->code);
        assert_true(isupper((unsigned char)info->title[0]));
        assert_true(info->title[strlen(info->title) - 1] != '.');
        assert_true(isupper((unsigned char)info->hint[0]));
        assert_true(info->hint[strlen(info->hint) - 1] == '.');
    }
}

static void codes_are_found_again(void **state) {
    enum reason found;
    (void)state;
    for (int r = 0; r < REASON_COUNT; r++) {
        assert_int_equal(reason_find(view_str(reason_info((enum reason)r)->code), &found), 0);
        assert_int_equal(found, r);
    }
    assert_int_equal(reason_find(VIEW("host_not_allowe"), &found), ERR_MISSING);
    assert_int_equal(reason_find(VIEW("HOST_NOT_ALLOWED"), &found), ERR_MISSING);
    assert_int_equal(reason_find(VIEW(""), &found), ERR_MISSING);
}

static void a_status_is_a_refusal_or_none(void **state) {
    static const enum reason none[] = {REASON_ALLOWED,         REASON_SNI_MISMATCH,
                                       REASON_MALFORMED_HELLO, REASON_CLIENT_CLOSED,
                                       REASON_CLIENT_TLS,      REASON_CUT};
    (void)state;
    for (int r = 0; r < REASON_COUNT; r++) {
        bool expect_none = false;
        for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
            expect_none = expect_none || none[i] == (enum reason)r;
        uint16_t status = reason_info((enum reason)r)->status;
        assert_true(expect_none ? status == 0 : status >= 400 && status <= 504);
    }
    assert_int_equal(reason_info(REASON_AUTHORITY_MISMATCH)->status, 421);
    assert_int_equal(reason_info(REASON_PROXY_AUTH_REQUIRED)->status, 407);
    assert_int_equal(reason_info(REASON_HOST_NOT_ALLOWED)->status, 403);
    assert_int_equal(reason_info(REASON_MALFORMED_TARGET)->status, 400);
    assert_int_equal(reason_info(REASON_AUDIT_UNAVAILABLE)->status, 503);
}

static void ph_11_near_misses_and_others_placeholders_are_told_alike(void **state) {
    (void)state;
    assert_int_equal(reason_info(REASON_PLACEHOLDER_WRONG_IDENTITY)->shown,
                     REASON_FOREIGN_CREDENTIAL);
    assert_int_equal(reason_info(REASON_PLACEHOLDER_WRONG_IDENTITY)->status,
                     reason_info(REASON_FOREIGN_CREDENTIAL)->status);
    for (int r = 0; r < REASON_COUNT; r++)
        if (r != REASON_PLACEHOLDER_WRONG_IDENTITY)
            assert_int_equal(reason_info((enum reason)r)->shown, r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_has_a_code_of_its_own_and_texts),
        cmocka_unit_test(codes_are_found_again),
        cmocka_unit_test(a_status_is_a_refusal_or_none),
        cmocka_unit_test(ph_11_near_misses_and_others_placeholders_are_told_alike),
    };
    return cmocka_run_group_tests_name("reason", tests, NULL, NULL);
}

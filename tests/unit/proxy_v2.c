/*
 * The header of the PROXY protocol, version 2: whole, cut at every place, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "http/proxy_v2.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define FOUR "\xc0\x00\x02\x07\x0a\x00\x00\x01\x12\x67\x0c\x38"
#define SIX                                                                                        \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x12\x67\x0c"   \
    "\x38"

static void a_header_tells_the_client_of_the_connection(void **state) {
    static const struct {
        struct view bytes;
        size_t used;
        const char *client; /* NULL: none */
    } cases[] = {
        {VIEW(SIGNATURE "\x21\x11\x00\x0c" FOUR "GET "), 28, "192.0.2.7"},
        {VIEW(SIGNATURE "\x21\x21\x00\x24" SIX), 52, "2001:db8::9"},
        /* extensions: ALPN, and one that is empty */
        {VIEW(SIGNATURE "\x21\x11\x00\x14" FOUR "\x01\x00\x02h2\x04\x00\x00"), 36, "192.0.2.7"},
        /* a relay's own connection, whatever is said of it */
        {VIEW(SIGNATURE "\x20\x00\x00\x00"), 16, NULL},
        {VIEW(SIGNATURE "\x20\x11\x00\x0c" FOUR), 28, NULL},
        {VIEW(SIGNATURE "\x20\xff\x00\x03xyz"), 19, NULL},
        /* one that is not told */
        {VIEW(SIGNATURE "\x21\x00\x00\x00"), 16, NULL},
        {VIEW(SIGNATURE "\x21\x00\x00\x05xxxxx"), 21, NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct proxy_v2 h;
        const char *why;
        char text[ADDRESS_TEXT_SIZE];
        size_t used = 0;
        for (size_t n = 0; n < cases[i].used; n++)
            assert_int_equal(proxy_v2_read(view_head(cases[i].bytes, n), &used, &h, &why),
                             ERR_AGAIN);
        assert_int_equal(proxy_v2_read(cases[i].bytes, &used, &h, &why), 0);
        assert_int_equal(used, cases[i].used);
        assert_int_equal(h.has_client, cases[i].client != NULL);
        if (!cases[i].client)
            continue;
        address_format(&h.client, text);
        assert_string_equal(text, cases[i].client);
        assert_int_equal(h.port, 4711);
    }
}

static void ct_11_what_is_no_such_header_is_refused_at_its_first_wrong_byte(void **state) {
    static const struct {
        struct view bytes;
        size_t at; /* how many bytes show it */
        const char *says;
    } cases[] = {
        {VIEW("GET / HTTP/1.1\r\n"), 1, "no header"},
        {VIEW("PROXY TCP4 192.0.2.7 10.0.0.1 1 2\r\n"), 1, "no header"},
        {VIEW("\r\n\r\nGET / HTTP/1.1\r\n"), 5, "no header"},
        {VIEW("\x05\x01\x00"), 1, "no header"},
        {VIEW("\r\n\r\n\0\r\nQUIT\r\x21"), 12, "no header"},
        {VIEW(SIGNATURE "\x11\x11\x00\x0c" FOUR), 13, "another version"},
        {VIEW(SIGNATURE "\x31\x11\x00\x0c" FOUR), 13, "another version"},
        {VIEW(SIGNATURE "\x22\x11\x00\x0c" FOUR), 13, "unknown command"},
        {VIEW(SIGNATURE "\x21\x12\x00\x0c" FOUR), 14, "other than TCP"},
        {VIEW(SIGNATURE "\x21\x22\x00\x24" SIX), 14, "other than TCP"},
        {VIEW(SIGNATURE "\x21\x31\x00\xd8"), 14, "other than TCP"},
        {VIEW(SIGNATURE "\x21\x10\x00\x0c" FOUR), 14, "other than TCP"},
        {VIEW(SIGNATURE "\x21\x01\x00\x0c" FOUR), 14, "other than TCP"},
        {VIEW(SIGNATURE "\x21\x11\x00\x0b" FOUR), 16, "shorter"},
        {VIEW(SIGNATURE "\x21\x21\x00\x0c" FOUR), 16, "shorter"},
        {VIEW(SIGNATURE "\x21\x11\x00\x00"), 16, "shorter"},
        {VIEW(SIGNATURE "\x21\x11\x0f\xf1"), 16, "too long"},
        {VIEW(SIGNATURE "\x20\x00\xff\xff"), 16, "too long"},
        {VIEW(SIGNATURE "\x21\x11\x00\x0d" FOUR "\x01"), 29, "extension"},
        {VIEW(SIGNATURE "\x21\x11\x00\x0f" FOUR "\x01\x00\x01"), 31, "extension"},
        {VIEW(SIGNATURE "\x21\x11\x00\x10" FOUR "\x01\xff\xff\x00"), 32, "extension"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct proxy_v2 h;
        const char *why = "";
        size_t used;
        for (size_t n = 0; n < cases[i].at; n++)
            assert_int_equal(proxy_v2_read(view_head(cases[i].bytes, n), &used, &h, &why),
                             ERR_AGAIN);
        for (size_t n = cases[i].at; n <= cases[i].bytes.n; n++)
            assert_int_equal(proxy_v2_read(view_head(cases[i].bytes, n), &used, &h, &why), ERR_BAD);
        assert_non_null(strstr(why, cases[i].says));
    }
}

static void the_longest_header_is_taken(void **state) {
    static uint8_t bytes[PROXY_V2_MAX] = SIGNATURE "\x21\x11\x0f\xf0" FOUR "\x04\x0f\xe1";
    struct proxy_v2 h;
    const char *why;
    size_t used = 0;
    (void)state;
    assert_int_equal(proxy_v2_read(view_of(bytes, sizeof bytes - 1), &used, &h, &why), ERR_AGAIN);
    assert_int_equal(proxy_v2_read(view_of(bytes, sizeof bytes), &used, &h, &why), 0);
    assert_int_equal(used, PROXY_V2_MAX);
}

static void only_the_whole_signature_is_one(void **state) {
    (void)state;
    assert_true(proxy_v2_starts(VIEW(SIGNATURE)));
    assert_true(proxy_v2_starts(VIEW(SIGNATURE "x")));
    assert_false(proxy_v2_starts(VIEW("\r\n\r\n\0\r\nQUIT")));
    assert_false(proxy_v2_starts(VIEW("")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_tells_the_client_of_the_connection),
        cmocka_unit_test(ct_11_what_is_no_such_header_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(the_longest_header_is_taken),
        cmocka_unit_test(only_the_whole_signature_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

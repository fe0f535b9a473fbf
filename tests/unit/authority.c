/* Authorities: one canonical form or a refusal (theme HC). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "policy/authority.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check_refused(struct view text, uint16_t default_port) {
    struct authority a;
    const char *why = NULL;
    if (authority_parse(text, default_port, &a, &why) != ERR_BAD)
        fail_msg("'%.*s' was taken as '%s' port %u", VIEW_ARG(text), a.host, a.port);
    assert_non_null(why);
    assert_int_equal(authority_parse(text, default_port, &a, NULL), ERR_BAD);
}

static void check_all_refused(const char *const *cases, size_t n, uint16_t default_port) {
    for (size_t i = 0; i < n; i++)
        check_refused(view_str(cases[i]), default_port);
}

static void check_host(const char *text, const char *host) {
    struct authority a;
    const char *why = "";
    if (authority_parse(view_str(text), 443, &a, &why) != 0)
        fail_msg("'%s' was refused: %s", text, why);
    assert_string_equal(a.host, host);
}

static void hc_01_case_is_lowered(void **state) {
    (void)state;
    check_host("API.Allowed.TEST:443", "api.allowed.test");
    check_host("aPi.allowed.test", "api.allowed.test");
}

static void hc_02_03_one_final_dot_is_dropped(void **state) {
    static const char *const refused[] = {"blocked.test..", ".", "..", "..:443"};
    (void)state;
    check_host("blocked.test.:443", "blocked.test");
    check_host("api.allowed.test.", "api.allowed.test");
    check_all_refused(refused, COUNT(refused), 443);
}

static void hc_04_an_empty_label_is_refused(void **state) {
    static const char *const refused[] = {"api..allowed.test:443", ".allowed.test", "..test", ""};
    (void)state;
    check_all_refused(refused, COUNT(refused), 443);
}

static void hc_05_nul_is_refused(void **state) {
    (void)state;
    check_refused(VIEW("evil.test\0.allowed.test:443"), 443);
    check_refused(VIEW("api.allowed.test\0"), 443);
    check_refused(VIEW("\0"), 443);
    check_refused(VIEW("api.allowed.test:443\0"), 443);
}

static void hc_06_10_11_14_16_other_bytes_are_refused(void **state) {
    static const char *const refused[] = {
        "api%2Eallowed%2Etest",
        "%61pi.allowed.test",
        "api.allowed.test@evil.test",
        "user:pass@api.allowed.test",
        "evil.test\\@api.allowed.test",
        "api.allowed.test\\",
        "api.allowed.test :443",
        " api.allowed.test",
        "api.allowed.test ",
        "api.allowed.test\t",
        "api.allowed.test evil.test",
        "api.allowed.test\x0b",
        "api.allowed.test\x0c",
        "api.allowed.test\xc2\xa0",
        "api.allowed.test\r\n",
        "api.allowed.test, evil.test",
        "api.allowed.test,evil.test",
        "api.allowed.test;x",
        "api.allowed.test/",
        "api.allowed.test/x",
        "api.allowed.test?x",
        "api.allowed.test#x",
        "http://api.allowed.test",
        "*.allowed.test",
        "api.allowed.test:443/x",
        "a!b.test",
        "a$b.test",
        "\"api.allowed.test\"",
        "a/../b",
    };
    (void)state;
    check_all_refused(refused, COUNT(refused), 443);
}

static void hc_07_08_09_xs_05_unicode_is_refused_and_a_labels_are_opaque(void **state) {
    static const char *const refused[] = {
        "b\xc3\xbc"
        "cher.test",
        "\xd0\xb0pi.allowed.test",
        "api\xe3\x80\x82"
        "allowed.test", /* the ideographic full stop */
        "xn--\x80",
        "xn--",
        "xn--abc-",
        "xn--abc-.test",
        "xn--a_b.test",
        "-xn--a.test",
    };
    (void)state;
    check_host("xn--bcher-kva.test", "xn--bcher-kva.test");
    check_host("XN--Bcher-KVA.test", "xn--bcher-kva.test");
    check_host("xn--a.allowed.test", "xn--a.allowed.test");
    check_host("r3---sn-abc.example.com", "r3---sn-abc.example.com");
    check_all_refused(refused, COUNT(refused), 443);
}

static void hc_12_only_plain_ports_are_taken(void **state) {
    static const char *const refused[] = {
        "api.allowed.test",
        "api.allowed.test:",
        "api.allowed.test:0",
        "api.allowed.test:65536",
        "api.allowed.test:443443",
        "api.allowed.test:+443",
        "api.allowed.test:0443",
        "api.allowed.test: 443",
        "api.allowed.test:https",
        "api.allowed.test:443 ",
        "api.allowed.test:443:443",
        "api.allowed.test::443",
        "api.allowed.test:\xef\xbc\x94\xef\xbc\x94\xef\xbc\x93",
        "api.allowed.test:99999999999999999999",
        "api.allowed.test:-1",
        "api.allowed.test:0x1bb",
        ":443",
        "[::1]",
        "[::1]:",
        "[::1]443",
        "[::1]:0",
    };
    struct authority a;
    (void)state;
    check_all_refused(refused, COUNT(refused), 0);
    assert_int_equal(authority_parse(VIEW("a.test:65535"), 0, &a, NULL), 0);
    assert_int_equal(a.port, 65535);
    assert_int_equal(authority_parse(VIEW("a.test:1"), 443, &a, NULL), 0);
    assert_int_equal(a.port, 1);
    assert_int_equal(authority_parse(VIEW("a.test"), 443, &a, NULL), 0);
    assert_int_equal(a.port, 443);
    check_refused(VIEW("a.test:"), 443);
}

static void hc_13_ports_make_authorities_different(void **state) {
    struct authority a, b;
    (void)state;
    assert_int_equal(authority_parse(VIEW("api.allowed.test"), 443, &a, NULL), 0);
    assert_int_equal(authority_parse(VIEW("API.allowed.test.:443"), 80, &b, NULL), 0);
    assert_true(authority_equal(&a, &b));
    assert_int_equal(authority_parse(VIEW("api.allowed.test:8443"), 443, &b, NULL), 0);
    assert_false(authority_equal(&a, &b));
    assert_true(authority_same_host(&a, &b));
    assert_int_equal(authority_parse(VIEW("evil.test"), 443, &b, NULL), 0);
    assert_false(authority_same_host(&a, &b));
}

static void hc_15_underscores_are_allowed_and_hyphens_at_the_edge_are_not(void **state) {
    static const char *const refused[] = {"-x.allowed.test", "x-.allowed.test", "-",
                                          "a.-.b",           "a.test-",         "a.test-."};
    (void)state;
    check_host("_dmarc.allowed.test", "_dmarc.allowed.test");
    check_host("a_b.allowed.test", "a_b.allowed.test");
    check_host("_.allowed.test", "_.allowed.test");
    check_host("a-b.allowed.test", "a-b.allowed.test");
    check_all_refused(refused, COUNT(refused), 443);
}

static void hc_17_ip_03_04_13_a_numeric_last_label_is_a_failed_address(void **state) {
    static const char *const refused[] = {
        "foo.123",    "foo.0x7f",   "foo.0X7F",   "foo.0x",    "foo.123.",
        "2130706433", "0x7f000001", "0x7f.0.0.1", "0x7f.1",    "127.1",
        "0177.0.0.1", "127.0.0.1.", "1.2.3.4.5",  "256.1.1.1", "127.0.0.01",
        "1.2.3",      "foo.08",     "2852039166", "0",
    };
    (void)state;
    check_all_refused(refused, COUNT(refused), 443);
    check_host("123.foo", "123.foo");
    check_host("1.2.3.4x", "1.2.3.4x");
    check_host("foo.0xyz", "foo.0xyz");
    check_host("0x7f.test", "0x7f.test");
}

static void addresses_are_written_back_in_one_form(void **state) {
    static const char *const refused[] = {
        "::1",         "[::1",   "[127.0.0.1]", "[]",      "[::1%25lo]", "[fe80::1%eth0]",
        "[::1]x",      "[::1].", "[api.test]",  "[[::1]]", "]",          "[::1]:443x",
        "fd00::1:443", "x[::1]", "[v1.x]",      "[ ::1]"};
    struct authority a;
    (void)state;
    check_host("192.0.2.7:443", "192.0.2.7");
    check_host("[2001:DB8:0:0::1]:443", "2001:db8::1");
    check_host("[::FFFF:7f00:1]", "::ffff:127.0.0.1");
    check_all_refused(refused, COUNT(refused), 443);
    assert_int_equal(authority_parse(VIEW("[2001:DB8::1]"), 443, &a, NULL), 0);
    assert_int_equal(a.kind, HOST_ADDRESS);
    assert_int_equal(a.address.family, 6);
    assert_int_equal(authority_parse(VIEW("a.test"), 443, &a, NULL), 0);
    assert_int_equal(a.kind, HOST_NAME);
}

static void lengths_are_those_of_the_dns(void **state) {
    char text[400];
    struct authority a;
    (void)state;
    memset(text, 'a', sizeof text);
    for (size_t i = 63; i < sizeof text; i += 64)
        text[i] = '.';
    assert_int_equal(authority_parse(view_of(text, 63), 443, &a, NULL), 0);
    check_refused(view_of(text, 254), 443);
    assert_int_equal(authority_parse(view_of(text, 253), 443, &a, NULL), 0);
    assert_int_equal(strlen(a.host), 253);
    text[63] = 'a';
    check_refused(view_of(text, 64), 443);
    check_refused(view_of(text, sizeof text), 443);
}

static void a_host_alone_has_no_port(void **state) {
    struct authority a;
    const char *why = NULL;
    (void)state;
    assert_int_equal(authority_parse_host(VIEW("API.test."), 8443, &a, &why), 0);
    assert_string_equal(a.host, "api.test");
    assert_int_equal(a.port, 8443);
    assert_int_equal(authority_parse_host(VIEW("[::1]"), 1, &a, &why), 0);
    assert_int_equal(authority_parse_host(VIEW("api.test:443"), 443, &a, &why), ERR_BAD);
    assert_int_equal(authority_parse_host(VIEW("[::1]:443"), 443, &a, &why), ERR_BAD);
    assert_int_equal(authority_parse_host(VIEW("::1"), 443, &a, &why), ERR_BAD);
    assert_int_equal(authority_parse_host(VIEW(""), 443, &a, &why), ERR_BAD);
}

static void a_refused_text_leaves_the_result_alone(void **state) {
    struct authority a;
    (void)state;
    assert_int_equal(authority_parse(VIEW("good.test"), 443, &a, NULL), 0);
    assert_int_equal(authority_parse(VIEW("bad.test:0"), 443, &a, NULL), ERR_BAD);
    assert_string_equal(a.host, "good.test");
}

static void writing_and_reading_give_the_same(void **state) {
    static const struct {
        const char *text;
        uint16_t default_port;
        const char *written;
    } cases[] = {
        {"API.test:443", 443, "api.test"},
        {"api.test:8443", 443, "api.test:8443"},
        {"[::1]:443", 443, "[::1]"},
        {"[::1]:80", 443, "[::1]:80"},
        {"192.0.2.1:65535", 0, "192.0.2.1:65535"},
        {"api.test:80", 80, "api.test"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct authority a, again;
        struct buf out;
        buf_init(&out, 512);
        assert_int_equal(authority_parse(view_str(cases[i].text), 443, &a, NULL), 0);
        authority_write(&a, cases[i].default_port, &out);
        assert_true(view_equal(buf_view(&out), view_str(cases[i].written)));
        assert_int_equal(authority_parse(buf_view(&out), cases[i].default_port, &again, NULL), 0);
        assert_true(authority_equal(&a, &again));
        buf_free(&out);
    }
}

static void a_host_between_processes_is_spelled_in_one_way(void **state) {
    static const struct {
        const char *host;
        bool good;
    } cases[] = {
        {"api.allowed.test", true},
        {"9.9.9.10", true},
        {"2606:4700::1111", true},
        {"::1", true},
        {"[::1]", false},
        {"API.allowed.test", false},
        {"api.allowed.test.", false},
        {"api.test:443", false},
        {"2606:4700:0::1111", false},
        {"2606:4700::1111]", false},
        {"127.1", false},
        {"", false},
        {"::", true},
        {":", false},
        {"api..test", false},
    };
    struct authority a;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int result = authority_read(view_str(cases[i].host), 443, &a);
        if ((result == 0) != cases[i].good)
            fail_msg("'%s': %d", cases[i].host, result);
        if (result == 0)
            assert_string_equal(a.host, cases[i].host);
    }
    assert_int_equal(authority_read(VIEW("api.allowed.test"), 0, &a), ERR_BAD);
    assert_int_equal(authority_read(view_of("api\0.test", 9), 443, &a), ERR_BAD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hc_01_case_is_lowered),
        cmocka_unit_test(hc_02_03_one_final_dot_is_dropped),
        cmocka_unit_test(hc_04_an_empty_label_is_refused),
        cmocka_unit_test(hc_05_nul_is_refused),
        cmocka_unit_test(hc_06_10_11_14_16_other_bytes_are_refused),
        cmocka_unit_test(hc_07_08_09_xs_05_unicode_is_refused_and_a_labels_are_opaque),
        cmocka_unit_test(hc_12_only_plain_ports_are_taken),
        cmocka_unit_test(hc_13_ports_make_authorities_different),
        cmocka_unit_test(hc_15_underscores_are_allowed_and_hyphens_at_the_edge_are_not),
        cmocka_unit_test(hc_17_ip_03_04_13_a_numeric_last_label_is_a_failed_address),
        cmocka_unit_test(addresses_are_written_back_in_one_form),
        cmocka_unit_test(lengths_are_those_of_the_dns),
        cmocka_unit_test(a_host_alone_has_no_port),
        cmocka_unit_test(a_refused_text_leaves_the_result_alone),
        cmocka_unit_test(writing_and_reading_give_the_same),
        cmocka_unit_test(a_host_between_processes_is_spelled_in_one_way),
    };
    return cmocka_run_group_tests_name("authority", tests, NULL, NULL);
}

/* Addresses: what is one, how it is written, what class it has (theme IP). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "policy/address.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct address parsed(const char *text) {
    struct address a;
    if (address_parse(view_str(text), &a) != 0)
        fail_msg("'%s' was refused", text);
    return a;
}

static void plain_literals_are_written_back_in_rfc_5952_form(void **state) {
    static const char *const cases[][2] = {
        {"0.0.0.0", "0.0.0.0"},
        {"255.255.255.255", "255.255.255.255"},
        {"10.20.30.40", "10.20.30.40"},
        {"::", "::"},
        {"::1", "::1"},
        {"1::", "1::"},
        {"2001:DB8::00A1", "2001:db8::a1"},
        {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
        {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
        {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
        {"2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
        {"0:0:0:0:0:ffff:7f00:1", "::ffff:127.0.0.1"},
        {"::FFFF:127.0.0.1", "::ffff:127.0.0.1"},
        {"64:ff9b::192.0.2.1", "64:ff9b::c000:201"},
        {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[ADDRESS_TEXT_SIZE];
        struct address a = parsed(cases[i][0]), b;
        address_format(&a, text);
        assert_string_equal(text, cases[i][1]);
        b = parsed(text);
        assert_true(address_equal(&a, &b));
    }
}

static void ip_03_04_13_every_other_spelling_is_refused(void **state) {
    static const char *const cases[] = {
        "",
        "1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "1.2.3.4.5",
        "256.1.1.1",
        "1.2.3.256",
        "1..2.3",
        ".1.2.3.4",
        "1.2.3.",
        " 1.2.3.4",
        "1.2.3.4 ",
        "+1.2.3.4",
        "1.2.3.-4",
        "1.2.3.4/8",
        "00.0.0.0",
        "1.2.3.0004",
        ":",
        ":::",
        "::1::",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7::8:9",
        "1::2:3:4:5:6:7:8",
        ":1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:",
        "12345::",
        "::g",
        "fe80::1%eth0",
        "[::1]",
        "::1.2.3",
        "::1.2.3.4:5",
        "1.2.3.4::",
        "::1.2.3.04",
        "1:2:3:4:5:6:7:1.2.3.4",
        "::ffff:1.2.3.4.",
        "::0x1",
        "1 ::",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct address a;
        if (address_parse(view_str(cases[i]), &a) != ERR_BAD)
            fail_msg("'%s' was taken", cases[i]);
    }
    struct address a;
    assert_int_equal(address_parse(view_of("1.2.3.4\0", 8), &a), ERR_BAD);
}

/* Short random texts over the alphabet of addresses: the C library must agree on each. */
static void the_parser_agrees_with_inet_pton(void **state) {
    static const char alphabet[] = "0123456789abcdefF::::::....";
    (void)state;
    size_t n_taken = 0;
    srand(4711);
    for (int i = 0; i < 400000; i++) {
        char text[20];
        size_t n = (size_t)rand() % (sizeof text - 1);
        for (size_t k = 0; k < n; k++)
            text[k] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        text[n] = 0;
        bool six = strchr(text, ':') != NULL;
        uint8_t theirs[16] = {0};
        struct address ours;
        int theirs_takes = inet_pton(six ? AF_INET6 : AF_INET, text, theirs) == 1;
        int ours_takes = address_parse(view_str(text), &ours) == 0;
        if (theirs_takes != ours_takes)
            fail_msg("'%s': inet_pton %d, ours %d", text, theirs_takes, ours_takes);
        if (ours_takes)
            assert_memory_equal(ours.bytes, theirs, 16);
        n_taken += (size_t)ours_takes;
    }
    assert_true(n_taken > 1000);
}

static void random_addresses_are_written_as_inet_ntop_writes_them(void **state) {
    (void)state;
    srand(4712);
    for (int i = 0; i < 100000; i++) {
        struct address a = {.family = 6}, b;
        char ours[ADDRESS_TEXT_SIZE], theirs[INET6_ADDRSTRLEN];
        for (int k = 0; k < 16; k++)
            a.bytes[k] = (uint8_t)(rand() % 3 ? 0 : rand());
        a.bytes[rand() % 8] = 0x20; /* not IPv4-compatible, which inet_ntop writes with dots */
        address_format(&a, ours);
        inet_ntop(AF_INET6, a.bytes, theirs, sizeof theirs);
        assert_string_equal(ours, theirs);
        b = parsed(ours);
        assert_true(address_equal(&a, &b));
    }
}

struct class_case {
    enum address_class class;
    const char *text;
};

static void check_classes(const struct class_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct address a = parsed(cases[i].text);
        enum address_class c = address_classify(&a);
        if (c != cases[i].class)
            fail_msg("%s is %s, not %s", cases[i].text, address_class_name(c),
                     address_class_name(cases[i].class));
    }
}

static void ip_01_05_08_09_10_special_addresses_have_their_class(void **state) {
    static const struct class_case cases[] = {
        {ADDRESS_UNSPECIFIED, "0.0.0.0"},
        {ADDRESS_UNSPECIFIED, "0.1.2.3"},
        {ADDRESS_UNSPECIFIED, "::"},
        {ADDRESS_LOOPBACK, "127.0.0.1"},
        {ADDRESS_LOOPBACK, "127.255.255.254"},
        {ADDRESS_LOOPBACK, "::1"},
        {ADDRESS_PRIVATE, "10.0.0.1"},
        {ADDRESS_PRIVATE, "172.16.0.1"},
        {ADDRESS_PRIVATE, "172.31.255.255"},
        {ADDRESS_PUBLIC, "172.15.255.255"},
        {ADDRESS_PUBLIC, "172.32.0.0"},
        {ADDRESS_PRIVATE, "192.168.0.1"},
        {ADDRESS_PRIVATE, "fd00::1"},
        {ADDRESS_PRIVATE, "fc00::1"},
        {ADDRESS_PRIVATE, "fec0::1"},
        {ADDRESS_LINK_LOCAL, "169.254.0.1"},
        {ADDRESS_LINK_LOCAL, "fe80::1"},
        {ADDRESS_LINK_LOCAL, "febf::1"},
        {ADDRESS_SHARED, "100.64.0.1"},
        {ADDRESS_SHARED, "100.127.255.254"},
        {ADDRESS_PUBLIC, "100.128.0.0"},
        {ADDRESS_PUBLIC, "100.63.255.255"},
        {ADDRESS_MULTICAST, "224.0.0.1"},
        {ADDRESS_MULTICAST, "239.255.255.250"},
        {ADDRESS_MULTICAST, "ff02::1"},
        {ADDRESS_BROADCAST, "255.255.255.255"},
        {ADDRESS_RESERVED, "240.0.0.1"},
        {ADDRESS_RESERVED, "192.0.0.1"},
        {ADDRESS_RESERVED, "192.88.99.1"},
        {ADDRESS_RESERVED, "100::1"},
        {ADDRESS_RESERVED, "2001:10::1"},
        {ADDRESS_RESERVED, "2001:20::1"},
        {ADDRESS_RESERVED, "5f00::1"},
        {ADDRESS_RESERVED, "4000::1"},
        {ADDRESS_DOCUMENTATION, "192.0.2.1"},
        {ADDRESS_DOCUMENTATION, "198.51.100.1"},
        {ADDRESS_DOCUMENTATION, "203.0.113.1"},
        {ADDRESS_DOCUMENTATION, "2001:db8::1"},
        {ADDRESS_DOCUMENTATION, "3fff::1"},
        {ADDRESS_BENCHMARK, "198.18.0.1"},
        {ADDRESS_BENCHMARK, "198.19.255.255"},
        {ADDRESS_BENCHMARK, "2001:2::1"},
        {ADDRESS_PUBLIC, "1.1.1.1"},
        {ADDRESS_PUBLIC, "198.20.0.0"},
        {ADDRESS_PUBLIC, "223.255.255.255"},
        {ADDRESS_PUBLIC, "2606:4700:4700::1111"},
        {ADDRESS_PUBLIC, "2001:200::1"},
        {ADDRESS_PUBLIC, "2a00:1450::1"},
    };
    (void)state;
    check_classes(cases, COUNT(cases));
}

static void ip_02_metadata_services_are_metadata_in_every_form(void **state) {
    static const struct class_case cases[] = {
        {ADDRESS_METADATA, "169.254.169.254"},
        {ADDRESS_METADATA, "169.254.170.2"},
        {ADDRESS_METADATA, "169.254.170.23"},
        {ADDRESS_METADATA, "100.100.100.200"},
        {ADDRESS_METADATA, "192.0.0.192"},
        {ADDRESS_METADATA, "168.63.129.16"},
        {ADDRESS_METADATA, "fd00:ec2::254"},
        {ADDRESS_METADATA, "fd20:ce::254"},
        {ADDRESS_METADATA, "fe80::a9fe:a9fe"},
        {ADDRESS_METADATA, "::ffff:169.254.169.254"},
        {ADDRESS_METADATA, "0:0:0:0:0:ffff:a9fe:a9fe"},
        {ADDRESS_METADATA, "64:ff9b::a9fe:a9fe"},
        {ADDRESS_METADATA, "2002:a9fe:a9fe::1"},
        {ADDRESS_METADATA, "::169.254.169.254"},
    };
    (void)state;
    check_classes(cases, COUNT(cases));
}

static void ip_06_07_embedded_addresses_are_unpacked(void **state) {
    static const struct class_case cases[] = {
        {ADDRESS_LOOPBACK, "::ffff:127.0.0.1"},
        {ADDRESS_LOOPBACK, "::ffff:7f00:1"},
        {ADDRESS_PRIVATE, "::ffff:10.0.0.1"},
        {ADDRESS_PUBLIC, "::ffff:8.8.8.8"},
        {ADDRESS_TRANSLATED, "64:ff9b::127.0.0.1"},
        {ADDRESS_TRANSLATED, "64:ff9b::10.0.0.1"},
        {ADDRESS_PUBLIC, "64:ff9b::8.8.8.8"},
        {ADDRESS_TRANSLATED, "64:ff9b:1::7f00:1"},
        {ADDRESS_TRANSLATED, "64:ff9b:1::8.8.8.8"},
        {ADDRESS_RESERVED, "64:ff9b:2::8.8.8.8"},
        {ADDRESS_TRANSLATED, "2002:7f00:1::1"},
        {ADDRESS_TRANSLATED, "2002:c0a8:1::1"},
        {ADDRESS_PUBLIC, "2002:808:808::1"},
        {ADDRESS_TRANSLATED, "2001:0:7f00:1::1"},
        {ADDRESS_TRANSLATED, "2001:0:808:808::f5ff:fffe"}, /* the client is 10.0.0.1 */
        {ADDRESS_RESERVED, "2001:0:808:808::f7f7:f7f7"},
        {ADDRESS_TRANSLATED, "fe80::5efe:127.0.0.1"},
        {ADDRESS_TRANSLATED, "2606:4700::5efe:10.0.0.1"},
        {ADDRESS_TRANSLATED, "2606:4700::200:5efe:10.0.0.1"},
        {ADDRESS_PUBLIC, "2606:4700::200:5efe:8.8.8.8"},
        {ADDRESS_LINK_LOCAL, "fe80::5efe:8.8.8.8"},
        {ADDRESS_TRANSLATED, "::127.0.0.1"},
        {ADDRESS_TRANSLATED, "::2"},
        {ADDRESS_RESERVED, "::8.8.8.8"},
        {ADDRESS_TRANSLATED, "::ffff:0:127.0.0.1"},
        {ADDRESS_RESERVED, "::ffff:0:8.8.8.8"},
    };
    (void)state;
    check_classes(cases, COUNT(cases));
}

static void every_class_has_a_name_of_its_own(void **state) {
    (void)state;
    for (int a = ADDRESS_PUBLIC; a <= ADDRESS_TRANSLATED; a++)
        for (int b = ADDRESS_PUBLIC; b < a; b++)
            assert_string_not_equal(address_class_name((enum address_class)a),
                                    address_class_name((enum address_class)b));
}

static void ranges_hold_what_has_their_prefix(void **state) {
    static const struct {
        const char *range, *address;
        bool holds;
    } cases[] = {
        {"10.0.0.0/8", "10.255.255.255", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "::ffff:10.1.1.1", true},
        {"10.0.0.0/8", "a00::", false},
        {"192.168.4.0/22", "192.168.7.255", true},
        {"192.168.4.0/22", "192.168.8.0", false},
        {"192.168.4.4/31", "192.168.4.5", true},
        {"192.168.4.4/31", "192.168.4.6", false},
        {"192.168.4.4", "192.168.4.4", true},
        {"192.168.4.4", "192.168.4.5", false},
        {"0.0.0.0/0", "8.8.8.8", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "2001:db8::1", true},
        {"::/0", "::ffff:1.2.3.4", false},
        {"::ffff:10.0.0.0/104", "10.1.1.1", true},
        {"::ffff:10.0.0.0/104", "::ffff:10.1.1.1", true},
        {"::ffff:10.0.0.1", "10.0.0.1", true},
        {"fd00::/8", "fdff::1", true},
        {"fd00::/8", "fc00::1", false},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::1", false},
        {"2001:db8::1/128", "2001:db8::1", true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct range r;
        struct address a = parsed(cases[i].address);
        assert_int_equal(range_parse(view_str(cases[i].range), &r), 0);
        if (range_holds(&r, &a) != cases[i].holds)
            fail_msg("%s and %s", cases[i].range, cases[i].address);
    }
}

static void a_range_that_is_not_exact_is_refused(void **state) {
    static const char *const cases[] = {
        "10.0.0.1/8",   "10.0.0.0/33",
        "10.0.0.0/",    "10.0.0.0/08",
        "10.0.0.0/+8",  "10.0.0.0/8 ",
        "/8",           "10/8",
        "fd00::1/8",    "fd00::/129",
        "10.0.0.0/8/8", "[fd00::]/8",
        "10.0.0.0/-1",  "",
        "10.0.0.0//8",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct range r;
        if (range_parse(view_str(cases[i]), &r) != ERR_BAD)
            fail_msg("'%s' was taken", cases[i]);
    }
}

static void ip_06_07_an_address_is_reached_through_what_carries_it(void **state) {
    static const struct {
        const char *from, *to;
        bool reaches;
    } cases[] = {
        {"192.168.1.5", "192.168.1.5", true},         {"192.168.1.4", "192.168.1.5", false},
        {"::ffff:192.168.1.5", "192.168.1.5", true},  {"64:ff9b::c0a8:105", "192.168.1.5", true},
        {"64:ff9b::c0a8:104", "192.168.1.5", false},  {"2002:c0a8:105::1", "192.168.1.5", true},
        {"2001:db8::c0a8:105", "192.168.1.5", false}, {"fd00::5efe:c0a8:105", "192.168.1.5", true},
        {"2001:db8::1", "2001:db8::1", true},         {"192.168.1.5", "::ffff:c0a8:105", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct address from, to;
        assert_int_equal(address_parse(view_str(cases[i].from), &from), 0);
        assert_int_equal(address_parse(view_str(cases[i].to), &to), 0);
        if (address_reaches(&from, &to) != cases[i].reaches)
            fail_msg("%s to %s", cases[i].from, cases[i].to);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_literals_are_written_back_in_rfc_5952_form),
        cmocka_unit_test(ip_03_04_13_every_other_spelling_is_refused),
        cmocka_unit_test(the_parser_agrees_with_inet_pton),
        cmocka_unit_test(random_addresses_are_written_as_inet_ntop_writes_them),
        cmocka_unit_test(ip_01_05_08_09_10_special_addresses_have_their_class),
        cmocka_unit_test(ip_02_metadata_services_are_metadata_in_every_form),
        cmocka_unit_test(ip_06_07_embedded_addresses_are_unpacked),
        cmocka_unit_test(ip_06_07_an_address_is_reached_through_what_carries_it),
        cmocka_unit_test(every_class_has_a_name_of_its_own),
        cmocka_unit_test(ranges_hold_what_has_their_prefix),
        cmocka_unit_test(a_range_that_is_not_exact_is_refused),
    };
    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}

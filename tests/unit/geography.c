#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/geography.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * A database of one entry, 203.0.113.0/24, in MaxMind's format (version 2.0): a
 * search tree of one node for each bit, 16 zero bytes, the data, a marker, the metadata.
 */
enum { NODES = 24, MAP = 7 << 5, STRING = 2 << 5, UINT16 = 5 << 5, UINT32 = 6 << 5 };

static void put_string(struct buf *out, const char *s) {
    buf_put_u8(out, (uint8_t)(STRING | strlen(s)));
    buf_put_str(out, s);
}

static void put_u16(struct buf *out, const char *key, uint16_t x) {
    put_string(out, key);
    buf_put_u8(out, UINT16 | 2);
    buf_put_u16(out, x);
}

static void put_u32(struct buf *out, uint32_t x) {
    buf_put_u8(out, UINT32 | 4);
    buf_put_u32(out, x);
}

static void put_tree(struct buf *out) {
    static const uint8_t prefix[3] = {203, 0, 113};
    for (unsigned i = 0; i < NODES; i++) {
        uint32_t next = i + 1 < NODES ? i + 1 : NODES + 16;
        bool one = prefix[i / 8] >> (7 - i % 8) & 1;
        for (unsigned side = 0; side < 2; side++) {
            uint32_t record = (side == 1) == one ? next : NODES;
            buf_put_u8(out, (uint8_t)(record >> 16));
            buf_put_u16(out, (uint16_t)record);
        }
    }
}

static void put_metadata(struct buf *out) {
    buf_put_str(out, "\xab\xcd\xef"
                     "MaxMind.com");
    buf_put_u8(out, MAP | 9);
    put_u16(out, "binary_format_major_version", 2);
    put_u16(out, "binary_format_minor_version", 0);
    put_string(out, "build_epoch");
    buf_put(out, VIEW("\x04\x02\x65\x00\x00\x00")); /* extended type: uint64 */
    put_string(out, "database_type");
    put_string(out, "Test");
    put_string(out, "description");
    buf_put_u8(out, MAP | 0);
    put_u16(out, "ip_version", 4);
    put_string(out, "languages");
    buf_put(out, VIEW("\x00\x04")); /* extended type: array */
    put_string(out, "node_count");
    put_u32(out, NODES);
    put_u16(out, "record_size", 24);
}

static void put_database(struct buf *out, const char *country, uint32_t asn) {
    put_tree(out);
    for (size_t i = 0; i < 16; i++)
        buf_put_u8(out, 0);
    buf_put_u8(out, MAP | 2);
    put_string(out, "country");
    buf_put_u8(out, MAP | 1);
    put_string(out, "iso_code");
    put_string(out, country);
    put_string(out, "autonomous_system_number");
    put_u32(out, asn);
    put_metadata(out);
}

static void write_file(char *path, struct view v) {
    strcpy(path, "/tmp/exeat-geography-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, v.p, v.n), v.n);
    close(fd);
}

static void make_database(char *path, const char *country, uint32_t asn) {
    struct buf b;
    buf_init(&b, 65536);
    put_database(&b, country, asn);
    assert_true(buf_ok(&b));
    write_file(path, buf_view(&b));
    buf_free(&b);
}

static void find(struct geography *g, const char *text, const char *country, const char *asn) {
    struct geography_facts f;
    struct address a;
    assert_int_equal(address_parse(view_str(text), &a), 0);
    geography_find(g, &a, &f);
    assert_string_equal(f.country, country);
    assert_string_equal(f.asn, asn);
}

static void an_address_has_the_facts_of_its_entry(void **state) {
    char path[64];
    (void)state;
    make_database(path, "NL", 4294967295u);
    struct geography *g = geography_open(path, path);
    assert_non_null(g);
    find(g, "203.0.113.9", "NL", "4294967295");
    find(g, "203.0.114.9", "", "");
    find(g, "2001:db8::1", "", "");
    geography_free(g);
    unlink(path);
}

static void each_database_is_optional(void **state) {
    char path[64];
    (void)state;
    make_database(path, "NL", 64500);
    struct geography *g = geography_open(path, NULL);
    find(g, "203.0.113.9", "NL", "");
    geography_free(g);
    g = geography_open(NULL, path);
    find(g, "203.0.113.9", "", "64500");
    geography_free(g);
    g = geography_open(NULL, NULL);
    find(g, "203.0.113.9", "", "");
    geography_free(g);
    unlink(path);
}

static void a_country_that_is_no_code_is_no_fact(void **state) {
    static const char *const odd[] = {"NLD", "N", "", "\"\n", "N "};
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char path[64];
        make_database(path, odd[i], 64500);
        struct geography *g = geography_open(path, NULL);
        assert_non_null(g);
        find(g, "203.0.113.9", "", "");
        geography_free(g);
        unlink(path);
    }
}

static void ip_14_a_broken_or_absent_database_does_not_open(void **state) {
    char good[64], broken[64], path[64];
    struct buf b;
    (void)state;
    buf_init(&b, 65536);
    put_database(&b, "NL", 64500);
    make_database(good, "NL", 64500);
    assert_null(geography_open("/nonexistent/country.mmdb", NULL));
    assert_null(geography_open(good, "/nonexistent/asn.mmdb"));
    write_file(broken, VIEW("this is no database"));
    assert_null(geography_open(broken, NULL));
    assert_null(geography_open(good, broken));
    /* Without its metadata's end. */
    write_file(path, view_head(buf_view(&b), buf_len(&b) - 20));
    assert_null(geography_open(path, NULL));
    unlink(path);
    unlink(broken);
    unlink(good);
    buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_the_facts_of_its_entry),
        cmocka_unit_test(each_database_is_optional),
        cmocka_unit_test(a_country_that_is_no_code_is_no_fact),
        cmocka_unit_test(ip_14_a_broken_or_absent_database_does_not_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

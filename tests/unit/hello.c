/*
 * ClientHellos: made by hand for each lie, made by OpenSSL for the truth, and
 * cut and fragmented at every place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/ssl.h>
#include <string.h>

#include "http/hello.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MAX = 32768 };

static struct buf body, message, records;

/* ---- a maker ---- */

static void put_u24(struct buf *b, size_t n) {
    buf_put_u8(b, (uint8_t)(n >> 16));
    buf_put_u16(b, (uint16_t)n);
}

static void put_extension(unsigned type, struct view v) {
    buf_put_u16(&body, (uint16_t)type);
    buf_put_u16(&body, (uint16_t)v.n);
    buf_put(&body, v);
}

/* Cuts the message into records of `size` bytes. */
static void make_records(struct view v, size_t size) {
    buf_reset(&records);
    for (size_t at = 0; at < v.n; at += size) {
        struct view part = view_slice(v, at, at + size);
        buf_put_u8(&records, 22);
        buf_put_u16(&records, 0x0301);
        buf_put_u16(&records, (uint16_t)part.n);
        buf_put(&records, part);
    }
}

/* A hello whose extensions are what is in `body`. */
static void make_message(void) {
    static const uint8_t random[32];
    struct buf fixed;
    buf_init(&fixed, 65536);
    buf_put_u16(&fixed, 0x0303);
    buf_put(&fixed, view_of(random, sizeof random));
    buf_put_u8(&fixed, 32);
    buf_put(&fixed, view_of(random, sizeof random));
    buf_put_u16(&fixed, 4);
    buf_put(&fixed, VIEW("\x13\x01\xda\xda"));
    buf_put(&fixed, VIEW("\x01\x00"));
    buf_put_u16(&fixed, (uint16_t)buf_len(&body));
    buf_put(&fixed, buf_view(&body));
    buf_reset(&message);
    buf_put_u8(&message, 1);
    put_u24(&message, buf_len(&fixed));
    buf_put(&message, buf_view(&fixed));
    buf_free(&fixed);
    make_records(buf_view(&message), 16384);
}

static int read_all(struct hello *h) {
    const char *why;
    int err = hello_read(buf_view(&records), MAX, h, &why);
    if (err == ERR_BAD)
        assert_true(why[0] != 0);
    return err;
}

/* One hello with one extension. */
static int read_with(unsigned type, struct view v, struct hello *h) {
    buf_reset(&body);
    put_extension(type, v);
    make_message();
    return read_all(h);
}

/* ---- what is read ---- */

static void make_ordinary(void) {
    buf_reset(&body);
    put_extension(0x0a0a, VIEW("")); /* GREASE */
    put_extension(0, VIEW("\x00\x13\x00\x00\x10"
                          "aPi.allowed.test"));
    put_extension(16, VIEW("\x00\x0c\x02h2\x08http/1.1"));
    put_extension(0xfe0d, VIEW("\x00\x01\x02\x03"));
    put_extension(0x1a1a, VIEW("\x00"));
    make_message();
}

static void check_ordinary(const struct hello *h) {
    assert_true(h->has_sni && h->has_alpn && h->alpn_h2 && h->alpn_http1 && h->has_ech);
    assert_string_equal(h->sni, "aPi.allowed.test");
    assert_int_equal(h->size, buf_len(&records));
}

static void test_names_and_protocols_are_read_as_sent(void **state) {
    (void)state;
    struct hello h;
    make_ordinary();
    assert_int_equal(read_all(&h), 0);
    check_ordinary(&h);
}

static void test_every_cut_asks_for_more(void **state) {
    (void)state;
    struct hello h;
    const char *why;
    make_ordinary();
    for (size_t n = 0; n < buf_len(&records); n++)
        assert_int_equal(hello_read(view_head(buf_view(&records), n), MAX, &h, &why), ERR_AGAIN);
    size_t size = buf_len(&records);
    buf_put(&records, VIEW("\x14\x03\x03\x00\x01\x01")); /* what comes next is not looked at */
    assert_int_equal(read_all(&h), 0);
    assert_int_equal(h.size, size);
}

static void test_records_of_every_size_are_put_together(void **state) {
    (void)state;
    make_ordinary();
    for (size_t size = 1; size <= buf_len(&message); size++) {
        struct hello h;
        const char *why;
        make_records(buf_view(&message), size);
        size_t n = (buf_len(&message) + size - 1) / size;
        if (n > 64) {
            assert_int_equal(read_all(&h), ERR_BAD);
            continue;
        }
        for (size_t cut = 0; cut < buf_len(&records); cut++)
            assert_int_equal(hello_read(view_head(buf_view(&records), cut), MAX, &h, &why),
                             ERR_AGAIN);
        assert_int_equal(read_all(&h), 0);
        check_ordinary(&h);
    }
}

static void test_ti_07_a_name_behind_16_kilobytes_is_found(void **state) {
    (void)state;
    static uint8_t padding[17000];
    struct hello h;
    buf_reset(&body);
    put_extension(51, view_of(padding, 1220));
    put_extension(21, view_of(padding, sizeof padding));
    put_extension(0, VIEW("\x00\x04\x00\x00\x01"
                          "a"));
    make_message();
    assert_int_equal(read_all(&h), 0);
    assert_string_equal(h.sni, "a");
    assert_true(h.size > 18000);
}

static void test_a_hello_beyond_the_limit_is_refused_as_soon_as_it_is_known(void **state) {
    (void)state;
    static uint8_t padding[40000];
    struct hello h;
    const char *why;
    buf_reset(&body);
    put_extension(21, view_of(padding, sizeof padding));
    make_message();
    struct view v = buf_view(&records);
    assert_int_equal(hello_read(view_head(v, 8), MAX, &h, &why), ERR_AGAIN);
    assert_int_equal(hello_read(view_head(v, 9), MAX, &h, &why), ERR_LIMIT);
    make_ordinary();
    v = buf_view(&records);
    assert_int_equal(hello_read(v, v.n, &h, &why), 0);
    assert_int_equal(hello_read(view_head(v, v.n - 1), v.n - 1, &h, &why), ERR_LIMIT);
    assert_int_equal(hello_read(v, v.n - 1, &h, &why), ERR_LIMIT);
}

static void test_ti_05_a_hello_without_extensions_has_no_name(void **state) {
    (void)state;
    struct hello h;
    buf_reset(&body);
    make_message();
    assert_int_equal(read_all(&h), 0);
    assert_false(h.has_sni || h.has_alpn || h.has_ech);
}

static void test_ti_06_doubtful_names_are_refused(void **state) {
    (void)state;
    static uint8_t long_list[2 + 3 + 256] = {0x01, 0x03, 0x00, 0x01, 0x00};
    static const struct view cases[] = {
        VIEW(""),
        VIEW("\x00\x00"),             /* an empty list */
        VIEW("\x00\x03\x00\x00\x00"), /* an empty name */
        VIEW("\x00\x04\x01\x00\x01"
             "a"), /* an unknown type */
        VIEW("\x00\x08\x00\x00\x01"
             "a\x00\x00\x01"
             "b"), /* two names */
        VIEW("\x00\x08\x00\x00\x01"
             "a\x01\x00\x01"
             "b"),
        VIEW("\x00\x06\x00\x00\x03"
             "a\0b"), /* NUL */
        VIEW("\x00\x06\x00\x00\x03"
             "a b"),
        VIEW("\x00\x06\x00\x00\x03"
             "a\xc3\xa4"),
        VIEW("\x00\x06\x00\x00\x03"
             "a\r\n"),
        VIEW("\x00\x0c\x00\x00\x09"
             "127.0.0.1"), /* addresses */
        VIEW("\x00\x06\x00\x00\x03"
             "::1"),
        VIEW("\x00\x05\x00\x00\x01"
             "a"), /* lengths that lie */
        VIEW("\x00\x03\x00\x00\x01"
             "a"),
        VIEW("\x00\x04\x00\x00\x02"
             "a"),
        VIEW("\x00\x04\x00\x00\x01"
             "aa"),
        VIEW("\x00"),
        VIEW("\x00\x04\x00"),
    };
    struct hello h;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (read_with(0, cases[i], &h) != ERR_BAD)
            fail_msg("case %zu", i);
    memset(long_list + 5, 'a', 256);
    assert_int_equal(read_with(0, view_of(long_list, sizeof long_list), &h), ERR_BAD);
    long_list[1] = 0x02, long_list[3] = 0x00, long_list[4] = 0xff;
    assert_int_equal(read_with(0, view_of(long_list, sizeof long_list - 1), &h), 0);
    assert_int_equal(strlen(h.sni), 255);
    buf_reset(&body);
    put_extension(0, VIEW("\x00\x04\x00\x00\x01"
                          "a"));
    put_extension(0, VIEW("\x00\x04\x00\x00\x01"
                          "a"));
    make_message();
    assert_int_equal(read_all(&h), ERR_BAD);
}

static void test_tu_09_protocol_lists(void **state) {
    (void)state;
    static const struct {
        struct view list;
        int err;
        bool http1, h2;
    } cases[] = {
        {VIEW("\x00\x03\x02h2"), 0, false, true},
        {VIEW("\x00\x09\x08http/1.1"), 0, true, false},
        {VIEW("\x00\x09\x08http/1.0"), 0, false, false},
        {VIEW("\x00\x0b\x0ahttp/1.1xx"), 0, false, false},
        {VIEW("\x00\x04\x03"
              "foo"),
         0, false, false},
        {VIEW("\x00\x00"), ERR_BAD, false, false},
        {VIEW(""), ERR_BAD, false, false},
        {VIEW("\x00\x01\x00"), ERR_BAD, false, false},
        {VIEW("\x00\x03\x03h2"), ERR_BAD, false, false},
        {VIEW("\x00\x02\x02h2"), ERR_BAD, false, false},
    };
    struct hello h;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int err = read_with(16, cases[i].list, &h);
        if (err != cases[i].err ||
            (err == 0 && (h.alpn_http1 != cases[i].http1 || h.alpn_h2 != cases[i].h2)))
            fail_msg("case %zu", i);
    }
}

static void test_what_is_not_a_client_hello_is_refused_at_once(void **state) {
    (void)state;
    static const struct view cases[] = {
        VIEW("GET / HTTP/1.1\r\n"),
        VIEW("SSH-2.0-x\r\n"),
        VIEW("\x80\x2e\x01\x00\x02"),         /* SSLv2 */
        VIEW("\x15\x03\x01\x00\x02\x01\x00"), /* an alert */
        VIEW("\x16\x02\x00"),
        VIEW("\x16\x03\x01\x00\x00"),         /* an empty record */
        VIEW("\x16\x03\x01\x40\x01"),         /* longer than a record may be */
        VIEW("\x16\x03\x01\x00\x10\x02"),     /* a ServerHello */
        VIEW("\x16\x03\x01\x00\x01\x01\x17"), /* data between the hello's records */
    };
    struct hello h;
    const char *why;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (hello_read(cases[i], MAX, &h, &why) != ERR_BAD)
            fail_msg("case %zu", i);
    assert_true(hello_starts(22));
    assert_false(hello_starts('G'));
    assert_false(hello_starts(0x80));
}

static void test_every_length_that_lies_is_refused(void **state) {
    (void)state;
    /* offsets in the message of length fields, and their size */
    static const struct {
        size_t at, size;
    } cases[] = {{38, 1}, {71, 2}, {77, 1}, {79, 2}, {83, 2}};
    struct hello h;
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (int by = -1; by <= 1; by += 2) {
            make_ordinary();
            uint8_t *p = message.p + message.pos + cases[i].at + cases[i].size - 1;
            *p = (uint8_t)(*p + by);
            make_records(buf_view(&message), 16384);
            if (read_all(&h) != ERR_BAD)
                fail_msg("case %zu by %d", i, by);
        }
    }
}

/* A hello of these fields only. */
static int read_fields(struct view session_id, struct view ciphers, struct view compression) {
    static const uint8_t random[32];
    struct hello h;
    buf_reset(&message);
    buf_put_u8(&message, 1);
    put_u24(&message, 2 + 32 + 1 + session_id.n + 2 + ciphers.n + 1 + compression.n);
    buf_put_u16(&message, 0x0303);
    buf_put(&message, view_of(random, sizeof random));
    buf_put_u8(&message, (uint8_t)session_id.n);
    buf_put(&message, session_id);
    buf_put_u16(&message, (uint16_t)ciphers.n);
    buf_put(&message, ciphers);
    buf_put_u8(&message, (uint8_t)compression.n);
    buf_put(&message, compression);
    make_records(buf_view(&message), 16384);
    return read_all(&h);
}

static void test_the_fixed_fields_have_sane_sizes(void **state) {
    (void)state;
    static const uint8_t bytes[33];
    struct view none = {NULL, 0}, one = view_of(bytes, 1), two = view_of(bytes, 2);
    assert_int_equal(read_fields(none, two, one), 0);
    assert_int_equal(read_fields(view_of(bytes, 32), two, one), 0);
    assert_int_equal(read_fields(view_of(bytes, 33), two, one), ERR_BAD);
    assert_int_equal(read_fields(none, view_of(bytes, 3), one), ERR_BAD);
    assert_int_equal(read_fields(none, none, one), ERR_BAD);
    assert_int_equal(read_fields(none, two, none), ERR_BAD);
}

static void test_bytes_behind_the_hello_in_its_record_are_refused(void **state) {
    (void)state;
    struct hello h;
    const char *why;
    make_ordinary();
    buf_put(&message, VIEW("\x14"));
    make_records(buf_view(&message), 16384);
    assert_int_equal(read_all(&h), ERR_BAD);
    /* already when the byte has not come yet */
    struct view v = buf_view(&records);
    assert_int_equal(hello_read(view_head(v, v.n - 1), MAX, &h, &why), ERR_BAD);
}

static void test_openssl_s_own_hellos_are_read(void **state) {
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < COUNT(versions); i++) {
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_max_proto_version(ctx, versions[i]);
        SSL *ssl = SSL_new(ctx);
        BIO *out = BIO_new(BIO_s_mem());
        SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
        assert_int_equal(SSL_set_tlsext_host_name(ssl, "api.allowed.test"), 1);
        assert_int_equal(SSL_set_alpn_protos(ssl, (const uint8_t *)"\x08http/1.1", 9), 0);
        assert_int_equal(SSL_connect(ssl), -1);
        char *p;
        long n = BIO_get_mem_data(out, &p);
        buf_reset(&records);
        buf_put(&records, view_of(p, (size_t)n));
        struct hello h;
        assert_int_equal(read_all(&h), 0);
        assert_string_equal(h.sni, "api.allowed.test");
        assert_true(h.alpn_http1 && !h.alpn_h2 && !h.has_ech);
        assert_int_equal(h.size, n);
        SSL_free(ssl);
        SSL_CTX_free(ctx);
    }
}

static int setup(void **state) {
    (void)state;
    buf_init(&body, 1 << 20);
    buf_init(&message, 1 << 20);
    buf_init(&records, 1 << 20);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    buf_free(&body);
    buf_free(&message);
    buf_free(&records);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_protocols_are_read_as_sent),
        cmocka_unit_test(test_every_cut_asks_for_more),
        cmocka_unit_test(test_records_of_every_size_are_put_together),
        cmocka_unit_test(test_ti_07_a_name_behind_16_kilobytes_is_found),
        cmocka_unit_test(test_a_hello_beyond_the_limit_is_refused_as_soon_as_it_is_known),
        cmocka_unit_test(test_ti_05_a_hello_without_extensions_has_no_name),
        cmocka_unit_test(test_ti_06_doubtful_names_are_refused),
        cmocka_unit_test(test_tu_09_protocol_lists),
        cmocka_unit_test(test_what_is_not_a_client_hello_is_refused_at_once),
        cmocka_unit_test(test_every_length_that_lies_is_refused),
        cmocka_unit_test(test_the_fixed_fields_have_sane_sizes),
        cmocka_unit_test(test_bytes_behind_the_hello_in_its_record_are_refused),
        cmocka_unit_test(test_openssl_s_own_hellos_are_read),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

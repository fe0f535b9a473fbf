#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/inflate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { GZIP = 31, ZLIB = 15, RAW = -15 };

static struct buf encode(int bits, struct view text) {
    struct buf b;
    z_stream z = {0};
    buf_init(&b, 1 << 24);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&z, text.n);
    z.next_in = (Bytef *)(uintptr_t)text.p;
    z.avail_in = (uInt)text.n;
    z.next_out = buf_reserve(&b, room);
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    buf_commit(&b, room - z.avail_out);
    deflateEnd(&z);
    return b;
}

/* Decodes in input pieces of `piece` bytes and output pieces of `room`; NULL, or why it was refused. */
static const char *decode(enum inflate_format format, struct view in, size_t piece, size_t room,
                          uint64_t most, uint64_t ratio, struct buf *out) {
    struct inflate *z = inflate_new(format, most, ratio);
    const char *why = NULL;
    buf_reset(out);
    while (in.n > 0 && !why) {
        struct view now = view_head(in, piece);
        in = view_skip(in, piece);
        for (;;) {
            uint8_t *p = buf_reserve(out, room);
            assert_non_null(p);
            struct inflate_step step = inflate_next(z, now, p, room);
            assert_true(step.used <= now.n && step.made <= room);
            now = view_skip(now, step.used);
            why = step.why;
            if (why)
                break;
            buf_commit(out, step.made);
            if (step.used == 0 && step.made == 0)
                break;
        }
        assert_true(why || now.n == 0);
    }
    if (!why)
        why = inflate_end(z);
    inflate_free(z);
    return why;
}

static const char text[] = "{\"headers\":{\"authorization\":\"Bearer abcabcabcabcabcabc\"}} and on";

static const struct {
    int bits;
    enum inflate_format format;
} codings[] = {{GZIP, INFLATE_GZIP}, {ZLIB, INFLATE_DEFLATE}, {RAW, INFLATE_DEFLATE}};
enum { CODINGS = sizeof codings / sizeof *codings };

static void rf_02_gzip_and_both_deflates_are_decoded_at_every_cut(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 16);
    for (size_t c = 0; c < CODINGS; c++) {
        struct buf b = encode(codings[c].bits, VIEW(text));
        for (size_t piece = 1; piece <= buf_len(&b); piece++) {
            for (size_t room = 1; room < 100; room += 11) {
                assert_null(decode(codings[c].format, buf_view(&b), piece, room, 0, 1000, &out));
                assert_true(view_equal(buf_view(&out), VIEW(text)));
            }
        }
        buf_free(&b);
    }
    buf_free(&out);
}

static void rf_02_a_body_cut_short_anywhere_is_refused(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 16);
    for (size_t c = 0; c < CODINGS; c++) {
        struct buf b = encode(codings[c].bits, VIEW(text));
        for (size_t n = 1; n < buf_len(&b); n++)
            assert_non_null(
                decode(codings[c].format, view_head(buf_view(&b), n), 7, 64, 0, 1000, &out));
        buf_free(&b);
    }
    buf_free(&out);
}

static void rf_02_a_wrong_checksum_or_length_is_refused(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 16);
    for (size_t c = 0; c < 2; c++) {
        struct buf b = encode(codings[c].bits, VIEW(text));
        size_t trailer = codings[c].bits == GZIP ? 8 : 4;
        for (size_t i = 1; i <= trailer; i++) {
            b.p[b.n - i] ^= 1;
            assert_non_null(decode(codings[c].format, buf_view(&b), 1000, 1000, 0, 1000, &out));
            b.p[b.n - i] ^= 1;
        }
        assert_null(decode(codings[c].format, buf_view(&b), 1000, 1000, 0, 1000, &out));
        buf_free(&b);
    }
    buf_free(&out);
}

static void rf_02_bytes_behind_the_end_are_refused(void **state) {
    (void)state;
    static const struct view tails[] = {VIEW("\0"),
                                        VIEW("x"),
                                        VIEW("\x1f"),
                                        VIEW("\x1f\x8b"),
                                        VIEW("secret in clear"),
                                        VIEW("\0\0\0\0\0\0\0\0")};
    struct buf out;
    buf_init(&out, 1 << 16);
    for (size_t c = 0; c < CODINGS; c++) {
        for (size_t t = 0; t < sizeof tails / sizeof *tails; t++) {
            struct buf b = encode(codings[c].bits, VIEW(text));
            buf_put(&b, tails[t]);
            for (size_t piece = 1; piece < 200; piece += 13)
                assert_non_null(decode(codings[c].format, buf_view(&b), piece, 64, 0, 1000, &out));
            buf_free(&b);
        }
    }
    buf_free(&out);
}

static void rf_02_gzip_members_are_one_body(void **state) {
    (void)state;
    struct buf out, b = encode(GZIP, VIEW("first ")), second = encode(GZIP, VIEW("second")),
                    empty = encode(GZIP, VIEW(""));
    buf_init(&out, 1 << 16);
    buf_put(&b, buf_view(&empty));
    buf_put(&b, buf_view(&second));
    for (size_t piece = 1; piece <= buf_len(&b); piece++) {
        assert_null(decode(INFLATE_GZIP, buf_view(&b), piece, 5, 0, 1000, &out));
        assert_true(view_equal(buf_view(&out), VIEW("first second")));
    }
    /* zlib streams do not concatenate. */
    struct buf z = encode(ZLIB, VIEW("first ")), z2 = encode(ZLIB, VIEW("second"));
    buf_put(&z, buf_view(&z2));
    assert_non_null(decode(INFLATE_DEFLATE, buf_view(&z), 1000, 1000, 0, 1000, &out));
    buf_free(&b);
    buf_free(&second);
    buf_free(&empty);
    buf_free(&z);
    buf_free(&z2);
    buf_free(&out);
}

static void rx_06_a_body_may_grow_only_so_far(void **state) {
    (void)state;
    static uint8_t zeros[4 << 20];
    struct buf out, b = encode(GZIP, view_of(zeros, sizeof zeros));
    buf_init(&out, 8 << 20);
    assert_null(decode(INFLATE_GZIP, buf_view(&b), 4096, 4096, 0, 2000, &out));
    assert_int_equal(buf_len(&out), sizeof zeros);
    /* About 1030 to 1. */
    assert_non_null(decode(INFLATE_GZIP, buf_view(&b), 4096, 4096, 0, 900, &out));
    assert_true(buf_len(&out) <= INFLATE_RATIO_FREE + (1 << 20));
    assert_null(decode(INFLATE_GZIP, buf_view(&b), 4096, 4096, sizeof zeros, 2000, &out));
    assert_non_null(decode(INFLATE_GZIP, buf_view(&b), 4096, 4096, sizeof zeros - 1, 2000, &out));
    buf_free(&b);
    buf_free(&out);
}

static void raw_deflate_may_begin_almost_like_zlib(void **state) {
    (void)state;
    /* Stored blocks; 0x0805 is no multiple of 31. */
    struct buf out;
    buf_init(&out, 1 << 16);
    assert_null(decode(INFLATE_DEFLATE, VIEW("\x08\5\0\xfa\xffhello\1\0\0\xff\xff"), 3, 100, 0,
                       1000, &out));
    assert_true(view_equal(buf_view(&out), VIEW("hello")));
    buf_free(&out);
}

static void a_small_body_is_not_refused_for_its_ratio(void **state) {
    (void)state;
    static uint8_t zeros[INFLATE_RATIO_FREE];
    struct buf out, b = encode(GZIP, view_of(zeros, sizeof zeros));
    buf_init(&out, 1 << 20);
    assert_null(decode(INFLATE_GZIP, buf_view(&b), 4096, 4096, 0, 10, &out));
    buf_free(&b);
    buf_free(&out);
}

static void other_formats_and_dictionaries_are_refused(void **state) {
    (void)state;
    static const struct {
        enum inflate_format format;
        struct view bytes;
    } bad[] = {
        {INFLATE_GZIP, VIEW("plain text")},
        {INFLATE_GZIP, VIEW("\x28\xb5\x2f\xfd zstd")},
        {INFLATE_GZIP, VIEW("\x78\x9c\x03\0\0\0\0\1")}, /* zlib */
        {INFLATE_GZIP,
         VIEW("\x1f\x8b\x08\xe0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0")},             /* reserved flags */
        {INFLATE_GZIP, VIEW("\x1f\x8b\x09\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0")}, /* method 9 */
        {INFLATE_DEFLATE, VIEW("\x78\xbb\0\0\0\1\3\0\0\0\0\1")}, /* preset dictionary */
        {INFLATE_DEFLATE, VIEW("plain text")},
        {INFLATE_DEFLATE, VIEW("\x78")},
        {INFLATE_DEFLATE, VIEW("\7\0")}, /* block type 3 */
    };
    struct buf out;
    buf_init(&out, 1 << 16);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(decode(bad[i].format, bad[i].bytes, 3, 100, 0, 1000, &out));
    buf_free(&out);
}

static void an_empty_body_is_empty_and_a_refused_one_stays_so(void **state) {
    (void)state;
    struct inflate *z = inflate_new(INFLATE_GZIP, 0, 1000);
    assert_null(inflate_end(z));
    uint8_t out[16];
    assert_non_null(inflate_next(z, VIEW("nonsense"), out, sizeof out).why);
    assert_non_null(inflate_next(z, VIEW("\x1f\x8b"), out, sizeof out).why);
    assert_non_null(inflate_end(z));
    inflate_free(z);
    inflate_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rf_02_gzip_and_both_deflates_are_decoded_at_every_cut),
        cmocka_unit_test(rf_02_a_body_cut_short_anywhere_is_refused),
        cmocka_unit_test(rf_02_a_wrong_checksum_or_length_is_refused),
        cmocka_unit_test(rf_02_bytes_behind_the_end_are_refused),
        cmocka_unit_test(rf_02_gzip_members_are_one_body),
        cmocka_unit_test(rx_06_a_body_may_grow_only_so_far),
        cmocka_unit_test(raw_deflate_may_begin_almost_like_zlib),
        cmocka_unit_test(a_small_body_is_not_refused_for_its_ratio),
        cmocka_unit_test(other_formats_and_dictionaries_are_refused),
        cmocka_unit_test(an_empty_body_is_empty_and_a_refused_one_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

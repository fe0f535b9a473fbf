#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/line.h"
#include "audit/record.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- one record through a socket ---- */

struct pipe {
    struct audit_writer *writer;
    int reader;
    uint8_t packet[RECORD_SIZE + 1];
    size_t size;
};

static void pipe_open(struct pipe *p, uint64_t epoch) {
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    p->writer = audit_writer_new(fds[0], "egress 3", epoch);
    p->reader = fds[1];
    assert_non_null(p->writer);
}

static void pipe_close(struct pipe *p) {
    audit_writer_free(p->writer);
    close(p->reader);
}

static struct record_facts pipe_pass(struct pipe *p, struct record *r) {
    struct record_facts f;
    assert_int_equal(audit_write(p->writer, r), 0);
    ssize_t n = read(p->reader, p->packet, sizeof p->packet);
    assert_true(n > 0 && n <= RECORD_SIZE);
    p->size = (size_t)n;
    assert_int_equal(record_read(view_of(p->packet, p->size), &f), 0);
    return f;
}

static void every_field_comes_out_as_it_went_in(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    char text[32];
    pipe_open(&p, 77);
    record_begin(&r, RECORD_OUTCOME, 1000, 2000);
    for (unsigned i = 0; i < FIELD_COUNT; i++) {
        enum record_field f = (enum record_field)i;
        snprintf(text, sizeof text, "value %u", i);
        if (record_field_is_number(f))
            record_number(&r, f, UINT64_MAX - i);
        else
            record_str(&r, f, text);
    }
    struct record_facts f = pipe_pass(&p, &r);
    assert_int_equal(f.kind, RECORD_OUTCOME);
    assert_int_equal(f.number, 1);
    assert_int_equal(f.epoch, 77);
    assert_int_equal(f.wall, 1000);
    assert_int_equal(f.mono, 2000);
    assert_true(view_equal(f.origin, VIEW("egress 3")));
    for (unsigned i = 0; i < FIELD_COUNT; i++) {
        snprintf(text, sizeof text, "value %u", i);
        assert_true(f.present & (UINT64_C(1) << i));
        if (record_field_is_number((enum record_field)i))
            assert_true(f.number_of[i] == UINT64_MAX - i);
        else
            assert_true(view_equal(f.text[i], view_str(text)));
    }
    record_free(&r);
    pipe_close(&p);
}

static void a_field_given_twice_keeps_the_first_and_empty_ones_are_left_out(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    pipe_open(&p, 1);
    record_begin(&r, RECORD_DECISION, 1, 1);
    record_str(&r, FIELD_HOST, "");
    record_str(&r, FIELD_HOST, NULL);
    record_str(&r, FIELD_HOST, "first");
    record_str(&r, FIELD_HOST, "second");
    record_number(&r, FIELD_STATUS, 403);
    record_number(&r, FIELD_STATUS, 200);
    struct record_facts f = pipe_pass(&p, &r);
    assert_true(view_equal(f.text[FIELD_HOST], VIEW("first")));
    assert_int_equal(f.number_of[FIELD_STATUS], 403);
    assert_int_equal(f.present, UINT64_C(1) << FIELD_HOST | UINT64_C(1) << FIELD_STATUS);
    record_free(&r);
    pipe_close(&p);
}

static void numbers_count_up_only_for_what_the_kernel_took(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    static char big[RECORD_TEXT_MAX];
    uint64_t sent = 0;
    int result;
    memset(big, 'x', sizeof big);
    pipe_open(&p, 1);
    record_begin(&r, RECORD_DECISION, 1, 1);
    record_text(&r, FIELD_PATH, view_of(big, sizeof big));
    while ((result = audit_write(p.writer, &r)) == 0)
        sent++;
    assert_int_equal(result, ERR_AGAIN);
    assert_true(sent > 10);
    assert_int_equal(audit_writer_number(p.writer), sent);
    for (uint64_t i = 1; i <= sent; i++) {
        struct record_facts f;
        ssize_t n = read(p.reader, p.packet, sizeof p.packet);
        assert_int_equal(record_read(view_of(p.packet, (size_t)n), &f), 0);
        assert_int_equal(f.number, i);
    }
    assert_int_equal(pipe_pass(&p, &r).number, sent + 1);
    record_free(&r);
    pipe_close(&p);
}

static void what_a_turn_gathers_is_one_packet(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    struct record_packet k;
    struct record_facts f;
    uint64_t number;
    pipe_open(&p, 5);
    for (uint64_t i = 1; i <= RECORDS_A_PACKET + 3; i++) {
        record_begin(&r, RECORD_DECISION, i, i);
        assert_int_equal(audit_gather(p.writer, &r, &number), 0);
        assert_int_equal(number, i);
    }
    assert_int_equal(recv(p.reader, p.packet, 1, MSG_DONTWAIT), -1);
    assert_int_equal(audit_writer_number(p.writer), 0);
    assert_int_equal(audit_flush(p.writer), 0);
    assert_false(audit_writer_is_behind(p.writer));
    assert_int_equal(audit_writer_number(p.writer), RECORDS_A_PACKET + 3);
    uint64_t expected = 1;
    for (int packets = 0; packets < 2; packets++) {
        ssize_t n = read(p.reader, p.packet, sizeof p.packet);
        assert_int_equal(record_packet_read(view_of(p.packet, (size_t)n), &k), 0);
        int result;
        while ((result = record_next(&k, &f)) == 0) {
            assert_int_equal(f.number, expected);
            assert_int_equal(f.wall, expected++);
            assert_int_equal(f.epoch, 5);
        }
        assert_int_equal(result, ERR_MISSING);
    }
    assert_int_equal(expected, RECORDS_A_PACKET + 4);
    record_free(&r);
    pipe_close(&p);
}

static void what_a_full_socket_does_not_take_waits_in_order(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    static char big[RECORD_TEXT_MAX];
    uint64_t number = 0, kept = 0;
    int result;
    memset(big, 'x', sizeof big);
    pipe_open(&p, 1);
    record_begin(&r, RECORD_DECISION, 1, 1);
    record_text(&r, FIELD_PATH, view_of(big, sizeof big));
    while ((result = audit_gather(p.writer, &r, &number)) == 0)
        kept = number;
    assert_int_equal(result, ERR_AGAIN); /* bounded */
    assert_int_equal(audit_flush(p.writer), ERR_AGAIN);
    assert_true(audit_writer_number(p.writer) > 0 && audit_writer_number(p.writer) < kept);
    assert_true(audit_writer_is_behind(p.writer));
    uint64_t expected = 1;
    while (expected <= kept) {
        static uint8_t packet[RECORD_PACKET_SIZE];
        struct record_packet k;
        struct record_facts f;
        ssize_t n = recv(p.reader, packet, sizeof packet, MSG_DONTWAIT);
        if (n < 0) {
            result = audit_flush(p.writer);
            assert_true(result == 0 || result == ERR_AGAIN);
            continue;
        }
        assert_int_equal(record_packet_read(view_of(packet, (size_t)n), &k), 0);
        while (record_next(&k, &f) == 0)
            assert_int_equal(f.number, expected++);
    }
    assert_int_equal(audit_writer_number(p.writer), kept);
    record_free(&r);
    pipe_close(&p);
}

static void what_is_gathered_when_audit_dies_goes_to_its_successor(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    int fds[2];
    uint64_t number;
    pipe_open(&p, 1);
    signal(SIGPIPE, SIG_IGN);
    record_begin(&r, RECORD_DECISION, 1, 1);
    assert_int_equal(audit_gather(p.writer, &r, &number), 0);
    close(p.reader);
    assert_int_equal(audit_flush(p.writer), ERR_CLOSED);
    assert_false(audit_writer_usable(p.writer));
    assert_int_equal(audit_gather(p.writer, &r, &number), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(audit_writer_renew(p.writer, fds[0]), 0);
    p.reader = fds[1];
    assert_int_equal(audit_flush(p.writer), 0);
    assert_int_equal(audit_writer_number(p.writer), 2);
    assert_true(read(p.reader, p.packet, sizeof p.packet) > 0);
    assert_int_equal(recv(p.reader, p.packet, 1, MSG_DONTWAIT), -1); /* both were in it */
    record_free(&r);
    pipe_close(&p);
}

static void a_closed_reader_makes_the_writer_unusable(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    pipe_open(&p, 1);
    signal(SIGPIPE, SIG_IGN);
    record_begin(&r, RECORD_DECISION, 1, 1);
    assert_true(audit_writer_usable(p.writer));
    close(p.reader);
    assert_int_equal(audit_write(p.writer, &r), ERR_CLOSED);
    assert_false(audit_writer_usable(p.writer));
    assert_int_equal(audit_writer_number(p.writer), 0);
    record_free(&r);
    p.reader = -1;
    audit_writer_free(p.writer);
}

static void ad_05_a_renewed_end_goes_on_with_the_same_numbers(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    struct audit_notice n;
    int fds[2];
    pipe_open(&p, 7);
    record_begin(&r, RECORD_DECISION, 1, 1);
    pipe_pass(&p, &r);
    assert_int_equal(write(p.reader, "D", 1), 1);
    assert_int_equal(audit_writer_read(p.writer, &n), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(audit_writer_renew(p.writer, fds[0]), 0);
    assert_true(audit_writer_usable(p.writer));
    close(p.reader);
    p.reader = fds[1];
    struct record_facts f = pipe_pass(&p, &r);
    assert_int_equal(f.number, 2);
    assert_int_equal(f.epoch, 7);
    record_free(&r);
    pipe_close(&p);
}

static void ids_are_short_and_never_the_same(void **state) {
    (void)state;
    char a[40], b[40], c[40];
    int fds[2];
    struct pipe p;
    pipe_open(&p, UINT64_C(1790000000123456789));
    audit_id(p.writer, a);
    audit_id(p.writer, b);
    assert_string_equal(a, "e3-1a0c4506c7b-1");
    assert_string_equal(b, "e3-1a0c4506c7b-2");
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    struct audit_writer *w = audit_writer_new(fds[0], "egress 4294967295", UINT64_MAX);
    audit_id(w, c);
    assert_true(strlen(c) < 30);
    audit_writer_free(w);
    close(fds[1]);
    pipe_close(&p);
}

/* ---- notices ---- */

static void put_number(int fd, uint64_t epoch, uint64_t number) {
    struct buf b;
    buf_init(&b, 16);
    buf_put_u64(&b, epoch);
    buf_put_u64(&b, number);
    assert_int_equal(write(fd, buf_view(&b).p, 16), 16);
    buf_free(&b);
}

static void au_01_the_writer_learns_of_trouble_and_of_its_end(void **state) {
    (void)state;
    struct pipe p;
    struct audit_notice n;
    pipe_open(&p, 5);
    assert_int_equal(audit_writer_read(p.writer, &n), ERR_AGAIN);
    assert_int_equal(write(p.reader, "D", 1), 1);
    assert_int_equal(audit_writer_read(p.writer, &n), 0);
    assert_int_equal(n.kind, AUDIT_DOWN);
    assert_false(audit_writer_usable(p.writer));
    assert_int_equal(write(p.reader, "U", 1), 1);
    assert_int_equal(audit_writer_read(p.writer, &n), 0);
    assert_int_equal(n.kind, AUDIT_UP);
    assert_true(audit_writer_usable(p.writer));
    pipe_close(&p);
}

static void
the_writer_learns_what_is_on_the_disk_and_ignores_what_is_for_another_epoch(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    struct audit_notice n;
    pipe_open(&p, 5);
    record_begin(&r, RECORD_DECISION, 1, 1);
    pipe_pass(&p, &r);
    pipe_pass(&p, &r);
    put_number(p.reader, 4, 900);
    put_number(p.reader, 5, 2);
    assert_int_equal(audit_writer_read(p.writer, &n), ERR_AGAIN);
    assert_int_equal(audit_writer_durable(p.writer), 0);
    assert_int_equal(audit_writer_read(p.writer, &n), 0);
    assert_int_equal(n.kind, AUDIT_DURABLE);
    assert_int_equal(n.number, 2);
    assert_int_equal(audit_writer_durable(p.writer), 2);
    record_free(&r);
    pipe_close(&p);
}

static void nonsense_from_the_other_side_makes_the_writer_unusable(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {{"X", 1}, {"DD", 2}, {"\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\1", 16}, {"12345678", 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pipe p;
        struct audit_notice n;
        pipe_open(&p, 5);
        assert_int_equal(write(p.reader, cases[i].bytes, cases[i].n), cases[i].n);
        assert_int_equal(audit_writer_read(p.writer, &n), ERR_BAD);
        assert_false(audit_writer_usable(p.writer));
        pipe_close(&p);
    }
}

/* ---- sizes ---- */

static void au_02_a_value_of_a_megabyte_is_cut_and_marked(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    size_t size = 1 << 20;
    char *big = malloc(size);
    memset(big, 'x', size);
    pipe_open(&p, 1);
    record_begin(&r, RECORD_DECISION, 1, 1);
    assert_false(record_text(&r, FIELD_PATH, view_of(big, size)));
    struct record_facts f = pipe_pass(&p, &r);
    assert_int_equal(f.text[FIELD_PATH].n, RECORD_TEXT_MAX);
    assert_true(view_ends(f.text[FIELD_PATH], VIEW("x...")));
    record_begin(&r, RECORD_DECISION, 1, 1);
    assert_true(record_text(&r, FIELD_PATH, view_of(big, RECORD_TEXT_MAX)));
    f = pipe_pass(&p, &r);
    assert_int_equal(f.text[FIELD_PATH].n, RECORD_TEXT_MAX);
    assert_false(view_ends(f.text[FIELD_PATH], VIEW(".")));
    free(big);
    record_free(&r);
    pipe_close(&p);
}

static void au_02_all_fields_at_their_longest_still_make_one_record(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    static char big[100000];
    memset(big, 0xff, sizeof big); /* the longest when escaped, too */
    pipe_open(&p, 1);
    record_begin(&r, RECORD_DECISION, 1, 1);
    for (unsigned i = 0; i < FIELD_COUNT; i++)
        if (!record_field_is_number((enum record_field)i))
            record_text(&r, (enum record_field)i, view_of(big, sizeof big));
    for (unsigned i = 0; i < FIELD_COUNT; i++)
        if (record_field_is_number((enum record_field)i))
            record_number(&r, (enum record_field)i, UINT64_MAX);
    struct record_facts f = pipe_pass(&p, &r);
    for (unsigned i = 0; i < FIELD_COUNT; i++)
        assert_true(f.present & (UINT64_C(1) << i));
    struct buf json;
    buf_init(&json, LINE_MAX_BYTES);
    record_json(&f, &json);
    assert_true(buf_ok(&json));
    assert_true(buf_len(&json) + 1024 < LINE_MAX_BYTES);
    buf_free(&json);
    record_free(&r);
    pipe_close(&p);
}

/* ---- escaping ---- */

static const struct {
    const char *name, *raw;
    size_t n; /* 0: strlen */
    const char *escaped;
} injections[] = {
    {"plain", "abc 123 ~!{}[]:,'", 0, "abc 123 ~!{}[]:,'"},
    {"a line feed ends no line", "a\nb", 0, "a\\u000ab"},
    {"CR LF and a forged record", "x\r\n{\"v\":1,\"seq\":2}", 0,
     "x\\u000d\\u000a{\\u0022v\\u0022:1,\\u0022seq\\u0022:2}"},
    {"NUL", "a\0b", 3, "a\\u0000b"},
    {"escape sequence", "\x1b[2J\x1b]0;x\x07", 0, "\\u001b[2J\\u001b]0;x\\u0007"},
    {"tab, backspace, DEL", "\t\b\x7f", 0, "\\u0009\\u0008\\u007f"},
    {"quote and backslash", "\"\\u0022", 0, "\\u0022\\u005cu0022"},
    {"end of the string", "\",\"verdict\":\"allow", 0,
     "\\u0022,\\u0022verdict\\u0022:\\u0022allow"},
    {"two-byte character", "b\xc3\xbcr", 0, "b\\u00fcr"},
    {"right-to-left override", "\xe2\x80\xae", 0, "\\u202e"},
    {"isolates and marks", "\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c", 0, "\\u2066\\u200f\\u061c"},
    {"line separator", "\xe2\x80\xa8\xe2\x80\xa9", 0, "\\u2028\\u2029"},
    {"C1 control NEL", "\xc2\x85", 0, "\\u0085"},
    {"byte order mark", "\xef\xbb\xbf", 0, "\\ufeff"},
    {"beyond the first plane", "\xf0\x9f\x98\x80", 0, "\\ud83d\\ude00"},
    {"the last code", "\xf4\x8f\xbf\xbf", 0, "\\udbff\\udfff"},
    {"beyond the last code", "\xf4\x90\x80\x80", 0, "\\u00f4\\u0090\\u0080\\u0080"},
    {"a surrogate in UTF-8", "\xed\xa0\x80", 0, "\\u00ed\\u00a0\\u0080"},
    {"overlong slash", "\xc0\xaf", 0, "\\u00c0\\u00af"},
    {"overlong NUL of three", "\xe0\x80\x80", 0, "\\u00e0\\u0080\\u0080"},
    {"cut character", "\xe2\x80", 0, "\\u00e2\\u0080"},
    {"cut character before text", "\xe2\x80z", 0, "\\u00e2\\u0080z"},
    {"lone continuation", "\x80\xbf", 0, "\\u0080\\u00bf"},
    {"no UTF-8 at all", "\xfe\xff", 0, "\\u00fe\\u00ff"},
};

static void au_02_hostile_bytes_are_escaped(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof injections / sizeof *injections; i++) {
        struct buf out;
        size_t n = injections[i].n ? injections[i].n : strlen(injections[i].raw);
        buf_init(&out, 4096);
        record_escape(view_of(injections[i].raw, n), &out);
        if (!view_equal(buf_view(&out), view_str(injections[i].escaped)))
            fail_msg("%s: got %.*s", injections[i].name, VIEW_ARG(buf_view(&out)));
        buf_free(&out);
    }
}

/* Plain text is copied eight bytes at a time: one byte that is not plain shows wherever it stands. */
static void au_02_a_byte_is_escaped_wherever_it_stands(void **state) {
    static const uint8_t odd[] = {'"', '\\', 0x1f, 0x7f, 0x80, 0xff};
    (void)state;
    for (size_t n = 1; n <= 26; n++)
        for (size_t at = 0; at <= n; at++)
            for (size_t k = 0; k < sizeof odd; k++) {
                uint8_t before[8 + 32] = "beforeit", *text = before + 8;
                struct buf out, expected;
                buf_init(&out, 256);
                buf_init(&expected, 256);
                buf_put_str(&out, "what is there");
                buf_put_str(&expected, "what is there");
                for (size_t i = 0; i < n; i++) {
                    text[i] = (uint8_t)(i == at ? odd[k] : 'a' + i);
                    if (i == at)
                        buf_printf(&expected, "\\u%04x", odd[k]);
                    else
                        buf_put_u8(&expected, text[i]);
                }
                record_escape(view_of(text, n), &out);
                assert_true(view_equal(buf_view(&out), buf_view(&expected)));
                buf_free(&out);
                buf_free(&expected);
            }
}

static void au_02_hostile_bytes_in_any_field_leave_one_line_with_the_same_members(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    struct buf json;
    pipe_open(&p, 1);
    buf_init(&json, LINE_MAX_BYTES);
    for (size_t i = 0; i < sizeof injections / sizeof *injections; i++) {
        size_t n = injections[i].n ? injections[i].n : strlen(injections[i].raw);
        record_begin(&r, RECORD_DECISION, 1, 1);
        unsigned fields = 1; /* kind */
        for (unsigned f = 0; f < FIELD_COUNT; f++)
            if (!record_field_is_number((enum record_field)f)) {
                record_text(&r, (enum record_field)f, view_of(injections[i].raw, n));
                fields++;
            }
        struct record_facts facts = pipe_pass(&p, &r);
        buf_reset(&json);
        record_json(&facts, &json);
        struct buf whole;
        buf_init(&whole, LINE_MAX_BYTES);
        buf_put_u8(&whole, '{');
        buf_put(&whole, view_skip(buf_view(&json), 1));
        buf_put_u8(&whole, '}');
        struct view text = buf_view(&whole);
        for (size_t k = 0; k < text.n; k++)
            assert_true(text.p[k] >= 0x20 && text.p[k] < 0x7f);
        struct line l = line_of(text);
        struct line_member m;
        unsigned found = 0;
        while (line_next(&l, &m)) {
            if (found > 0)
                assert_true(view_equal(m.value, view_str(injections[i].escaped)));
            found++;
        }
        assert_false(l.bad);
        assert_int_equal(found, fields);
        buf_free(&whole);
    }
    buf_free(&json);
    record_free(&r);
    pipe_close(&p);
}

static void members_stand_in_table_order_whatever_the_order_of_adding(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    struct buf json;
    pipe_open(&p, 1);
    buf_init(&json, 4096);
    record_begin(&r, RECORD_DECISION, 1, 1);
    record_number(&r, FIELD_STATUS, 0);
    record_str(&r, FIELD_HOST, "h");
    record_number(&r, FIELD_PORT, 18446744073709551615u);
    record_str(&r, FIELD_ID, "i");
    struct record_facts f = pipe_pass(&p, &r);
    record_json(&f, &json);
    static const char expected[] = ",\"kind\":\"decision\",\"id\":\"i\",\"host\":\"h\","
                                   "\"port\":18446744073709551615,\"status\":0";
    assert_true(view_equal(buf_view(&json), VIEW(expected)));
    buf_free(&json);
    record_free(&r);
    pipe_close(&p);
}

/* PV-10: what looks like a foreign credential is recorded by class and fingerprint; the field's name says so. */
static void pv_10_material_is_a_field_of_its_own_and_no_field_holds_a_value(void **state) {
    (void)state;
    assert_string_equal(record_field_name(FIELD_MATERIAL), "material");
    for (unsigned i = 0; i < FIELD_COUNT; i++) {
        const char *name = record_field_name((enum record_field)i);
        static const char *const never[] = {"authorization", "secret", "token",  "value",
                                            "header",        "body",   "cookie", "placeholder"};
        assert_non_null(name);
        for (size_t k = 0; k < sizeof never / sizeof *never; k++)
            assert_null(strstr(name, never[k]));
    }
}

static void names_of_fields_differ_from_each_other_and_from_the_lines_own_members(void **state) {
    (void)state;
    static const char *const own[] = {"v",    "seq",  "time", "origin", "n",   "epoch",
                                      "mono", "kind", "prev", "hash",   "key", "signature"};
    for (unsigned i = 0; i < FIELD_COUNT; i++) {
        const char *name = record_field_name((enum record_field)i);
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(name, record_field_name((enum record_field)k));
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            assert_string_not_equal(name, own[k]);
    }
}

/* ---- reading strictly ---- */

static void packets_that_no_writer_makes_are_refused(void **state) {
    (void)state;
    struct pipe p;
    struct record r = {0};
    struct record_facts f;
    pipe_open(&p, 1);
    record_begin(&r, RECORD_EVENT, 1, 1);
    record_str(&r, FIELD_EVENT, "start");
    record_number(&r, FIELD_STATUS, 1);
    pipe_pass(&p, &r);
    for (size_t n = 0; n < p.size; n++) {
        int result = record_read(view_of(p.packet, n), &f);
        assert_int_equal(result, ERR_BAD);
    }
    static const struct {
        size_t at;
        uint8_t byte;
    } changes[] = {
        {0, 1},           /* version */
        {8, 0},           /* number 0 */
        {17 + 3, 0},      /* no origin */
        {17 + 3, 200},    /* origin beyond its maximum */
        {21, '\n'},       /* a control character in the origin */
        {32, 255},        /* length */
        {33, 3},          /* kind */
        {50, FIELD_COUNT} /* field */
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        uint8_t saved = p.packet[changes[i].at];
        p.packet[changes[i].at] = changes[i].byte;
        if (record_read(view_of(p.packet, p.size), &f) != ERR_BAD)
            fail_msg("change %zu was taken", i);
        p.packet[changes[i].at] = saved;
    }
    assert_int_equal(record_read(view_of(p.packet, p.size), &f), 0);
    record_free(&r);
    pipe_close(&p);
}

static void repeated_empty_and_too_long_fields_are_refused(void **state) {
    (void)state;
    struct buf b;
    struct record_facts f;
    static uint8_t big[RECORD_TEXT_MAX + 1];
    for (int form = 0; form < 4; form++) {
        buf_init(&b, RECORD_SIZE);
        buf_put_u8(&b, 2);
        buf_put_u64(&b, 1);
        buf_put_u64(&b, 1);
        buf_put_block(&b, VIEW("ca"));
        size_t at = buf_len(&b);
        buf_put_u32(&b, 0);
        buf_put_u8(&b, RECORD_EVENT);
        buf_put_u64(&b, 1);
        buf_put_u64(&b, 1);
        buf_put_u8(&b, FIELD_HOST);
        buf_put_block(&b, form == 1 ? VIEW("") : VIEW("h"));
        buf_put_u8(&b, form == 2 ? FIELD_HOST : FIELD_PATH);
        buf_put_block(&b, view_of(big, form == 3 ? sizeof big : 1));
        buf_patch_u32(&b, at, (uint32_t)(buf_len(&b) - at - 4));
        assert_int_equal(record_read(buf_view(&b), &f), form == 0 ? 0 : ERR_BAD);
        buf_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_comes_out_as_it_went_in),
        cmocka_unit_test(a_field_given_twice_keeps_the_first_and_empty_ones_are_left_out),
        cmocka_unit_test(numbers_count_up_only_for_what_the_kernel_took),
        cmocka_unit_test(what_a_turn_gathers_is_one_packet),
        cmocka_unit_test(what_a_full_socket_does_not_take_waits_in_order),
        cmocka_unit_test(what_is_gathered_when_audit_dies_goes_to_its_successor),
        cmocka_unit_test(a_closed_reader_makes_the_writer_unusable),
        cmocka_unit_test(ad_05_a_renewed_end_goes_on_with_the_same_numbers),
        cmocka_unit_test(ids_are_short_and_never_the_same),
        cmocka_unit_test(au_01_the_writer_learns_of_trouble_and_of_its_end),
        cmocka_unit_test(
            the_writer_learns_what_is_on_the_disk_and_ignores_what_is_for_another_epoch),
        cmocka_unit_test(nonsense_from_the_other_side_makes_the_writer_unusable),
        cmocka_unit_test(au_02_a_value_of_a_megabyte_is_cut_and_marked),
        cmocka_unit_test(au_02_all_fields_at_their_longest_still_make_one_record),
        cmocka_unit_test(au_02_hostile_bytes_are_escaped),
        cmocka_unit_test(au_02_a_byte_is_escaped_wherever_it_stands),
        cmocka_unit_test(au_02_hostile_bytes_in_any_field_leave_one_line_with_the_same_members),
        cmocka_unit_test(members_stand_in_table_order_whatever_the_order_of_adding),
        cmocka_unit_test(pv_10_material_is_a_field_of_its_own_and_no_field_holds_a_value),
        cmocka_unit_test(names_of_fields_differ_from_each_other_and_from_the_lines_own_members),
        cmocka_unit_test(packets_that_no_writer_makes_are_refused),
        cmocka_unit_test(repeated_empty_and_too_long_fields_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/chain_head.h"

#include <stdio.h>
#include <string.h>

enum { LINES = 12, LINE_SIZE = 1024, HEAD_AT = 8 };

/* A chain of twelve lines in memory; line 8 is a head of line 7. */
struct log {
    struct chain chain;
    size_t n;
    char line[LINES][LINE_SIZE]; /* without LF */
    struct chain_head head;
};

static struct {
    struct buf private_pem, public_pem;
    struct chain_signer *signer;
    struct chain_keys *keys;
} fixture;

static int set_up(void **state) {
    (void)state;
    buf_init(&fixture.private_pem, 4096);
    buf_init(&fixture.public_pem, 4096);
    assert_int_equal(chain_key_make(&fixture.private_pem, &fixture.public_pem), 0);
    assert_int_equal(chain_signer_new(buf_view(&fixture.private_pem), &fixture.signer), 0);
    assert_int_equal(chain_keys_new(buf_view(&fixture.public_pem), &fixture.keys), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    chain_signer_free(fixture.signer);
    chain_keys_free(fixture.keys);
    buf_free(&fixture.private_pem);
    buf_free(&fixture.public_pem);
    return 0;
}

static void log_add(struct log *l, const char *members) {
    struct buf b;
    buf_init(&b, LINE_SIZE);
    chain_open_line(&l->chain, UINT64_C(1790000000000000000) + l->n * 1000000, &b);
    buf_put_str(&b, members);
    assert_int_equal(chain_close_line(&l->chain, &b), 0);
    struct view v = buf_view(&b);
    assert_int_equal(v.p[v.n - 1], '\n');
    memcpy(l->line[l->n], v.p, v.n - 1);
    l->line[l->n++][v.n - 1] = 0;
    buf_free(&b);
}

static void log_build(struct log *l, const char *host) {
    char members[256];
    struct buf b;
    memset(l, 0, sizeof *l);
    for (int i = 1; i <= LINES; i++) {
        if (i == HEAD_AT) {
            buf_init(&b, 512);
            assert_int_equal(chain_head_sign(fixture.signer, &l->chain,
                                             UINT64_C(1790000000000000000) + l->n * 1000000,
                                             &l->head),
                             0);
            chain_head_members(&l->head, &b);
            buf_put_u8(&b, 0);
            log_add(l, (const char *)buf_view(&b).p);
            buf_free(&b);
            continue;
        }
        snprintf(members, sizeof members,
                 ",\"origin\":\"egress 1\",\"n\":%d,\"epoch\":\"00000000000000ff\","
                 "\"kind\":\"decision\",\"verdict\":\"deny\",\"host\":\"%s\"",
                 i, host);
        log_add(l, members);
    }
}

/* Walks all lines: the first fault, and at which line (from 1). */
static enum chain_fault log_walk(const struct log *l, size_t *at) {
    struct chain c = {0};
    struct chain_line line;
    for (size_t i = 0; i < l->n; i++) {
        enum chain_fault fault = chain_step(&c, true, view_str(l->line[i]), &line);
        *at = i + 1;
        if (fault != CHAIN_GOOD)
            return fault;
    }
    return CHAIN_GOOD;
}

static void log_remove(struct log *l, size_t i) {
    memmove(l->line[i], l->line[i + 1], (l->n - i - 1) * LINE_SIZE);
    l->n--;
}

static void replace(char *line, const char *from, const char *to) {
    char *at = strstr(line, from);
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
}

/* Gives line i a hash that fits its bytes, as a careful forger would. */
static void rehash(char *line) {
    uint8_t hash[DIGEST_SIZE];
    char *at = strstr(line, ",\"hash\":\"");
    digest_sha256(view_of(line, (size_t)(at - line)), hash);
    char hex[2 * DIGEST_SIZE + 1];
    hex_encode(view_of(hash, sizeof hash), hex);
    memcpy(at + 9, hex, 2 * DIGEST_SIZE);
}

static void a_chain_verifies(void **state) {
    (void)state;
    struct log l;
    size_t at;
    log_build(&l, "a.example");
    assert_int_equal(log_walk(&l, &at), CHAIN_GOOD);
    assert_int_equal(at, LINES);
}

static void the_form_of_a_line_is_the_documented_one(void **state) {
    (void)state;
    struct log l = {0};
    log_add(&l, ",\"origin\":\"audit\",\"kind\":\"segment\"");
    static const char front[] =
        "{\"v\":1,\"seq\":1,\"time\":\"2026-09-21T14:13:20.000000Z\",\"origin\":\"audit\","
        "\"kind\":\"segment\",\"prev\":"
        "\"0000000000000000000000000000000000000000000000000000000000000000\"";
    assert_memory_equal(l.line[0], front, sizeof front - 1);
    uint8_t hash[DIGEST_SIZE];
    char hex[2 * DIGEST_SIZE + 1], rest[128];
    digest_sha256(VIEW(front), hash);
    hex_encode(view_of(hash, sizeof hash), hex);
    snprintf(rest, sizeof rest, ",\"hash\":\"%s\"}", hex);
    assert_string_equal(l.line[0] + sizeof front - 1, rest);
}

static void au_04_an_edited_field_is_found_in_every_line(void **state) {
    (void)state;
    struct log l;
    size_t at;
    for (size_t i = 0; i < LINES; i++) {
        if (i + 1 == HEAD_AT)
            continue;
        log_build(&l, "a.example");
        replace(l.line[i], "\"deny\"", "\"DENY\"");
        assert_int_equal(log_walk(&l, &at), CHAIN_CHANGED);
        assert_int_equal(at, i + 1);
    }
}

static void au_04_every_changed_byte_is_found(void **state) {
    (void)state;
    struct log l;
    size_t at;
    log_build(&l, "a.example");
    for (size_t k = 0; l.line[4][k]; k++) {
        char saved = l.line[4][k];
        for (int bit = 0; bit < 8; bit++) {
            char changed = (char)(saved ^ (1 << bit));
            if (changed == 0 || changed == '\n')
                continue;
            l.line[4][k] = changed;
            if (log_walk(&l, &at) == CHAIN_GOOD)
                fail_msg("byte %zu bit %d", k, bit);
            assert_int_equal(at, 5);
        }
        l.line[4][k] = saved;
    }
}

static void au_04_an_edited_line_with_a_new_hash_is_found_at_the_next(void **state) {
    (void)state;
    struct log l;
    size_t at;
    log_build(&l, "a.example");
    replace(l.line[4], "\"deny\"", "\"DENY\"");
    rehash(l.line[4]);
    assert_int_equal(log_walk(&l, &at), CHAIN_UNLINKED);
    assert_int_equal(at, 6);
}

static void au_04_a_deleted_line_is_found_wherever_it_stood(void **state) {
    (void)state;
    struct log l;
    size_t at;
    for (size_t i = 0; i + 1 < LINES; i++) {
        log_build(&l, "a.example");
        log_remove(&l, i);
        assert_int_equal(log_walk(&l, &at), CHAIN_MISSING);
        assert_int_equal(at, i + 1);
    }
}

static void au_04_two_swapped_lines_are_found(void **state) {
    (void)state;
    struct log l;
    size_t at;
    char saved[LINE_SIZE];
    log_build(&l, "a.example");
    memcpy(saved, l.line[3], LINE_SIZE);
    memcpy(l.line[3], l.line[4], LINE_SIZE);
    memcpy(l.line[4], saved, LINE_SIZE);
    assert_int_equal(log_walk(&l, &at), CHAIN_MISSING);
    assert_int_equal(at, 4);
}

static void au_04_a_repeated_line_is_found(void **state) {
    (void)state;
    struct log l;
    size_t at;
    log_build(&l, "a.example");
    memcpy(l.line[5], l.line[4], LINE_SIZE);
    assert_int_equal(log_walk(&l, &at), CHAIN_REPEATED);
    assert_int_equal(at, 6);
}

static void au_04_a_line_of_another_log_is_found(void **state) {
    (void)state;
    struct log l, other;
    size_t at;
    log_build(&l, "a.example");
    log_build(&other, "b.example");
    memcpy(l.line[5], other.line[5], LINE_SIZE);
    assert_int_equal(log_walk(&l, &at), CHAIN_UNLINKED);
    assert_int_equal(at, 6);
}

/* Cutting the end, or writing all anew, leaves a good chain: only a head tells. */
static void au_04_a_head_shows_a_cut_end_and_a_chain_written_anew(void **state) {
    (void)state;
    struct log l, anew;
    size_t at;
    log_build(&l, "a.example");
    struct chain_head exported = l.head;
    assert_int_equal(exported.seq, HEAD_AT - 1);
    log_build(&anew, "b.example");
    assert_int_equal(log_walk(&anew, &at), CHAIN_GOOD);
    struct chain_line line;
    assert_int_equal(chain_read(view_str(anew.line[HEAD_AT - 2]), &line), CHAIN_GOOD);
    assert_int_equal(line.seq, exported.seq);
    assert_memory_not_equal(line.hash, exported.hash, DIGEST_SIZE);
    assert_int_equal(chain_read(view_str(l.line[HEAD_AT - 2]), &line), CHAIN_GOOD);
    assert_memory_equal(line.hash, exported.hash, DIGEST_SIZE);
}

static void a_chain_may_begin_in_the_middle_but_not_break_there(void **state) {
    (void)state;
    struct log l;
    struct chain c = {0};
    struct chain_line line;
    log_build(&l, "a.example");
    assert_int_equal(chain_step(&c, false, view_str(l.line[6]), &line), CHAIN_GOOD);
    assert_int_equal(chain_step(&c, true, view_str(l.line[7]), &line), CHAIN_GOOD);
    assert_int_equal(chain_step(&c, true, view_str(l.line[9]), &line), CHAIN_MISSING);
    assert_int_equal(c.seq, 8);
}

static void what_is_no_line_of_ours_is_malformed(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "}",
        "{}",
        "x",
        "null",
        "{\"v\":1}",
        "{\"seq\":1}",
        "{\"v\":1,\"seq\":1,\"time\":\"\"}",
        "{\"v\":2,\"seq\":1,\"time\":\"\",\"kind\":\"x\"}",
        "{\"v\":1, \"seq\":1,\"time\":\"\",\"kind\":\"x\"}",
        "{\"v\":1,\"seq\":0,\"time\":\"\",\"kind\":\"x\"}",
        "{\"v\":1,\"seq\":01,\"time\":\"\",\"kind\":\"x\"}",
        "{\"v\":1,\"seq\":-1,\"time\":\"\",\"kind\":\"x\"}",
        "{\"v\":1,\"seq\":99999999999999999999,\"time\":\"\",\"kind\":\"x\"}",
        "{\"v\":1,\"seq\":1,\"time\":\"\",\"kind\":\"\\n\"}",
        "{\"v\":1,\"seq\":1,\"time\":\"\",\"kind\":\"\\u00zz\"}",
        "{\"v\":1,\"seq\":1,\"time\":\"\",\"kind\":{\"a\":1}}",
        "{\"v\":1,\"seq\":1,\"time\":\"\",\"kind\":true}",
        "{\"v\":1,\"seq\":1,\"time\":\"\",\"kind\":\"x\",}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct chain_line line;
        if (chain_read(view_str(bad[i]), &line) != CHAIN_MALFORMED)
            fail_msg("'%s' was read", bad[i]);
    }
}

static void au_05_times_are_utc_with_microseconds_and_order_comes_from_seq(void **state) {
    (void)state;
    static const struct {
        uint64_t wall;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000Z"},
        {UINT64_C(1709210096999999999), "2024-02-29T12:34:56.999999Z"},
        {UINT64_C(1711846800000001000),
         "2024-03-31T01:00:00.000001Z"}, /* a change to summer time */
        {UINT64_C(1483228799000000000), "2016-12-31T23:59:59.000000Z"}, /* before a leap second */
        {UINT64_C(1483228800000000000), "2017-01-01T00:00:00.000000Z"},
        {UINT64_C(2147483648000000000), "2038-01-19T03:14:08.000000Z"},
        {UINT64_C(4294967296000000000), "2106-02-07T06:28:16.000000Z"},
        {UINT64_MAX, "2554-07-21T23:34:33.709551Z"},
        /* within one second, and back in it */
        {UINT64_C(1483228799123456000), "2016-12-31T23:59:59.123456Z"},
        {UINT64_C(1483228799000007000), "2016-12-31T23:59:59.000007Z"},
        {UINT64_C(1483228799000000999), "2016-12-31T23:59:59.000000Z"},
        {UINT64_C(1483228798999999999), "2016-12-31T23:59:58.999999Z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[CHAIN_TIME_SIZE];
        chain_time(cases[i].wall, text);
        assert_string_equal(text, cases[i].text);
    }
    /* A clock that jumps back changes nothing in the order. */
    struct chain c = {0};
    struct buf b;
    buf_init(&b, 1024);
    chain_open_line(&c, UINT64_C(3600000000000), &b);
    buf_put_str(&b, ",\"kind\":\"x\"");
    assert_int_equal(chain_close_line(&c, &b), 0);
    chain_open_line(&c, 0, &b);
    buf_put_str(&b, ",\"kind\":\"x\"");
    assert_int_equal(chain_close_line(&c, &b), 0);
    assert_int_equal(c.seq, 2);
    buf_free(&b);
}

static void a_line_that_does_not_fit_moves_nothing(void **state) {
    (void)state;
    struct chain c = {0}, before = {0};
    struct buf b;
    buf_init(&b, 150);
    chain_open_line(&c, 0, &b);
    buf_put_str(&b, ",\"kind\":\"x\"");
    assert_int_equal(chain_close_line(&c, &b), ERR_MEMORY);
    assert_memory_equal(&c, &before, sizeof c);
    buf_free(&b);
}

/* ---- heads ---- */

static void a_signed_head_verifies_from_its_line_and_from_its_file(void **state) {
    (void)state;
    struct log l;
    struct chain_line line;
    struct chain_head h, again;
    struct buf b;
    log_build(&l, "a.example");
    assert_int_equal(chain_read(view_str(l.line[HEAD_AT - 1]), &line), CHAIN_GOOD);
    assert_true(view_equal(line.kind, VIEW("head")));
    assert_int_equal(chain_head_of_line(&line, &h), 0);
    assert_int_equal(chain_head_verify(fixture.keys, &h), 0);
    assert_memory_equal(h.hash, l.head.hash, DIGEST_SIZE);
    buf_init(&b, HEAD_JSON_MAX);
    chain_head_write(&h, &b);
    assert_int_equal(chain_head_read(buf_view(&b), &again), 0);
    assert_int_equal(chain_head_verify(fixture.keys, &again), 0);
    assert_int_equal(again.seq, HEAD_AT - 1);
    buf_free(&b);
}

static void au_04_a_head_that_was_changed_does_not_verify(void **state) {
    (void)state;
    struct log l;
    log_build(&l, "a.example");
    struct chain_head h = l.head;
    h.seq++;
    assert_int_equal(chain_head_verify(fixture.keys, &h), ERR_CRYPTO);
    h = l.head;
    h.hash[5] ^= 1;
    assert_int_equal(chain_head_verify(fixture.keys, &h), ERR_CRYPTO);
    h = l.head;
    h.time[3] = '7';
    assert_int_equal(chain_head_verify(fixture.keys, &h), ERR_CRYPTO);
    h = l.head;
    h.signature[63] ^= 1;
    assert_int_equal(chain_head_verify(fixture.keys, &h), ERR_CRYPTO);
    h = l.head;
    h.key[0] ^= 1;
    assert_int_equal(chain_head_verify(fixture.keys, &h), ERR_MISSING);
}

static void au_04_a_head_by_another_key_is_told_apart(void **state) {
    (void)state;
    struct buf private_pem, public_pem;
    struct chain_signer *other = NULL;
    struct chain_keys *both = NULL;
    struct chain c = {.seq = 5};
    struct chain_head h;
    buf_init(&private_pem, 4096);
    buf_init(&public_pem, 8192);
    assert_int_equal(chain_key_make(&private_pem, &public_pem), 0);
    assert_int_equal(chain_signer_new(buf_view(&private_pem), &other), 0);
    assert_int_equal(chain_head_sign(other, &c, 0, &h), 0);
    assert_int_equal(chain_head_verify(fixture.keys, &h), ERR_MISSING);
    buf_put(&public_pem, buf_view(&fixture.public_pem));
    assert_int_equal(chain_keys_new(buf_view(&public_pem), &both), 0);
    assert_int_equal(chain_head_verify(both, &h), 0);
    chain_keys_free(both);
    chain_signer_free(other);
    buf_free(&private_pem);
    buf_free(&public_pem);
}

static void what_is_no_key_and_no_head_is_refused(void **state) {
    (void)state;
    struct chain_signer *s = NULL;
    struct chain_keys *k = NULL;
    struct chain_head h;
    assert_int_equal(chain_signer_new(VIEW(""), &s), ERR_CRYPTO);
    assert_int_equal(chain_signer_new(buf_view(&fixture.public_pem), &s), ERR_CRYPTO);
    assert_int_equal(chain_keys_new(VIEW("nothing"), &k), ERR_CRYPTO);
    assert_int_equal(chain_keys_new(buf_view(&fixture.private_pem), &k), ERR_CRYPTO);
    assert_int_equal(chain_head_read(VIEW(""), &h), ERR_BAD);
    assert_int_equal(chain_head_read(VIEW("\n"), &h), ERR_BAD);
    assert_int_equal(chain_head_read(VIEW("{\"v\":1,\"seq\":5}\n"), &h), ERR_BAD);
    assert_null(s);
    assert_null(k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_verifies),
        cmocka_unit_test(the_form_of_a_line_is_the_documented_one),
        cmocka_unit_test(au_04_an_edited_field_is_found_in_every_line),
        cmocka_unit_test(au_04_every_changed_byte_is_found),
        cmocka_unit_test(au_04_an_edited_line_with_a_new_hash_is_found_at_the_next),
        cmocka_unit_test(au_04_a_deleted_line_is_found_wherever_it_stood),
        cmocka_unit_test(au_04_two_swapped_lines_are_found),
        cmocka_unit_test(au_04_a_repeated_line_is_found),
        cmocka_unit_test(au_04_a_line_of_another_log_is_found),
        cmocka_unit_test(au_04_a_head_shows_a_cut_end_and_a_chain_written_anew),
        cmocka_unit_test(a_chain_may_begin_in_the_middle_but_not_break_there),
        cmocka_unit_test(what_is_no_line_of_ours_is_malformed),
        cmocka_unit_test(au_05_times_are_utc_with_microseconds_and_order_comes_from_seq),
        cmocka_unit_test(a_line_that_does_not_fit_moves_nothing),
        cmocka_unit_test(a_signed_head_verifies_from_its_line_and_from_its_file),
        cmocka_unit_test(au_04_a_head_that_was_changed_does_not_verify),
        cmocka_unit_test(au_04_a_head_by_another_key_is_told_apart),
        cmocka_unit_test(what_is_no_key_and_no_head_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

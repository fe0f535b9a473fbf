#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/dns_answer.h"
#include "tests/unit/dns_server.h"

#define NAME "api.allowed.test"
#define QUESTION "\3api\7allowed\4test\0\0\1\0\1"
/* Id, flags of an answer, one question, `n` answers. */
#define HEAD(n) "\x12\x34\x81\x80\0\1\0" n "\0\0\0\0" QUESTION
/* The name at offset 12; type A, class IN, TTL 0. */
#define OWNER "\xc0\x0c"
#define A_RECORD(owner, address) owner "\0\1\0\1\0\0\0\0\0\4" address
#define CNAME_RECORD(owner, size, target) owner "\0\5\0\1\0\0\0\0\0" size target

static const struct {
    const char *what;
    struct view message;
} bad[] = {
    {"nothing", VIEW("")},
    {"a lone header", VIEW("\x12\x34\x81\x80\0\1\0\0\0\0\0\0")},
    {"a question, not an answer", VIEW("\x12\x34\x01\0\0\1\0\0\0\0\0\0" QUESTION)},
    {"truncated by its flag", VIEW("\x12\x34\x83\x80\0\1\0\0\0\0\0\0" QUESTION)},
    {"two questions", VIEW("\x12\x34\x81\x80\0\2\0\0\0\0\0\0" QUESTION QUESTION)},
    {"no question", VIEW("\x12\x34\x81\x80\0\0\0\0\0\0\0\0")},
    {"a question for another name",
     VIEW("\x12\x34\x81\x80\0\1\0\0\0\0\0\0\3apx\7allowed\4test\0\0\1\0\1")},
    {"a question of another type",
     VIEW("\x12\x34\x81\x80\0\1\0\0\0\0\0\0\3api\7allowed\4test\0\0\x1c\0\1")},
    {"a question of another class",
     VIEW("\x12\x34\x81\x80\0\1\0\0\0\0\0\0\3api\7allowed\4test\0\0\1\0\3")},
    {"a record that is missing", VIEW(HEAD("\1"))},
    {"a record cut in its data", VIEW(HEAD("\1") OWNER "\0\1\0\1\0\0\0\0\0\4\x7f\0\0")},
    {"a record cut in its head", VIEW(HEAD("\1") OWNER "\0\1\0\1\0")},
    {"dn_07 a pointer to itself", VIEW(HEAD("\1") A_RECORD("\xc0\x22", "\x7f\0\0\1"))},
    {"dn_07 a pointer forward", VIEW(HEAD("\1") A_RECORD("\xc0\x30", "\x7f\0\0\1"))},
    {"dn_07 two pointers at each other", VIEW(HEAD("\1") A_RECORD("\1x\xc0\x22", "\x7f\0\0\1"))},
    {"dn_07 a pointer cut in half", VIEW(HEAD("\1") "\xc0")},
    {"dn_07 a reserved label type", VIEW(HEAD("\1") A_RECORD("\x40x\0", "\x7f\0\0\1"))},
    {"dn_07 an address without bytes", VIEW(HEAD("\1") OWNER "\0\1\0\1\0\0\0\0\0\0")},
    {"dn_07 an address of five bytes", VIEW(HEAD("\1") OWNER "\0\1\0\1\0\0\0\0\0\5\x7f\0\0\1\2")},
    {"dn_07 a NUL inside a label of an alias",
     VIEW(HEAD("\1") CNAME_RECORD(OWNER, "\6", "\4a\0bc\0"))},
    {"dn_07 a dot inside a label of an alias",
     VIEW(HEAD("\1") CNAME_RECORD(OWNER, "\6", "\4a.bc\0"))},
    {"dn_07 a line feed inside a label of an alias",
     VIEW(HEAD("\1") CNAME_RECORD(OWNER, "\6", "\4a\nbc\0"))},
    {"dn_07 an alias that looks like an address",
     VIEW(HEAD("\1") CNAME_RECORD(OWNER, "\x0b", "\3127\0010\0010\0011\0"))},
    {"dn_07 an alias that is the root", VIEW(HEAD("\1") CNAME_RECORD(OWNER, "\1", "\0"))},
    {"dn_07 an alias shorter than its data",
     VIEW(HEAD("\1") CNAME_RECORD(OWNER, "\5", "\2ab\0\0"))},
    {"dn_07 an alias that reaches beyond its data",
     VIEW(HEAD("\2") CNAME_RECORD(OWNER, "\3", "\2ab") A_RECORD("\0", "\x7f\0\0\1"))},
    {"dn_07 an alias of itself", VIEW(HEAD("\1") CNAME_RECORD(OWNER, "\2", OWNER))},
    {"dn_07 a label that begins with a hyphen",
     VIEW(HEAD("\1") CNAME_RECORD(OWNER, "\5", "\3-ab\0"))},
};

static void malformed_answers_are_refused(void **state) {
    struct dns_answer a;
    const char *why;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why = NULL;
        if (dns_answer_read(bad[i].message, NAME, DNS_A, &a, &why) != ERR_BAD)
            fail_msg("accepted: %s", bad[i].what);
        assert_non_null(why);
    }
}

static void every_cut_of_a_good_answer_is_refused(void **state) {
    struct view good =
        VIEW(HEAD("\2") CNAME_RECORD(OWNER, "\4", "\2ab\0") A_RECORD("\2ab\0", "\x7f\0\0\1"));
    struct dns_answer a;
    const char *why;
    (void)state;
    assert_int_equal(dns_answer_read(good, NAME, DNS_A, &a, &why), 0);
    assert_int_equal(a.n_addresses, 1);
    assert_string_equal(a.aliases[0], "ab");
    for (size_t n = 0; n < good.n; n++) {
        uint8_t *copy = malloc(n ? n : 1); /* so that a sanitizer sees reads behind the end */
        memcpy(copy, good.p, n);
        assert_int_equal(dns_answer_read(view_of(copy, n), NAME, DNS_A, &a, &why), ERR_BAD);
        free(copy);
    }
}

static void only_the_asked_name_and_its_chain_count(void **state) {
    static const struct {
        const char *what;
        struct view message;
        size_t addresses, aliases;
    } cases[] = {
        {"no record", VIEW(HEAD("\0")), 0, 0},
        {"an address", VIEW(HEAD("\1") A_RECORD(OWNER, "\x7f\0\0\1")), 1, 0},
        {"spelled in capitals", VIEW(HEAD("\1") A_RECORD("\3API\7ALLOWED\4TEST\0", "\x7f\0\0\1")),
         1, 0},
        {"an address of another name", VIEW(HEAD("\1") A_RECORD("\2ab\0", "\x7f\0\0\1")), 0, 0},
        {"another class", VIEW(HEAD("\1") OWNER "\0\1\0\3\0\0\0\0\0\4\x7f\0\0\1"), 0, 0},
        {"another type", VIEW(HEAD("\1") OWNER "\0\x10\0\1\0\0\0\0\0\4\3abc"), 0, 0},
        {"dn_08 an HTTPS record", VIEW(HEAD("\1") OWNER "\0\x41\0\1\0\0\0\0\0\3\0\1\0"), 0, 0},
        {"an address of the asked name beside its alias",
         VIEW(HEAD("\2") CNAME_RECORD(OWNER, "\4", "\2ab\0") A_RECORD(OWNER, "\x7f\0\0\1")), 0, 1},
        {"a name whose label holds a dot is not the name",
         VIEW(HEAD("\1") A_RECORD("\x0b"
                                  "api.allowed\4test\0",
                                  "\x7f\0\0\1")),
         0, 0},
        {"bytes behind the records", VIEW(HEAD("\0") "\xff\xff\xff"), 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dns_answer a;
        const char *why;
        if (dns_answer_read(cases[i].message, NAME, DNS_A, &a, &why) != 0 ||
            a.n_addresses != cases[i].addresses || a.n_aliases != cases[i].aliases)
            fail_msg("%s", cases[i].what);
    }
}

static struct dns_query query_for(const char *name, uint16_t type, struct buf *question) {
    struct dns_query q = {.id = 7, .type = type};
    put_name(question, name);
    buf_put_u16(question, type);
    buf_put_u16(question, 1);
    q.question = buf_view(question);
    return q;
}

static int read_chain(unsigned links, struct dns_answer *a) {
    struct buf question, out;
    const char *why;
    char from[32] = NAME, to[32];
    buf_init(&question, 300);
    buf_init(&out, 65535);
    struct dns_query q = query_for(NAME, Q_A, &question);
    put_head(&out, &q, 0, (uint16_t)(links + 1));
    for (unsigned i = 0; i < links; i++) {
        snprintf(to, sizeof to, "alias-%u.test", i);
        put_cname(&out, from, to);
        memcpy(from, to, sizeof from);
    }
    put_address(&out, from, "203.0.113.9");
    int result = dns_answer_read(buf_view(&out), NAME, DNS_A, a, &why);
    buf_free(&question);
    buf_free(&out);
    return result;
}

static void chains_are_bounded(void **state) {
    struct dns_answer a;
    (void)state;
    assert_int_equal(read_chain(DNS_ALIASES_MAX, &a), 0);
    assert_int_equal(a.n_aliases, DNS_ALIASES_MAX);
    assert_int_equal(a.n_addresses, 1);
    assert_string_equal(a.aliases[DNS_ALIASES_MAX - 1], "alias-7.test");
    assert_int_equal(read_chain(DNS_ALIASES_MAX + 1, &a), ERR_BAD);
}

static int read_many(unsigned n, struct dns_answer *a) {
    struct buf question, out;
    const char *why;
    buf_init(&question, 300);
    buf_init(&out, 65535);
    struct dns_query q = query_for(NAME, Q_AAAA, &question);
    put_head(&out, &q, 0, (uint16_t)n);
    for (unsigned i = 0; i < n; i++)
        put_address(&out, NAME, "2001:db8::9");
    int result = dns_answer_read(buf_view(&out), NAME, DNS_AAAA, a, &why);
    buf_free(&question);
    buf_free(&out);
    return result;
}

static void addresses_are_bounded(void **state) {
    struct dns_answer a;
    (void)state;
    assert_int_equal(read_many(DNS_ADDRESSES_MAX, &a), 0);
    assert_int_equal(a.n_addresses, DNS_ADDRESSES_MAX);
    assert_int_equal(a.addresses[0].family, 6);
    assert_int_equal(read_many(DNS_ADDRESSES_MAX + 1, &a), ERR_BAD);
}

static void names_over_253_bytes_are_refused(void **state) {
    static const char label[] = "\x3f"
                                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct dns_answer a;
    const char *why;
    struct buf question, out, target;
    (void)state;
    buf_init(&question, 300);
    buf_init(&out, 65535);
    buf_init(&target, 300);
    struct dns_query q = query_for(NAME, Q_A, &question);
    put_head(&out, &q, 0, 1);
    for (int i = 0; i < 4; i++)
        buf_put(&target, view_str(label));
    buf_put_u8(&target, 0);
    put_record(&out, NAME, Q_CNAME, buf_view(&target));
    assert_int_equal(dns_answer_read(buf_view(&out), NAME, DNS_A, &a, &why), ERR_BAD);
    buf_free(&question);
    buf_free(&out);
    buf_free(&target);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_answers_are_refused),
        cmocka_unit_test(every_cut_of_a_good_answer_is_refused),
        cmocka_unit_test(only_the_asked_name_and_its_chain_count),
        cmocka_unit_test(chains_are_bounded),
        cmocka_unit_test(addresses_are_bounded),
        cmocka_unit_test(names_over_253_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Whom a listener lets in: the text that says so, and peers as the kernel tells of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "policy/admission.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct admission admission(const char *text) {
    struct admission a;
    assert_int_equal(admission_read(view_str(text), &a), 0);
    return a;
}

static void a_text_is_read_as_it_was_put(void **state) {
    static const struct {
        enum admission_kind kind;
        const char *items[2], *text;
    } cases[] = {
        {ADMIT_USERS, {"0", "1000"}, "uid=0,1000"},
        {ADMIT_GUESTS, {"3", NULL}, "cid=3"},
        {ADMIT_RELAYS, {"10.0.0.0/8", "fd00::1/128"}, "relay=10.0.0.0/8,fd00::1/128"},
        {ADMIT_SOURCES, {"10.0.0.2/32", "fd00::2/128"}, "source=10.0.0.2/32,fd00::2/128"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf text;
        size_t n = 0;
        buf_init(&text, 256);
        for (; n < 2 && cases[i].items[n]; n++)
            admission_put(&text, cases[i].kind, view_str(cases[i].items[n]));
        assert_true(view_equal(buf_view(&text), view_str(cases[i].text)));
        struct admission a = admission(cases[i].text);
        assert_int_equal(a.kind, cases[i].kind);
        assert_int_equal(a.n, n);
        buf_free(&text);
    }
    assert_int_equal(admission("").kind, ADMIT_ALL);
}

static void another_text_is_refused(void **state) {
    static const char *const texts[] = {
        "uid=", "uid=x",   "uid=-1",     "uid=1,,2",         "uid=4294967295",    "gid=1",
        "1000", "cid=0x3", "relay=host", "relay=10.0.0.1/8", "relay=10.0.0.0/33", "uid",
        ",",
    };
    struct admission a;
    char many[256] = "cid=1";
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_int_equal(admission_read(view_str(texts[i]), &a), ERR_BAD);
    for (size_t i = 1; i < ADMISSION_MAX; i++)
        strcat(many, ",1");
    assert_int_equal(admission_read(view_str(many), &a), 0);
    strcat(many, ",1");
    assert_int_equal(admission_read(view_str(many), &a), ERR_BAD);
}

static void users_and_guests_are_let_in_by_what_the_kernel_tells(void **state) {
    static const struct {
        const char *text;
        struct peer peer;
        enum admitted admitted;
    } cases[] = {{"uid=7,1000", {.kind = PEER_USER, .id = 1000}, ADMITTED},
                 {"uid=7,1000", {.kind = PEER_USER, .id = 0}, ADMITTED_NOT},
                 {"uid=3", {.kind = PEER_GUEST, .id = 3}, ADMITTED_NOT},
                 {"uid=0", {.kind = PEER_UNKNOWN}, ADMITTED_NOT},
                 {"cid=3,5", {.kind = PEER_GUEST, .id = 5}, ADMITTED},
                 {"cid=3,5", {.kind = PEER_GUEST, .id = 4}, ADMITTED_NOT},
                 {"cid=3", {.kind = PEER_USER, .id = 3}, ADMITTED_NOT},
                 {"source=10.0.0.2", {.kind = PEER_USER, .id = 0}, ADMITTED_NOT},
                 {"source=10.0.0.2",
                  {.kind = PEER_ADDRESS, .address = {.family = 4, .bytes = {10, 0, 0, 2}}},
                  ADMITTED},
                 {"source=10.0.0.2",
                  {.kind = PEER_ADDRESS, .address = {.family = 4, .bytes = {10, 0, 0, 3}}},
                  ADMITTED_NOT},
                 {"source=fd00::/64",
                  {.kind = PEER_ADDRESS, .address = {.family = 6, .bytes = {0xfe, 0x80}}},
                  ADMITTED_NOT},
                 {"", {.kind = PEER_UNKNOWN}, ADMITTED}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct admission a = admission(cases[i].text);
        assert_int_equal(admission_judge(&a, &cases[i].peer), cases[i].admitted);
    }
}

static void ct_11_only_who_is_named_is_a_relay(void **state) {
    struct admission a = admission("relay=10.0.0.0/8,2001:db8::5");
    static const struct {
        const char *address;
        enum admitted admitted;
    } cases[] = {{"10.1.2.3", ADMITTED_RELAY},
                 {"11.1.2.3", ADMITTED},
                 {"2001:db8::5", ADMITTED_RELAY},
                 {"2001:db8::6", ADMITTED},
                 {"::ffff:10.1.2.3", ADMITTED_RELAY}};
    struct peer peer = {.kind = PEER_ADDRESS};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(address_parse(view_str(cases[i].address), &peer.address), 0);
        assert_int_equal(admission_judge(&a, &peer), cases[i].admitted);
    }
    peer = (struct peer){.kind = PEER_USER};
    assert_int_equal(admission_judge(&a, &peer), ADMITTED_NOT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_read_as_it_was_put),
        cmocka_unit_test(another_text_is_refused),
        cmocka_unit_test(users_and_guests_are_let_in_by_what_the_kernel_tells),
        cmocka_unit_test(ct_11_only_who_is_named_is_a_relay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

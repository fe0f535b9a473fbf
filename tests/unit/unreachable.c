/* What the kernel says of datagrams that nobody takes: who sent them where, and nothing of what is about something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <string.h>

#include "http/unreachable.h"

/* From 203.0.113.7, port 55702, to 203.0.113.5, port 443; as a raw socket gave it. */
#define OUTER4 "\x45\xc0\x00\x38\xa9\xd2\x00\x00\x40\x01\x56\x1f\xcb\x00\x71\x05\xcb\x00\x71\x07"
#define ICMP4 "\x03\x03\x45\xc3\x00\x00\x00\x00"
#define INNER4 "\x45\x00\x04\xcc\x29\x89\x40\x00\x40\x11\x94\x8c\xcb\x00\x71\x07\xcb\x00\x71\x05"
/* From 2001:db8::1 to 2001:db8:1::5, the same ports. */
#define ICMP6 "\x01\x04\x8e\x05\x00\x00\x00\x00"
#define INNER6                                                                                     \
    "\x60\x04\xaf\xbc\x04\xb8\x11\x40\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" \
    "\x01\x20\x01\x0d\xb8\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05"
#define PORTS "\xd9\x96\x01\xbb"

static const uint8_t four[] = OUTER4 ICMP4 INNER4 PORTS "\x04\xb8\x7c\xd5xxxx";
static const uint8_t six[] = ICMP6 INNER6 PORTS "\x04\xb8\x60\x42xxxx";

enum { FOUR_WHOLE = 20 + 8 + 20 + 4, SIX_WHOLE = 8 + 40 + 4 };

static void must_say(struct view packet, const char *from, const char *to) {
    struct unreachable u;
    char text[ADDRESS_TEXT_SIZE];
    assert_int_equal(unreachable_read(packet, &u), 0);
    address_format(&u.from, text);
    assert_string_equal(text, from);
    address_format(&u.to, text);
    assert_string_equal(text, to);
    assert_int_equal(u.from_port, 0xd996);
    assert_int_equal(u.to_port, 443);
}

static void both_families_say_from_whom_to_where(void **state) {
    (void)state;
    must_say(view_of(four, sizeof four - 1), "203.0.113.7", "203.0.113.5");
    must_say(view_of(six, sizeof six - 1), "2001:db8::1", "2001:db8:1::5");
}

static void options_of_ipv4_are_passed_over(void **state) {
    static const char outer[] =
        "\x46\xc0\x00\x3c\xa9\xd2\x00\x00\x40\x01\x56\x1f\xcb\x00\x71\x05\xcb\x00\x71\x07opts" ICMP4
        "\x47\x00\x04\xcc\x29\x89\x40\x00\x40\x11\x94\x8c\xcb\x00\x71\x07\xcb\x00\x71\x05optsopt"
        "s" PORTS;
    (void)state;
    must_say(view_of(outer, sizeof outer - 1), "203.0.113.7", "203.0.113.5");
}

/* What was cut before the ports tells nothing, wherever that is. */
static void a_part_tells_nothing(void **state) {
    struct unreachable u;
    (void)state;
    for (size_t n = 0; n < FOUR_WHOLE; n++)
        assert_int_equal(unreachable_read(view_of(four, n), &u), ERR_BAD);
    for (size_t n = 0; n < SIX_WHOLE; n++)
        assert_int_equal(unreachable_read(view_of(six, n), &u), ERR_BAD);
    assert_int_equal(unreachable_read(view_of(four, FOUR_WHOLE), &u), 0);
    assert_int_equal(unreachable_read(view_of(six, SIX_WHOLE), &u), 0);
}

static void what_is_about_something_else_tells_nothing(void **state) {
    static const struct {
        bool six;
        size_t at;
        uint8_t is;
    } changes[] = {
        {false, 0, 0x44},                  /* a header of 16 bytes */
        {false, 9, 6},                     /* no ICMP */
        {false, 20, 8},                    /* an echo request */
        {false, 21, 1},                    /* no host instead of no port */
        {false, 28, 0x55},                 /* inside, no IPv4 */
        {false, 28, 0x44}, {false, 37, 6}, /* TCP */
        {true, 0, 3},                      /* its time is over */
        {true, 1, 0},                      /* no route */
        {true, 8, 0x40},                   /* inside, no IPv6 */
        {true, 14, 6},                     /* TCP */
        {true, 14, 44},                    /* a fragment */
    };
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        uint8_t packet[sizeof four + sizeof six];
        size_t n = changes[i].six ? sizeof six : sizeof four;
        struct unreachable u;
        memcpy(packet, changes[i].six ? six : four, n);
        packet[changes[i].at] = changes[i].is;
        if (unreachable_read(view_of(packet, n), &u) != ERR_BAD)
            fail_msg("change %zu is taken", i);
    }
}

/* ---- as it is logged ---- */

/* A message of the kind, with an attribute before the packet; how long it is. */
static size_t log_packet(uint8_t out[512], struct view packet) {
    struct nlmsghdr head = {.nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET};
    struct nlattr prefix = {sizeof prefix + 2, NFULA_PREFIX},
                  payload = {(uint16_t)(sizeof payload + packet.n), NFULA_PAYLOAD};
    size_t n = sizeof head + sizeof(struct nfgenmsg);
    memset(out, 0, 512);
    memcpy(out + n, &prefix, sizeof prefix);
    memcpy(out + n + 8, &payload, sizeof payload);
    memcpy(out + n + 12, packet.p, packet.n);
    n += 12 + packet.n;
    head.nlmsg_len = (uint32_t)n;
    memcpy(out, &head, sizeof head);
    return n;
}

static const uint8_t logged4[] = INNER4 PORTS "\x04\xb8\x7c\xd5",
                     logged6[] = INNER6 PORTS "\x04\xb8\x60\x42";

static void what_is_logged_says_from_whom_to_where(void **state) {
    static const struct {
        struct view packet;
        const char *from, *to;
    } cases[] = {{{logged4, sizeof logged4 - 1}, "203.0.113.7", "203.0.113.5"},
                 {{logged6, sizeof logged6 - 1}, "2001:db8::1", "2001:db8:1::5"}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint8_t message[512];
        struct unreachable u;
        char text[ADDRESS_TEXT_SIZE];
        size_t n = log_packet(message, cases[i].packet);
        assert_int_equal(unreachable_read_logged(view_of(message, n), &u), 0);
        address_format(&u.from, text);
        assert_string_equal(text, cases[i].from);
        address_format(&u.to, text);
        assert_string_equal(text, cases[i].to);
        assert_int_equal(u.from_port, 0xd996);
        assert_int_equal(u.to_port, 443);
        /* A part of it has another length than it says. */
        for (size_t part = 0; part < n; part++)
            assert_int_equal(unreachable_read_logged(view_of(message, part), &u), ERR_BAD);
    }
}

static void what_is_logged_of_something_else_tells_nothing(void **state) {
    enum { TYPE = 4, LENGTH = 0, FIRST = 20, SECOND = 28, PACKET = 32 };
    static const struct {
        size_t at;
        uint8_t is;
    } changes[] = {
        {TYPE, 1},       {TYPE + 1, 3}, /* another message, another part of netfilter */
        {LENGTH, 20},    {FIRST, 0},    /* no attributes, one of no length */
        {FIRST, 200},    {SECOND, 3}, /* one longer than the message, one shorter than its own head */
        {SECOND, 27},                 /* the packet ends before the ports */
        {SECOND + 2, 1},              /* there is no packet */
        {PACKET, 0x55},  {PACKET, 0x44}, {PACKET + 9, 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        uint8_t message[512];
        struct unreachable u;
        size_t n = log_packet(message, view_of(logged4, sizeof logged4 - 1));
        message[changes[i].at] = changes[i].is;
        if (unreachable_read_logged(view_of(message, n), &u) != ERR_BAD)
            fail_msg("change %zu is taken", i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_families_say_from_whom_to_where),
        cmocka_unit_test(options_of_ipv4_are_passed_over),
        cmocka_unit_test(a_part_tells_nothing),
        cmocka_unit_test(what_is_about_something_else_tells_nothing),
        cmocka_unit_test(what_is_logged_says_from_whom_to_where),
        cmocka_unit_test(what_is_logged_of_something_else_tells_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

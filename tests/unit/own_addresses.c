#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/own_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct address address_of(const char *text) {
    struct address a;
    assert_int_equal(address_parse(view_str(text), &a), 0);
    return a;
}

static struct own_addresses own_of(const char *const *texts) {
    static struct own_addresses own;
    struct buf b;
    own.n = 0;
    buf_init(&b, 4096);
    for (; *texts; texts++)
        buf_put_block(&b, view_str(*texts));
    assert_int_equal(own_addresses_read(&own, buf_view(&b)), 0);
    buf_free(&b);
    return own;
}

static void every_interface_address_is_known(void **state) {
    struct loop *l = loop_new();
    struct interfaces *i = interfaces_new(l);
    struct ifaddrs *list;
    size_t seen = 0;
    (void)state;
    assert_non_null(i);
    assert_int_equal(getifaddrs(&list), 0);
    for (struct ifaddrs *at = list; at; at = at->ifa_next) {
        struct address a = {.family = 4};
        if (!at->ifa_addr)
            continue;
        if (at->ifa_addr->sa_family == AF_INET) {
            struct sockaddr_in in;
            memcpy(&in, at->ifa_addr, sizeof in);
            memcpy(a.bytes, &in.sin_addr, 4);
        } else if (at->ifa_addr->sa_family == AF_INET6) {
            struct sockaddr_in6 in6;
            memcpy(&in6, at->ifa_addr, sizeof in6);
            a.family = 6;
            memcpy(a.bytes, &in6.sin6_addr, 16);
        } else {
            continue;
        }
        assert_true(interfaces_hold(i, &a));
        seen++;
    }
    assert_true(seen > 0);
    assert_int_equal(interfaces_count(i), seen);
    struct address elsewhere = address_of("203.0.113.9");
    assert_false(interfaces_hold(i, &elsewhere));
    freeifaddrs(list);
    interfaces_free(i);
    loop_free(l);
}

static void ip_11_listeners_are_refused_at_their_port(void **state) {
    static const struct {
        const char *listener, *address;
        uint16_t port;
        bool refused;
    } cases[] = {
        {"127.0.0.1:3128", "127.0.0.1", 3128, true},
        {"127.0.0.1:3128", "127.0.0.1", 443, false},
        {"127.0.0.1:3128", "127.0.0.2", 3128, false},
        {"127.0.0.1:3128", "::ffff:127.0.0.1", 3128, true},
        {"127.0.0.1:3128", "64:ff9b::7f00:1", 3128, true},
        {"[::1]:3128", "::1", 3128, true},
        {"[::1]:3128", "127.0.0.1", 3128, false},
        {"0.0.0.0:3128", "127.0.0.1", 3128, true},
        {"0.0.0.0:3128", "127.9.9.9", 3128, true},
        {"[::]:3128", "127.0.0.1", 3128, true},
        {"[::]:3128", "::1", 3128, true},
        {"[::]:3128", "10.11.12.13", 3128, false},
        {"203.0.113.7:3128", "203.0.113.7", 3128, true},
        {"203.0.113.7:3128", "203.0.113.7", 443, false},
        /* No address of one machine, whatever a policy says. */
        {"127.0.0.1:3128", "0.0.0.0", 443, true},
        {"127.0.0.1:3128", "::", 443, true},
        {"127.0.0.1:3128", "::ffff:0.0.0.0", 443, true},
        {"127.0.0.1:3128", "224.0.0.1", 443, true},
        {"127.0.0.1:3128", "ff02::1", 443, true},
        {"127.0.0.1:3128", "255.255.255.255", 443, true},
    };
    struct loop *l = loop_new();
    struct interfaces *here = interfaces_new(l);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct own_addresses own = own_of((const char *const[]){cases[i].listener, NULL});
        struct address a = address_of(cases[i].address);
        if ((own_addresses_refuse(&own, here, &a, cases[i].port) != NULL) != cases[i].refused)
            fail_msg("%s: %s:%u", cases[i].listener, cases[i].address, cases[i].port);
    }
    interfaces_free(here);
    loop_free(l);
}

static void listeners_that_cannot_be_read_are_an_error(void **state) {
    static const char *const bad[] = {"localhost:3128", "127.0.0.1",       "127.0.0.1:0",
                                      "::1:3128",       "127.0.0.1:3128 ", ""};
    static struct own_addresses own;
    struct buf b;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        buf_init(&b, 4096);
        buf_put_block(&b, view_str(bad[i]));
        assert_int_equal(own_addresses_read(&own, buf_view(&b)), ERR_BAD);
        buf_free(&b);
    }
    assert_int_equal(own_addresses_read(&own, VIEW("\0\0\0\x09"
                                                   "127")),
                     ERR_BAD);
    buf_init(&b, 65536);
    for (size_t i = 0; i <= OWN_ADDRESSES_MAX; i++)
        buf_put_block(&b, VIEW("127.0.0.1:3128"));
    assert_int_equal(own_addresses_read(&own, buf_view(&b)), ERR_LIMIT);
    buf_free(&b);
}

/* Gives the loopback interface a second address, in a network namespace of our own; "0.0.0.0" takes it. */
static void set_address(const char *text) {
    struct ifreq r = {.ifr_name = "lo:1"};
    struct sockaddr_in in = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, text, &in.sin_addr);
    memcpy(&r.ifr_addr, &in, sizeof in);
    assert_int_equal(ioctl(fd, SIOCSIFADDR, &r), 0);
    close(fd);
}

static void turn(struct loop *l) {
    for (int i = 0; i < 5; i++)
        event_base_loop(loop_base(l), EVLOOP_NONBLOCK);
}

/* Last: it moves the process into a network namespace of its own. */
static void ip_11_a_public_address_of_ours_is_refused_while_we_have_it(void **state) {
    static const struct own_addresses none;
    struct address a = address_of("9.9.9.9"), translated = address_of("64:ff9b::909:909");
    (void)state;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        print_message("skipped: no network namespace of our own can be made here\n");
        skip();
    }
    struct loop *l = loop_new();
    struct interfaces *here = interfaces_new(l);
    assert_non_null(here);
    assert_null(own_addresses_refuse(&none, here, &a, 443));
    set_address("9.9.9.9");
    turn(l);
    assert_string_equal(own_addresses_refuse(&none, here, &a, 443),
                        "is an address of this machine");
    assert_non_null(own_addresses_refuse(&none, here, &translated, 443));
    set_address("0.0.0.0");
    turn(l);
    assert_null(own_addresses_refuse(&none, here, &a, 443));
    interfaces_free(here);
    loop_free(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_interface_address_is_known),
        cmocka_unit_test(ip_11_listeners_are_refused_at_their_port),
        cmocka_unit_test(listeners_that_cannot_be_read_are_an_error),
        cmocka_unit_test(ip_11_a_public_address_of_ours_is_refused_while_we_have_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

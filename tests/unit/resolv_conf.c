#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/resolv_conf.h"

static const struct {
    const char *text;
    int result;
    size_t servers, skipped, line;
} cases[] = {
    {"nameserver 192.0.2.53\n", 0, 1, 0, 0},
    {"nameserver 192.0.2.53", 0, 1, 0, 0},
    {"# made by hand\nsearch corp.test\noptions ndots:5 edns0\n\tnameserver\t2001:db8::53 \n", 0, 1,
     0, 0},
    {"nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n"
     "nameserver 192.0.2.5\nnameserver 192.0.2.6\nnameserver 192.0.2.7\nnameserver 192.0.2.8\n"
     "nameserver 192.0.2.9\n",
     0, 8, 0, 0},
    {"nameserver fe80::1%eth0\nnameserver 192.0.2.53\n", 0, 1, 1, 0},
    {"nameserver fe80::1%eth0\n", ERR_MISSING, 0, 1, 0},
    {"", ERR_MISSING, 0, 0, 0},
    {"search corp.test\n", ERR_MISSING, 0, 0, 0},
    {"nameservers 192.0.2.53\n", ERR_MISSING, 0, 0, 0},
    {"nameserver 192.0.2.53\nnameserver dns.corp.test\n", ERR_BAD, 0, 0, 2},
    {"nameserver 192.0.2.53 192.0.2.54\n", ERR_BAD, 0, 0, 1},
    {"nameserver\n", ERR_BAD, 0, 0, 1},
    {"nameserver 0300.0.2.53\n", ERR_BAD, 0, 0, 1},
    {"nameserver 192.0.2\n", ERR_BAD, 0, 0, 1},
    {"nameserver 192.0.2.53:53\n", ERR_BAD, 0, 0, 1},
    {"nameserver 192.0.2.53\r\n", ERR_BAD, 0, 0, 1},
};

static void nameservers_are_read_strictly(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct resolv_conf c;
        size_t line = 0;
        int result = resolv_conf_read(view_str(cases[i].text), &c, &line);
        if (result != cases[i].result)
            fail_msg("%s: %d", cases[i].text, result);
        if (result == ERR_BAD) {
            assert_int_equal(line, cases[i].line);
        } else if (c.n != cases[i].servers || c.skipped != cases[i].skipped) {
            fail_msg("%s: %zu servers, %zu skipped", cases[i].text, c.n, c.skipped);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nameservers_are_read_strictly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

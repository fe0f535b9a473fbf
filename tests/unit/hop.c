#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "egress/hop.h"

static const struct {
    const char *bytes;
    int result;
    uint16_t status;
    const char *behind;
} cases[] = {
    {"HTTP/1.1 200 OK\r\n\r\n", 0, 200, ""},
    {"HTTP/1.0 200 Connection established\r\nVia: 1.0 corp\r\n\r\n\x16\x03\x01", 0, 200,
     "\x16\x03\x01"},
    {"HTTP/1.1 200\r\n\r\n", 0, 200, ""},
    {"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 3\r\n\r\nabc", 0, 407, "abc"},
    {"HTTP/1.1 200 OK\r\n\r\n\r\n\r\n", 0, 200, "\r\n\r\n"},
    {"", ERR_AGAIN, 0, NULL},
    {"HTTP/1.1 200 OK\r\n\r", ERR_AGAIN, 0, NULL},
    {"HTTP/1.1 200 OK\n\n", ERR_AGAIN, 0, NULL},
    {"HTTP/1.1 200 OK\nX: y\r\n\r\n", ERR_BAD, 0, NULL},
    {"HTTP/1.1 200 OK\rX: y\r\n\r\n", ERR_BAD, 0, NULL},
    {"HTTP/1.1 200 OK\r\nX: \x01\r\n\r\n", ERR_BAD, 0, NULL},
    {"HTTP/2 200\r\n\r\n", ERR_BAD, 0, NULL},
    {"HTTP/1.1 2000 OK\r\n\r\n", ERR_BAD, 0, NULL},
    {"HTTP/1.1 20 OK\r\n\r\n", ERR_BAD, 0, NULL},
    {"HTTP/1.1 +20 OK\r\n\r\n", ERR_BAD, 0, NULL},
    {"HTTP/1.1  200 OK\r\n\r\n", ERR_BAD, 0, NULL},
    {"SSH-2.0-x\r\n\r\n", ERR_BAD, 0, NULL},
    {"\r\n\r\n", ERR_BAD, 0, NULL},
};

static void heads_of_answers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct view v = view_str(cases[i].bytes);
        size_t size = 0;
        uint16_t status = 0;
        int result = hop_read(v, &size, &status);
        if (result != cases[i].result)
            fail_msg("%s: %d", cases[i].bytes, result);
        if (result != 0)
            continue;
        assert_int_equal(status, cases[i].status);
        assert_true(view_equal(view_skip(v, size), view_str(cases[i].behind)));
    }
}

static void an_endless_head_is_over_the_limit(void **state) {
    static uint8_t bytes[HOP_HEAD_MAX + 8];
    size_t size;
    uint16_t status;
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes, "HTTP/1.1 200 ", 13);
    assert_int_equal(hop_read(view_of(bytes, HOP_HEAD_MAX - 1), &size, &status), ERR_AGAIN);
    assert_int_equal(hop_read(view_of(bytes, HOP_HEAD_MAX), &size, &status), ERR_LIMIT);
    memcpy(bytes + HOP_HEAD_MAX, "\r\n\r\n", 4);
    assert_int_equal(hop_read(view_of(bytes, sizeof bytes), &size, &status), ERR_LIMIT);
    memcpy(bytes + HOP_HEAD_MAX - 4, "\r\n\r\n", 4);
    assert_int_equal(hop_read(view_of(bytes, HOP_HEAD_MAX), &size, &status), 0);
    assert_int_equal(size, HOP_HEAD_MAX);
}

static void the_request_names_the_target_twice(void **state) {
    static const struct {
        const char *authority, *request;
    } requests[] = {
        {"api.example.com:443",
         "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n"},
        {"[2001:db8::1]:80", "CONNECT [2001:db8::1]:80 HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct authority a;
        struct buf out;
        buf_init(&out, 1000);
        assert_int_equal(authority_parse(view_str(requests[i].authority), 0, &a, NULL), 0);
        hop_write(&a, &out);
        assert_true(view_equal(buf_view(&out), view_str(requests[i].request)));
        buf_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_of_answers),
        cmocka_unit_test(an_endless_head_is_over_the_limit),
        cmocka_unit_test(the_request_names_the_target_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

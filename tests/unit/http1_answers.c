/* HTTP/1 answers: what is taken and what is refused, by the cases of the attack catalogue. */
#include "tests/unit/http1_talk.h"

#define OK(lines) "HTTP/1.1 200 OK\r\n" lines "\r\n"

static void test_ordinary_answers_are_taken(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN(OK("Content-Length: 2\r\nServer: x\r\n") "ok",
              "200 length:2 1.1 keep server=x;<ok>END{}EOF"),
        TAKEN(OK("Transfer-Encoding: chunked\r\n") "2\r\nok\r\n0\r\nX: y\r\n\r\n",
              "200 chunked:0 1.1 keep <ok>END{x=y;}EOF"),
        TAKEN(OK("") "until the end", "200 close:0 1.1 <until the end>END{}"),
        TAKEN(OK(""), "200 close:0 1.1 END{}"),
        TAKEN("HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", "404 length:0 1.1 keep END{}EOF"),
        TAKEN("HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", "404 length:0 1.1 keep END{}EOF"),
        TAKEN("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\nx",
              "200 length:1 1.0 <x>END{}EOF"),
        TAKEN(OK("Content-Length: 1\r\nConnection: close\r\n") "x", "200 length:1 1.1 <x>END{}EOF"),
        TAKEN("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
              "204 none:0 1.1 keep END{}EOF"),
        TAKEN("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: x\r\n\r\n",
              "304 none:5 1.1 keep told etag=x;END{}EOF"),
        TAKEN(OK("Content-Length: 1\r\nConnection: keep-alive, Transfer-Encoding\r\n") "x",
              "200 length:1 1.1 keep <x>END{}EOF"),
    };
    CHECK_ANSWERS(cases);
}

static void test_answers_to_head_have_no_body(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        {OK("Content-Length: 5\r\n"), sizeof(OK("Content-Length: 5\r\n")) - 1,
         "200 none:5 1.1 keep told END{}EOF", 0, true},
        {OK("Transfer-Encoding: chunked\r\n"), sizeof(OK("Transfer-Encoding: chunked\r\n")) - 1,
         "200 none:0 1.1 keep END{}EOF", 0, true},
        {OK(""), sizeof(OK("")) - 1, "200 none:0 1.1 keep END{}EOF", 0, true},
    };
    CHECK_ANSWERS(cases);
}

static void test_br_67_an_interim_answer_with_a_length_shifts_nothing(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN("HTTP/1.1 100 Continue\r\nContent-Length: 19\r\n\r\n" OK("Content-Length: 1\r\n") "x",
              "100 none:0 1.1 keep END{}200 length:1 1.1 keep <x>END{}EOF"),
        TAKEN("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK("Content-Length: 1\r\n") "x",
              "103 none:0 1.1 keep link=x;END{}200 length:1 1.1 keep <x>END{}EOF"),
        {"HTTP/1.1 100 Continue\r\n\r\n" OK("Content-Length: 9\r\n"),
         sizeof("HTTP/1.1 100 Continue\r\n\r\n" OK("Content-Length: 9\r\n")) - 1,
         "100 none:0 1.1 keep END{}200 none:9 1.1 keep told END{}EOF", 0, true},
    };
    CHECK_ANSWERS(cases);
}

static void test_rs_01_02_and_09_doubtful_framing_is_502(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(OK("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n", 502),
        REFUSED(OK("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") "0\r\n\r\n", 502),
        REFUSED(OK("Content-Length: 5\r\nContent-Length: 0\r\n") "hello", 502),
        REFUSED(OK("Content-Length: 5\r\nContent-Length: 5\r\n") "hello", 502),
        REFUSED(OK("Content-Length: 5, 5\r\n") "hello", 502),
        REFUSED(OK("Content-Length: 05\r\n") "hello", 502),
        REFUSED(OK("Transfer-Encoding: gzip\r\n") "x", 502),
        REFUSED(OK("Transfer-Encoding: chunked, gzip\r\n") "x", 502),
        REFUSED(OK("Transfer-Encoding: gzip, chunked\r\n") "0\r\n\r\n", 502),
        REFUSED("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 502),
        REFUSED(OK("Transfer-Encoding: chunked\r\n") "1\nZ\r\n0\r\n\r\n", 502),
    };
    CHECK_ANSWERS(cases);
}

static void test_rs_03_a_second_answer_stays_in_the_input(void **state) {
    (void)state;
    static const char input[] = OK("Content-Length: 2\r\n") "okHTTP/1.1 302 Found\r\n\r\n";
    struct http1 *h = http1_new(HTTP1_ANSWERS, &limits);
    http1_expect(h, false);
    struct view v = view_of(input, sizeof input - 1);
    struct http1_event e;
    do {
        e = http1_next(h, v);
        v = view_skip(v, e.used);
    } while (e.what != HTTP1_END && e.what != HTTP1_BAD);
    assert_int_equal(e.what, HTTP1_END);
    assert_true(view_starts(v, VIEW("HTTP/1.1 302")));
    http1_free(h);
}

static void test_rs_04_nothing_is_upgraded(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("HTTP/1.1 101 Switching Protocols\r\n\r\n", 502),
        REFUSED("HTTP/1.1 101 Switching Protocols\r\n\r\nraw", 502),
        REFUSED("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nraw",
                502),
    };
    CHECK_ANSWERS(cases);
}

static void test_rs_05_fields_of_answers_are_checked_like_those_of_requests(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(OK("X: a\rb\r\n"), 502),
        REFUSED(OK("X: a\nb\r\n"), 502),
        REFUSED(OK("X: a\0b\r\n"), 502),
        REFUSED(OK("Set-Cookie: a\r\n b\r\n"), 502),
        REFUSED(OK("X Y: a\r\n"), 502),
        REFUSED(OK("X : a\r\n"), 502),
        REFUSED("HTTP/1.1 200 OK\nX: a\r\n\r\n", 502),
        TAKEN(OK("Content-Length: 0\r\nX: \xe4\r\n"), "200 length:0 1.1 keep x=\\xe4;END{}EOF"),
    };
    CHECK_ANSWERS(cases);
}

static void test_rs_06_the_status_line_has_one_form(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("HTTP/1.1 99 X\r\n\r\n", 502),       REFUSED("HTTP/1.1 099 X\r\n\r\n", 502),
        REFUSED("HTTP/1.1 1000 X\r\n\r\n", 502),     REFUSED("HTTP/1.1 600 X\r\n\r\n", 502),
        REFUSED("HTTP/1.1 200 O\0K\r\n\r\n", 502),   REFUSED("ICY 200 OK\r\n\r\n", 502),
        REFUSED("HTTP/2 200\r\n\r\n", 502),          REFUSED("HTTP/1.1  200 OK\r\n\r\n", 502),
        REFUSED("HTTP/1.1 200OK\r\n\r\n", 502),      REFUSED("HTTP/1.1\t200 OK\r\n\r\n", 502),
        REFUSED("\r\nHTTP/1.1 200 OK\r\n\r\n", 502), REFUSED("HTTP/1.1 20 OK\r\n\r\n", 502),
        REFUSED("HTTP/1.1 200 a\x7f\r\n\r\n", 502),  REFUSED("hello", 502),
    };
    CHECK_ANSWERS(cases);
}

static void test_rs_07_a_cut_answer_is_seen(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(OK("Content-Length: 100\r\n") "half", 502),
        REFUSED(OK("Transfer-Encoding: chunked\r\n") "2\r\nok\r\n", 502),
        REFUSED(OK("Transfer-Encoding: chunked\r\n") "2\r\nok\r\n0\r\n", 502),
        REFUSED("HTTP/1.1 200 OK\r\nX: ", 502),
    };
    CHECK_ANSWERS(cases);
}

static void test_rs_10_hop_by_hop_fields_of_answers_are_taken_out(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN(OK("Alt-Svc: h3\r\nProxy-Authenticate: Basic\r\nProxy-Connection: x\r\n"
                 "Connection: X-Secret\r\nX-Secret: s\r\nUpgrade: h2c\r\nKeep-Alive: x\r\n"
                 "Content_Length: 7\r\nContent-Length: 0\r\nTrailer: x\r\n"),
              "200 length:0 1.1 keep alt-svc=h3;END{}EOF"),
    };
    CHECK_ANSWERS(cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary_answers_are_taken),
        cmocka_unit_test(test_answers_to_head_have_no_body),
        cmocka_unit_test(test_br_67_an_interim_answer_with_a_length_shifts_nothing),
        cmocka_unit_test(test_rs_01_02_and_09_doubtful_framing_is_502),
        cmocka_unit_test(test_rs_03_a_second_answer_stays_in_the_input),
        cmocka_unit_test(test_rs_04_nothing_is_upgraded),
        cmocka_unit_test(test_rs_05_fields_of_answers_are_checked_like_those_of_requests),
        cmocka_unit_test(test_rs_06_the_status_line_has_one_form),
        cmocka_unit_test(test_rs_07_a_cut_answer_is_seen),
        cmocka_unit_test(test_rs_10_hop_by_hop_fields_of_answers_are_taken_out),
    };
    return cmocka_run_group_tests(tests, limits_setup, NULL);
}

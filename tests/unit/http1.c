/* HTTP/1 requests: what is taken and what is refused, by the cases of the attack catalogue. */
#include "tests/unit/http1_talk.h"

#include <time.h>

static void test_self_test_knows_the_strict_parser(void **state) {
    (void)state;
    assert_int_equal(http1_self_test(), 0);
}

static void test_ordinary_requests_are_taken(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN(GET(""), PLAIN "END{}EOF"),
        TAKEN(GET("Accept: */*\r\nX-Empty:\r\nX-Blank: \t \r\nX-Trim:  a b \t\r\n"),
              PLAIN "accept=*/*;x-empty=;x-blank=;x-trim=a b;END{}EOF"),
        TAKEN("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
              "OPTIONS asterisk [] [*] host=a none:0 1.1 keep END{}EOF"),
        TAKEN("GET http://h.test:80/p?q HTTP/1.1\r\nHost: h.test:80\r\n\r\n",
              "GET absolute [h.test:80] [/p?q] host=h.test:80 none:0 1.1 keep END{}EOF"),
        TAKEN("GET HTTPS://h.test HTTP/1.1\r\nHost: other\r\n\r\n",
              "GET absolute+https [h.test] [] host=other none:0 1.1 keep END{}EOF"),
        TAKEN("CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nProxy-Authorization: Basic eA==\r\n"
              "User-Agent: x\r\nProxy-Connection: Keep-Alive\r\n\r\n",
              "CONNECT authority [[::1]:443] [] host=[::1]:443 none:0 1.1 keep "
              "proxy-authorization=Basic eA==;user-agent=x;END{}EOF"),
        TAKEN(POST("Content-Length: 5\r\n") "hello",
              "POST origin [] [/] host=a length:5 1.1 keep <hello>END{}EOF"),
        TAKEN(POST("Content-Length: 0\r\n"),
              "POST origin [] [/] host=a length:0 1.1 keep END{}EOF"),
        TAKEN(CHUNKED("5\r\nhello\r\n00a\r\n0123456789\r\n0\r\n\r\n"),
              "POST origin [] [/] host=a chunked:0 1.1 keep <hello0123456789>END{}EOF"),
        TAKEN(GET("Connection: close\r\n"), "GET origin [] [/] host=a none:0 1.1 END{}EOF"),
        TAKEN("M-SEARCH /x HTTP/1.1\r\nHost: a\r\n\r\n",
              "M-SEARCH origin [] [/x] host=a none:0 1.1 keep END{}EOF"),
        TAKEN("", "EOF"),
    };
    CHECK_REQUESTS(cases);
}

static void test_http10_connect_without_host_as_python_sends_it(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN("CONNECT api.allowed.test:443 HTTP/1.0\r\n\r\n",
              "CONNECT authority [api.allowed.test:443] [] nohost none:0 1.0 END{}EOF"),
        TAKEN("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
              "GET origin [] [/] nohost none:0 1.0 END{}EOF"),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_01_to_04_and_24_every_doubtful_framing_is_400(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(POST("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\nG", 400),
        REFUSED(POST("tRANSFER-eNCODING: chunked\r\nCONTENT-length: 6\r\n") "0\r\n\r\nG", 400),
        REFUSED(POST("Transfer-Encoding: ,chunked\r\n") "0\r\n\r\n", 400),
        REFUSED(POST("Transfer-Encoding: chunked,\r\n") "0\r\n\r\n", 400),
        REFUSED(POST("Transfer-Encoding: chunked, chunked\r\n") "0\r\n\r\n", 400),
        REFUSED(POST("Transfer-Encoding: gzip, chunked\r\n") "0\r\n\r\n", 400),
        REFUSED(POST("Transfer-Encoding: identity\r\n"), 400),
        REFUSED(POST("Transfer-Encoding: chunked;q=1\r\n") "0\r\n\r\n", 400),
        REFUSED(POST("Transfer-Encoding: \"chunked\"\r\n") "0\r\n\r\n", 400),
        REFUSED(POST("Transfer-Encoding: Chunked\r\n") "0\r\n\r\n", 400),
        REFUSED(POST("Transfer-Encoding: xchunked\r\n") "0\r\n\r\n", 400),
        REFUSED(POST("Transfer-Encoding:\r\n"), 400),
        REFUSED(POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n",
                400),
        REFUSED(POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n") "0\r\n\r\n",
                400),
        REFUSED(POST("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n",
                400),
        REFUSED("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        REFUSED(GET("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n", 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_05_folded_lines_are_refused(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(POST("Transfer-Encoding:\r\n chunked\r\n") "0\r\n\r\n", 400),
        REFUSED(GET("X: a\r\n\tb\r\n"), 400),
        REFUSED("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n", 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_06_and_07_content_length_has_one_form(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(POST("Content-Length: 5\r\nContent-Length: 5\r\n") "hello", 400),
        REFUSED(POST("Content-Length: 5\r\nContent-Length: 6\r\n") "hello", 400),
        REFUSED(POST("Content-Length: 5, 5\r\n") "hello", 400),
        REFUSED(POST("Content-Length:\r\nContent-Length: 5\r\n") "hello", 400),
        REFUSED(POST("Content-Length:\r\n"), 400),
        REFUSED(POST("Content-Length: +5\r\n") "hello", 400),
        REFUSED(POST("Content-Length: -5\r\n") "hello", 400),
        REFUSED(POST("Content-Length: 0x5\r\n") "hello", 400),
        REFUSED(POST("Content-Length: 5 5\r\n") "hello", 400),
        REFUSED(POST("Content-Length: 5_0\r\n") "hello", 400),
        REFUSED(POST("Content-Length: 05\r\n") "hello", 400),
        REFUSED(POST("Content-Length: 00\r\n"), 400),
        REFUSED(POST("Content-Length: 5.0\r\n") "hello", 400),
        REFUSED(POST("Content-Length: 99999999999999999999\r\n"), 400),
        REFUSED(POST("Content-Length: 18446744073709551615\r\n"), 400),
        REFUSED(POST("Content-Length: 18446744073709551621\r\n"), 400),
        REFUSED(POST("Content-Length: 9223372036854775808\r\n"), 400),
        REFUSED(POST("Content-Length: \xef\xbc\x95\r\n") "hello", 400),
        REFUSED(POST("Content-Length : 5\r\n") "hello", 400),
        TAKEN(POST("Content-Length: \t 5 \r\n") "hello",
              "POST origin [] [/] host=a length:5 1.1 keep <hello>END{}EOF"),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_08_cr_and_any_byte_does_not_end_a_head(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("GET / HTTP/1.1\r\nHost: a\r\n\rZGET /evil HTTP/1.1\r\nHost: b\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: a\r\n\r\rGET /evil HTTP/1.1\r\nHost: b\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_09_cr_inside_a_value_starts_nothing(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(POST("X: \rxTransfer-Encoding: chunked\r\n") "0\r\n\r\n", 400),
        REFUSED(GET("X: a\rb\r\n"), 400),
        REFUSED(GET("X:\r\r\n"), 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_10_and_11_bare_lf_and_old_versions_are_refused(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("GET / HTTP/1.1\nHost: a\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: a\r\n\n", 400),
        REFUSED("GET / HTTP/1.1\nHost: a\n\n", 400),
        REFUSED("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET /x\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 400),
        REFUSED("GET /x\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 400),
        REFUSED("GET / HTTP/0.9\r\nHost: a\r\n\r\n", 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_12_chunk_sizes_have_one_form(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(CHUNKED("0x1\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("+1\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("-1\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED(" 1\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1 \r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1\t\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1_0\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED(";a\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("00000000000000000001\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("00000000000000001\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("10000000000000000\r\nZ"), 400),
        REFUSED(CHUNKED("ffffffffffffffff\r\nZ"), 400),
        REFUSED(CHUNKED("8000000000000000\r\nZ"), 400),
        TAKEN(CHUNKED("0000000000000001\r\nZ\r\n0000\r\n\r\n"),
              "POST origin [] [/] host=a chunked:0 1.1 keep <Z>END{}EOF"),
        TAKEN(CHUNKED("1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n"),
              "POST origin [] [/] host=a chunked:0 1.1 keep <abcdefghijklmnopqrstuvwxyz>END{}EOF"),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_13_chunk_lines_end_with_crlf(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(CHUNKED("1\nZ\r\n0\r\n\r\n"), 400),    REFUSED(CHUNKED("1\r\nZ\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1\r\nZ\r\n0\n\r\n"), 400),    REFUSED(CHUNKED("1\r\nZ\r\n0\r\n\n"), 400),
        REFUSED(CHUNKED("1\r\nZZ\r\n0\r\n\r\n"), 400), REFUSED(CHUNKED("1\r\nZ0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1\rZ\r\n0\r\n\r\n"), 400),    REFUSED(CHUNKED("1\r\nZ\r0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1\r\nZ\r\n0\r\n\rX"), 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_14_chunk_extensions_are_bounded_and_dropped(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN(CHUNKED("1;a=b\r\nZ\r\n0;last\r\n\r\n"),
              "POST origin [] [/] host=a chunked:0 1.1 keep <Z>END{}EOF"),
        /* What Debian 12's llhttp does not read, and later ones do. */
        REFUSED(CHUNKED("1;a=b;c=d\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1;a=\"\\\"\"\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1;a=\"\n\"\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1;a\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1;a=\x01\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1;a=\0\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1;a=\x80\r\nZ\r\n0\r\n\r\n"), 400),
        REFUSED(CHUNKED("1;a\rb\r\nZ\r\n0\r\n\r\n"), 400),
    };
    CHECK_REQUESTS(cases);
}

/* n times `piece` after a chunked head; the status. */
static uint16_t status_of_repeated(const char *start, const char *piece, size_t n,
                                   const char *end) {
    struct talk t;
    talk_open(&t, HTTP1_REQUESTS, false);
    talk_give(&t, view_str(start));
    for (size_t i = 0; i < n; i++)
        talk_give(&t, view_str(piece));
    talk_give(&t, view_str(end));
    uint16_t status = t.status;
    talk_close(&t);
    return status;
}

static void test_sm_14_and_25_what_chunks_may_cost_is_limited(void **state) {
    (void)state;
    static const char tiny[] = "1;abcdefghijklmnopqrstuvwxyz\r\nZ\r\n";
    const char *head = CHUNKED(""), *end = "0\r\n\r\n";
    assert_int_equal(status_of_repeated(head, tiny, 100, end), 0);
    assert_int_equal(status_of_repeated(head, tiny, 10000, end), 400);
    assert_int_equal(status_of_repeated(head, "1\r\nZ\r\n", 3000, end), 0);
    assert_int_equal(status_of_repeated(head, "1\r\nZ\r\n", 10000, end), 400);
    /* 64 bytes a chunk go on for ever */
    assert_int_equal(status_of_repeated(head,
                                        "40\r\n0123456789abcdef0123456789abcdef0123456789abcdef"
                                        "0123456789abcdef\r\n",
                                        40000, end),
                     0);
    assert_int_equal(status_of_repeated(CHUNKED("1"), ";", 1, "a"), 0);
    assert_int_equal(status_of_repeated(CHUNKED("1;"), "a", 256, "\r\nZ\r\n0\r\n\r\n"), 0);
    assert_int_equal(status_of_repeated(CHUNKED("1;"), "a", 257, ""), 400);
}

static void test_sm_15_trailers_are_kept_apart(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN(CHUNKED("1\r\nZ\r\n0\r\nAuthorization: x\r\nHost: evil\r\nX-Ok:  1\r\n\r\n") GET(""),
              "POST origin [] [/] host=a chunked:0 1.1 keep <Z>"
              "END{authorization=x;host=evil;x-ok=1;}" PLAIN "END{}EOF"),
        /* Debian 12's llhttp takes the first one of these. */
        REFUSED(CHUNKED("0\r\nContent-Length: 5\r\n\r\n"), 400),
        REFUSED(CHUNKED("0\r\nX: a\r\ncontent-LENGTH: x\r\n\r\n"), 400),
        REFUSED(CHUNKED("0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400),
        REFUSED(CHUNKED("0\r\nX: a\r\n b\r\n\r\n"), 400),
        REFUSED(CHUNKED("0\r\nX : a\r\n\r\n"), 400),
        REFUSED(CHUNKED("0\r\nX: \x01\r\n\r\n"), 400),
        REFUSED(CHUNKED("0\r\nX\r\n\r\n"), 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_16_and_17_requests_follow_one_another(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN(GET("") POST("Content-Length: 3\r\n") "abc" GET("X: y\r\n"), PLAIN
              "END{}POST origin [] [/] host=a length:3 1.1 keep <abc>END{}" PLAIN "x=y;END{}EOF"),
        TAKEN(GET("Connection: close\r\n") GET(""),
              "GET origin [] [/] host=a none:0 1.1 END{}" PLAIN "END{}EOF"),
        REFUSED(POST("Content-Length: 3\r\n") "abcd" GET(""), 501),
        REFUSED(POST("Content-Length: 3\r\n") "ab", 400),
        REFUSED(CHUNKED("1\r\nZ\r\n"), 400),
        REFUSED(CHUNKED("0\r\n"), 400),
        REFUSED(CHUNKED("0\r\nX: y\r\n"), 400),
        REFUSED("GET / HTTP/1.1\r\nHost: a\r\n", 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_19_only_one_expectation_is_known(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN(POST("Content-Length: 1\r\nExpect: 100-Continue\r\n") "x",
              "POST origin [] [/] host=a length:1 1.1 keep expect <x>END{}EOF"),
        TAKEN(GET("Expect: 100-continue\r\n"), PLAIN "END{}EOF"),
        TAKEN("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\nx",
              "POST origin [] [/] nohost length:1 1.0 <x>END{}EOF"),
        REFUSED(POST("Content-Length: 1\r\nExpect: banana\r\n") "x", 417),
        REFUSED(POST("Content-Length: 1\r\nExpect:\r\n") "x", 417),
        REFUSED(POST("Content-Length: 1\r\nExpect: 100-continue, x\r\n") "x", 417),
        REFUSED(POST("Content-Length: 1\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n") "x",
                417),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_20_and_21_there_is_exactly_one_host(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("GET / HTTP/1.1\r\nHost: api.allowed.test\r\nHost: evil.test\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\n\r\n", 400),
        REFUSED("GET http://a/ HTTP/1.1\r\n\r\n", 400),
        REFUSED("CONNECT a:443 HTTP/1.1\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.0\r\nHost: \r\n\r\n", 400),
        TAKEN("GET http://a/ HTTP/1.0\r\n\r\n", "GET absolute [a] [/] nohost none:0 1.0 END{}EOF"),
    };
    CHECK_REQUESTS(cases);
}

static void test_hc_14_and_16_a_host_is_one_word(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN("GET / HTTP/1.1\r\nHost:\ta.test\t\r\n\r\n",
              "GET origin [] [/] host=a.test none:0 1.1 keep END{}EOF"),
        REFUSED("GET / HTTP/1.1\r\nHost: api.allowed.test evil.test\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: api\tevil\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: api\x0b.test\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: api\x0c.test\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: api\xc2\xa0.test\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: b\xc3\xbc"
                "cher.test\r\n\r\n",
                400),
        REFUSED("GET / HTTP/1.1\r\nHost: api.allowed.test, evil.test\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: api.allowed.test;x\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1\r\nHost: api%2Eallowed.test\r\n\r\n", 400),
        REFUSED("CONNECT api.allowed.test :443 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("CONNECT\x0bhost:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("CONNECT evil.test\0.allowed.test:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_hc_10_and_11_userinfo_and_backslash_are_refused(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("GET http://api.allowed.test@evil.test/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET http://u:p@evil.test/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET http://evil.test\\@api.allowed.test/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("CONNECT u@a.test:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("CONNECT a.test:443/x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("CONNECT /x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("CONNECT http://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("CONNECT * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET http://a?x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_22_control_bytes_are_refused_and_obs_text_stays_in_values(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(GET("X\0: a\r\n"), 400),
        REFUSED(GET("X: a\0b\r\n"), 400),
        REFUSED(POST("Content-Length\x85: 5\r\n") "hello", 400),
        REFUSED(GET("X: \x7f\r\n"), 400),
        REFUSED(GET("X: 12345678\x01\r\n"), 400),
        REFUSED(GET("X: \x1f"
                    "2345678\r\n"),
                400),
        REFUSED(GET("X\x80: a\r\n"), 400),
        REFUSED(GET("X Y: a\r\n"), 400),
        REFUSED(GET("X(: a\r\n"), 400),
        REFUSED(GET(": a\r\n"), 400),
        REFUSED(GET("X\r\n"), 400),
        REFUSED("GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET /\t HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        TAKEN(GET("X: \xff\tz\r\n"), PLAIN "x=\\xff\\x09z;END{}EOF"),
    };
    CHECK_REQUESTS(cases);
}

static void test_sm_23_the_request_line_has_one_form(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED(" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
        REFUSED("GET / http/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET / RTSP/1.0\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET / ICE/1.0\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET\r\n\r\n", 400),
        REFUSED("get / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        REFUSED("FOO / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        REFUSED("QUERY / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        REFUSED("GETT / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        REFUSED("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        TAKEN("\r\n\r\n" GET(""), PLAIN "END{}EOF"),
        TAKEN(GET("") "\r\n" GET(""), PLAIN "END{}" PLAIN "END{}EOF"),
        TAKEN(GET("") "\r\n", PLAIN "END{}EOF"),
        REFUSED("\r\n\r\n\r\n" GET(""), 400),
        REFUSED("\r\r\n" GET(""), 400),
    };
    CHECK_REQUESTS(cases);
    assert_int_equal(status_of_repeated("", "\r\n", 10000, GET("")), 400);
}

static void test_ct_04_connect_has_no_body(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 400),
        REFUSED("CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 400),
        REFUSED("CONNECT a:443 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                400),
    };
    CHECK_REQUESTS(cases);
}

static void test_ct_05_bytes_behind_connect_stay_in_the_input(void **state) {
    (void)state;
    struct http1 *h = http1_new(HTTP1_REQUESTS, &limits);
    static const char input[] = "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n\x16\x03\x01";
    struct view v = view_of(input, sizeof input - 1);
    struct http1_event e = http1_next(h, v);
    assert_int_equal(e.what, HTTP1_HEAD);
    assert_int_equal(e.used, v.n - 3);
    e = http1_next(h, view_skip(v, e.used));
    assert_int_equal(e.what, HTTP1_END);
    assert_int_equal(e.used, 0);
    http1_free(h);
}

static void test_ct_07_only_http_and_https_urls_are_targets(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("GET ftp://h/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET gopher://h/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET ws://h/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET file:///etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET unix:/x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET http:/x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET h.test:80/http://x/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        TAKEN("GET HTTP://h/ HTTP/1.1\r\nHost: a\r\n\r\n",
              "GET absolute [h] [/] host=a none:0 1.1 keep END{}EOF"),
    };
    CHECK_REQUESTS(cases);
}

static void test_ct_15_http09_and_the_http2_preface_are_refused(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("GET /\r\n", 400),
        REFUSED("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        REFUSED("PRI * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("\x16\x03\x01\x02\x00", 400),
        REFUSED("SSH-2.0-x\r\n", 400),
        REFUSED("PROXY TCP4 10.0.0.99 10.0.0.1 1 2\r\n", 400),
    };
    CHECK_REQUESTS(cases);
}

static void test_pn_07_a_fragment_in_the_target_is_refused(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED("GET /public#/../secret HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        REFUSED("GET http://a/#x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        TAKEN("GET /public%23x HTTP/1.1\r\nHost: a\r\n\r\n",
              "GET origin [] [/public%23x] host=a none:0 1.1 keep END{}EOF"),
    };
    CHECK_REQUESTS(cases);
}

static void test_hd_01_what_policy_depends_on_is_there_once(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(GET("Authorization: Bearer ATTACKER\r\nAuthorization: Bearer PH_A\r\n"), 400),
        REFUSED(GET("authorization: x\r\nAUTHORIZATION: x\r\n"), 400),
        REFUSED(GET("Cookie: a=b\r\nCookie: c=d\r\n"), 400),
        REFUSED(GET("X-Api-Key: a\r\nX-Api-Key: b\r\n"), 400),
        TAKEN(GET("Accept: a\r\nAccept: b\r\n"), PLAIN "accept=a;accept=b;END{}EOF"),
        /* counted by the proxy process, answered with 407 (CT-08) */
        TAKEN(GET("Proxy-Authorization: a\r\nProxy-Authorization: b\r\n"),
              PLAIN "proxy-authorization=a;proxy-authorization=b;END{}EOF"),
    };
    CHECK_REQUESTS(cases);
}

static void test_hd_03_underscore_twins_of_framing_fields_are_refused(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        REFUSED(POST("Content_Length: 5\r\n"), 400),
        REFUSED(POST("TRANSFER_ENCODING: chunked\r\n"), 400),
        REFUSED(GET("X_Api_Key: x\r\n"), 400),
        REFUSED(GET("X.Api.Key: x\r\n"), 400),
        REFUSED(POST("Content.Length: 5\r\n"), 400),
        REFUSED(POST("Transfer.Encoding: chunked\r\n"), 400),
        REFUSED(GET("Content.Type: application/json\r\n"), 400),
        REFUSED(GET("content.encoding: gzip\r\n"), 400),
        REFUSED(GET("Proxy.Authorization: Basic YTpi\r\n"), 400),
        REFUSED(POST("Content+Length: 5\r\n"), 400),
        REFUSED(POST("Transfer~Encoding: chunked\r\n"), 400),
        REFUSED(GET("x!api!key: x\r\n"), 400),
        TAKEN(GET("Content9Length: 5\r\n"), PLAIN "content9length=5;END{}EOF"),
        TAKEN(GET("X_Other: x\r\n"), PLAIN "x_other=x;END{}EOF"),
    };
    CHECK_REQUESTS(cases);
}

static void test_hd_04_and_05_hop_by_hop_fields_are_taken_out(void **state) {
    (void)state;
    static const struct case_of cases[] = {
        TAKEN(GET("Proxy: http://evil.test\r\nProxy-Connection: x\r\nTE: trailers, deflate\r\n"
                  "Trailer: Authorization\r\nKeep-Alive: 9999\r\nHTTP2-Settings: x\r\nA: b\r\n"),
              PLAIN "a=b;END{}EOF"),
        /* Java's client offers h2c with every request in clear. */
        TAKEN(GET("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"),
              PLAIN "END{}EOF"),
        TAKEN(GET("Connection: Upgrade\r\nUpgrade: websocket\r\n"),
              "GET origin [] [/] host=a none:0 1.1 keep upgrade END{}EOF"),
        TAKEN(GET("Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n"),
              "GET origin [] [/] host=a none:0 1.1 keep upgrade END{}EOF"),
        TAKEN(GET("X-A: 1\r\nConnection: ,x-a , keep-alive,\r\nX-B: 2\r\nX-a: 3\r\n"
                  "Connection: X-C\r\nX-C: 4\r\n"),
              PLAIN "x-b=2;END{}EOF"),
        TAKEN(
            POST("Upgrade: x\r\nConnection: upgrade\r\nTransfer-Encoding: chunked\r\n") "1\r\nZ\r\n"
                                                                                        "0\r\n\r\n",
            "POST origin [] [/] host=a chunked:0 1.1 keep upgrade <Z>END{}EOF"),
        TAKEN(POST("Upgrade: x\r\nConnection: upgrade\r\nContent-Length: 1\r\n") "Z",
              "POST origin [] [/] host=a length:1 1.1 keep upgrade <Z>END{}EOF"),
        REFUSED(GET("Connection: Authorization\r\nAuthorization: x\r\n"), 400),
        REFUSED(GET("Authorization: x\r\nConnection: close, authorization\r\n"), 400),
        REFUSED(GET("Connection: host\r\n"), 400),
        REFUSED(POST("Connection: content-length\r\nContent-Length: 1\r\n") "x", 400),
        REFUSED(POST("Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n",
                400),
        REFUSED(GET("Connection: cookie\r\n"), 400),
        REFUSED(GET("Connection: x-api-key\r\n"), 400),
        REFUSED(GET("Connection: a b\r\n"), 400),
        REFUSED(GET("Connection: \"close\"\r\n"), 400),
        REFUSED(GET("Connection: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,1,2,3,4,5,6,7"
                    "\r\n"),
                400),
    };
    CHECK_REQUESTS(cases);
}

static uint16_t status_with_field_of(size_t size) {
    char *value = malloc(size + 1);
    memset(value, 'x', size);
    value[size] = 0;
    uint16_t status = status_of_repeated("GET / HTTP/1.1\r\nHost: a\r\nX: ", value, 1, "\r\n\r\n");
    free(value);
    return status;
}

static void test_sm_25_heads_targets_and_trailers_are_limited(void **state) {
    (void)state;
    size_t head = (size_t)limits.v[LIMIT_HEAD_BYTES];
    size_t rest = strlen("GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n");
    assert_int_equal(status_with_field_of(head - rest), 0);
    assert_int_equal(status_with_field_of(head - rest + 1), 431);
    assert_int_equal(status_of_repeated("GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n", 127, "\r\n"),
                     0);
    assert_int_equal(status_of_repeated("GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n", 128, "\r\n"),
                     431);
    assert_int_equal(status_of_repeated("GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n", 10000, ""),
                     431);
    size_t target = (size_t)limits.v[LIMIT_TARGET_BYTES];
    const char *after = " HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_int_equal(status_of_repeated("GET /", "x", target - 1, after), 0);
    assert_int_equal(status_of_repeated("GET /", "x", target, after), 414);
    size_t trailer = (size_t)limits.v[LIMIT_TRAILER_BYTES] - strlen("X: \r\n\r\n");
    assert_int_equal(status_of_repeated(CHUNKED("0\r\nX: "), "x", trailer, "\r\n\r\n"), 0);
    assert_int_equal(status_of_repeated(CHUNKED("0\r\nX: "), "x", trailer + 1, "\r\n\r\n"), 431);
    assert_int_equal(status_of_repeated(CHUNKED("0\r\n"), "X: y\r\n", 128, "\r\n"), 0);
    assert_int_equal(status_of_repeated(CHUNKED("0\r\n"), "X: y\r\n", 129, "\r\n"), 431);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_sm_25_a_head_byte_by_byte_costs_no_square(void **state) {
    (void)state;
    size_t n = (size_t)limits.v[LIMIT_HEAD_BYTES];
    uint8_t *input = malloc(n);
    memset(input, 'x', n);
    memcpy(input, "GET / HTTP/1.1\r\nX: ", 19);
    struct http1 *h = http1_new(HTTP1_REQUESTS, &limits);
    double start = seconds();
    for (size_t i = 1; i < n; i++)
        assert_int_equal(http1_next(h, view_of(input, i)).what, HTTP1_MORE);
    assert_int_equal(http1_next(h, view_of(input, n)).what, HTTP1_BAD);
    /* 65536 calls take some milliseconds; looking at every byte each time would take seconds. */
    assert_true(seconds() - start < 1);
    http1_free(h);
    free(input);
}

static void test_a_bad_connection_stays_bad_until_reset(void **state) {
    (void)state;
    struct http1 *h = http1_new(HTTP1_REQUESTS, &limits);
    assert_int_equal(http1_next(h, VIEW("\x01")).what, HTTP1_BAD);
    struct http1_event e = http1_next(h, VIEW(GET("")));
    assert_int_equal(e.what, HTTP1_BAD);
    assert_int_equal(e.status, 400);
    assert_int_equal(http1_eof(h).what, HTTP1_BAD);
    http1_reset(h);
    assert_int_equal(http1_next(h, VIEW(GET(""))).what, HTTP1_HEAD);
    http1_free(h);
}

static void test_names_of_a_large_head_stay_where_they_are(void **state) {
    (void)state;
    struct talk t;
    talk_open(&t, HTTP1_REQUESTS, false);
    talk_give(&t, view_str("GET / HTTP/1.1\r\nHost: a\r\n"));
    for (int i = 0; i < 120; i++) {
        char line[256];
        snprintf(line, sizeof line, "X-%0200d: %d\r\n", i, i);
        talk_give(&t, view_str(line));
    }
    struct http1_event e = http1_next(t.h, buf_view(&t.in));
    assert_int_equal(e.what, HTTP1_MORE);
    buf_put(&t.in, VIEW("\r\n"));
    e = http1_next(t.h, buf_view(&t.in));
    assert_int_equal(e.what, HTTP1_HEAD);
    const struct fields *f = &http1_request(t.h)->fields;
    assert_int_equal(f->n, 120);
    for (int i = 0; i < 120; i++) {
        char name[256];
        snprintf(name, sizeof name, "x-%0200d", i);
        assert_true(view_equal(f->at[i].name, view_str(name)));
    }
    talk_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_self_test_knows_the_strict_parser),
        cmocka_unit_test(test_ordinary_requests_are_taken),
        cmocka_unit_test(test_http10_connect_without_host_as_python_sends_it),
        cmocka_unit_test(test_sm_01_to_04_and_24_every_doubtful_framing_is_400),
        cmocka_unit_test(test_sm_05_folded_lines_are_refused),
        cmocka_unit_test(test_sm_06_and_07_content_length_has_one_form),
        cmocka_unit_test(test_sm_08_cr_and_any_byte_does_not_end_a_head),
        cmocka_unit_test(test_sm_09_cr_inside_a_value_starts_nothing),
        cmocka_unit_test(test_sm_10_and_11_bare_lf_and_old_versions_are_refused),
        cmocka_unit_test(test_sm_12_chunk_sizes_have_one_form),
        cmocka_unit_test(test_sm_13_chunk_lines_end_with_crlf),
        cmocka_unit_test(test_sm_14_chunk_extensions_are_bounded_and_dropped),
        cmocka_unit_test(test_sm_14_and_25_what_chunks_may_cost_is_limited),
        cmocka_unit_test(test_sm_15_trailers_are_kept_apart),
        cmocka_unit_test(test_sm_16_and_17_requests_follow_one_another),
        cmocka_unit_test(test_sm_19_only_one_expectation_is_known),
        cmocka_unit_test(test_sm_20_and_21_there_is_exactly_one_host),
        cmocka_unit_test(test_hc_14_and_16_a_host_is_one_word),
        cmocka_unit_test(test_hc_10_and_11_userinfo_and_backslash_are_refused),
        cmocka_unit_test(test_sm_22_control_bytes_are_refused_and_obs_text_stays_in_values),
        cmocka_unit_test(test_sm_23_the_request_line_has_one_form),
        cmocka_unit_test(test_sm_25_heads_targets_and_trailers_are_limited),
        cmocka_unit_test(test_sm_25_a_head_byte_by_byte_costs_no_square),
        cmocka_unit_test(test_ct_04_connect_has_no_body),
        cmocka_unit_test(test_ct_05_bytes_behind_connect_stay_in_the_input),
        cmocka_unit_test(test_ct_07_only_http_and_https_urls_are_targets),
        cmocka_unit_test(test_ct_15_http09_and_the_http2_preface_are_refused),
        cmocka_unit_test(test_pn_07_a_fragment_in_the_target_is_refused),
        cmocka_unit_test(test_hd_01_what_policy_depends_on_is_there_once),
        cmocka_unit_test(test_hd_03_underscore_twins_of_framing_fields_are_refused),
        cmocka_unit_test(test_hd_04_and_05_hop_by_hop_fields_are_taken_out),
        cmocka_unit_test(test_a_bad_connection_stays_bad_until_reset),
        cmocka_unit_test(test_names_of_a_large_head_stay_where_they_are),
    };
    return cmocka_run_group_tests(tests, limits_setup, NULL);
}

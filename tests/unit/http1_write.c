/* What is written: the parser reads it back, and nothing that breaks the form leaves. */
#include "tests/unit/http1_talk.h"

static void test_writers_write_what_the_parser_reads_back(void **state) {
    (void)state;
    struct fields fields = {.n = 0};
    assert_int_equal(fields_add(&fields, VIEW("a"), VIEW("b c")), 0);
    assert_int_equal(fields_add(&fields, VIEW("empty"), VIEW("")), 0);
    struct buf out;
    buf_init(&out, 65536);
    http1_write_request(&out, VIEW("POST"), VIEW("/p?q"), VIEW("h.test"), &fields, FRAMING_CHUNKED,
                        0, false);
    http1_write_chunk(&out, VIEW("0123456789abcdefg"));
    http1_write_last_chunk(&out);
    http1_write_request(&out, VIEW("PUT"), VIEW("/"), VIEW("h.test:81"), &fields, FRAMING_LENGTH,
                        10, true);
    buf_put(&out, VIEW("helloworld"));
    assert_true(buf_ok(&out));
    struct talk t;
    talk_open(&t, HTTP1_REQUESTS, false);
    talk_give(&t, buf_view(&out));
    buf_put_u8(&t.out, 0);
    assert_string_equal((const char *)buf_view(&t.out).p,
                        "POST origin [] [/p?q] host=h.test chunked:0 1.1 a=b c;empty=;"
                        "<0123456789abcdefg>END{}"
                        "PUT origin [] [/] host=h.test:81 length:10 1.1 keep a=b c;empty=;"
                        "<helloworld>END{}");
    talk_close(&t);
    buf_free(&out);
}

static void test_answers_are_written_with_our_own_phrase(void **state) {
    (void)state;
    static const struct {
        struct answer_head head;
        bool keep_alive;
        const char *text;
    } cases[] = {
        {{.status = 200, .framing = FRAMING_LENGTH, .length = 0},
         true,
         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
        {{.status = 299, .framing = FRAMING_CLOSE},
         false,
         "HTTP/1.1 299 Unknown\r\nConnection: close\r\n\r\n"},
        {{.status = 100, .framing = FRAMING_NONE}, false, "HTTP/1.1 100 Continue\r\n\r\n"},
        {{.status = 204, .framing = FRAMING_NONE}, true, "HTTP/1.1 204 No Content\r\n\r\n"},
        {{.status = 304, .framing = FRAMING_NONE, .has_length = true, .length = 12345678901},
         true,
         "HTTP/1.1 304 Not Modified\r\nContent-Length: 12345678901\r\n\r\n"},
        {{.status = 200, .framing = FRAMING_CHUNKED},
         true,
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
        /* All that most clients print of a refusal. */
        {{.status = 403,
          .framing = FRAMING_LENGTH,
          .fields = {.n = 1, .at = {{VIEW(REFUSAL_FIELD), VIEW("exeat: No (never)")}}}},
         true,
         "HTTP/1.1 403 exeat: No (never)\r\nexeat-refusal: exeat: No (never)\r\n"
         "Content-Length: 0\r\n\r\n"},
    };
    struct buf out;
    buf_init(&out, 65536);
    for (size_t i = 0; i < COUNT(cases); i++) {
        buf_reset(&out);
        http1_write_answer(&out, &cases[i].head, cases[i].keep_alive);
        buf_put_u8(&out, 0);
        assert_string_equal((const char *)buf_view(&out).p, cases[i].text);
    }
    buf_free(&out);
}

static void test_writers_write_nothing_that_breaks_the_form(void **state) {
    (void)state;
    static const struct {
        const char *method, *target, *host, *name, *value;
    } cases[] = {
        {"GE T", "/", "h", "a", "b"},        {"GET", "/ x", "h", "a", "b"},
        {"GET", "/", "h\r\nX: y", "a", "b"}, {"GET", "/", "h", "a b", "b"},
        {"GET", "/", "h", "A", "b"},         {"GET", "/", "h", "a", "b\r\nx: y"},
        {"GET", "/", "h", "a", "b\n"},       {"GET", "", "h", "a", "b"},
        {"GET", "/#", "h", "a", "b"},        {"GET", "/", "", "a", "b"},
    };
    struct buf out;
    buf_init(&out, 65536);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fields fields = {.n = 0};
        assert_int_equal(fields_add(&fields, view_str(cases[i].name), view_str(cases[i].value)), 0);
        buf_reset(&out);
        http1_write_request(&out, view_str(cases[i].method), view_str(cases[i].target),
                            view_str(cases[i].host), &fields, FRAMING_NONE, 0, true);
        assert_false(buf_ok(&out));
    }
    /* A refusal's line stands in the status line as well. */
    struct answer_head refusal = {
        .status = 403,
        .framing = FRAMING_LENGTH,
        .fields = {.n = 1, .at = {{VIEW(REFUSAL_FIELD), VIEW("No\r\nset-cookie: a=b")}}}};
    buf_reset(&out);
    http1_write_answer(&out, &refusal, true);
    assert_false(buf_ok(&out));
    buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writers_write_what_the_parser_reads_back),
        cmocka_unit_test(test_answers_are_written_with_our_own_phrase),
        cmocka_unit_test(test_writers_write_nothing_that_breaks_the_form),
    };
    return cmocka_run_group_tests(tests, limits_setup, NULL);
}

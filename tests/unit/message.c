/*
 * Records: what is written is read back, and a hostile writer's record is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "http/message.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct buf out;

static struct request_head request(void) {
    return (struct request_head){.method = VIEW("POST"),
                                 .form = FORM_ORIGIN,
                                 .host = VIEW("api.allowed.test"),
                                 .has_host = true,
                                 .target = VIEW("/v1/x?y=z"),
                                 .minor = 1,
                                 .framing = FRAMING_LENGTH,
                                 .length = 5,
                                 .expect_continue = true,
                                 .keep_alive = true};
}

static struct answer_head answer(void) {
    return (struct answer_head){
        .status = 200, .minor = 1, .framing = FRAMING_LENGTH, .length = 5, .keep_alive = true};
}

static void add(struct fields *f, const char *name, const char *value) {
    assert_int_equal(fields_add(f, view_str(name), view_str(value)), 0);
}

static int read_request(const struct request_head *h, struct request_head *back) {
    buf_reset(&out);
    request_write(h, &out);
    assert_true(buf_ok(&out));
    struct reader r = reader_of(buf_view(&out));
    int err = request_read(&r, back);
    assert_true(err == ERR_BAD || read_done(&r));
    return err;
}

static int read_answer(const struct answer_head *h, struct answer_head *back) {
    buf_reset(&out);
    answer_write(h, &out);
    assert_true(buf_ok(&out));
    struct reader r = reader_of(buf_view(&out));
    int err = answer_read(&r, back);
    assert_true(err == ERR_BAD || read_done(&r));
    return err;
}

static void test_fields_are_found_and_removed_by_exact_name(void **state) {
    (void)state;
    struct fields f = {.n = 0};
    struct view value = VIEW("untouched");
    add(&f, "a", "1");
    add(&f, "b", "2");
    add(&f, "a", "3");
    assert_int_equal(fields_find(&f, VIEW("a"), &value), 2);
    assert_true(view_equal(value, VIEW("1")));
    assert_int_equal(fields_find(&f, VIEW("c"), &value), 0);
    assert_true(view_equal(value, VIEW("1")));
    assert_int_equal(fields_find(&f, VIEW("b"), NULL), 1);
    assert_int_equal(fields_remove(&f, VIEW("a")), 2);
    assert_int_equal(f.n, 1);
    assert_true(view_equal(f.at[0].name, VIEW("b")));
    assert_int_equal(fields_remove(&f, VIEW("a")), 0);
    add(&f, "c", "4");
    add(&f, "d", "5");
    add(&f, "c", "6");
    const struct view names[] = {VIEW("b"), VIEW("cc"), VIEW("c")};
    assert_int_equal(fields_remove_any(&f, names, 3), 3);
    assert_int_equal(f.n, 1);
    assert_true(view_equal(f.at[0].name, VIEW("d")));
    assert_int_equal(fields_remove_any(&f, names, 0), 0);
}

static void test_there_is_room_for_so_many_fields_and_no_more(void **state) {
    (void)state;
    struct fields f = {.n = 0};
    for (int i = 0; i < FIELDS_MAX; i++)
        add(&f, "a", "1");
    assert_int_equal(fields_add(&f, VIEW("a"), VIEW("1")), ERR_LIMIT);
}

static void test_a_request_comes_back_as_it_was(void **state) {
    (void)state;
    struct request_head h = request(), back;
    add(&h.fields, "accept", "a\t\xff b");
    add(&h.fields, "accept", "");
    add(&h.fields, "authorization", "Bearer x");
    h.upgrade = true;
    assert_int_equal(read_request(&h, &back), 0);
    assert_true(view_equal(back.method, h.method));
    assert_int_equal(back.form, h.form);
    assert_true(view_equal(back.host, h.host));
    assert_true(view_equal(back.target, h.target));
    assert_true(back.has_host && back.expect_continue && back.keep_alive && back.upgrade);
    assert_false(back.https);
    assert_int_equal(back.minor, 1);
    assert_int_equal(back.framing, FRAMING_LENGTH);
    assert_int_equal(back.length, 5);
    assert_int_equal(back.fields.n, 3);
    assert_true(view_equal(back.fields.at[0].value, VIEW("a\t\xff b")));
    assert_true(view_equal(back.fields.at[2].name, VIEW("authorization")));
}

static void test_an_answer_comes_back_as_it_was(void **state) {
    (void)state;
    struct answer_head h = answer(), back;
    add(&h.fields, "proxy-authenticate", "Basic realm=\"x\"");
    add(&h.fields, "set-cookie", "a=b");
    add(&h.fields, "set-cookie", "c=d");
    assert_int_equal(read_answer(&h, &back), 0);
    assert_int_equal(back.status, 200);
    assert_int_equal(back.minor, 1);
    assert_int_equal(back.framing, FRAMING_LENGTH);
    assert_int_equal(back.length, 5);
    assert_true(back.keep_alive);
    assert_false(back.has_length);
    assert_int_equal(fields_find(&back.fields, VIEW("set-cookie"), NULL), 2);
    struct answer_head head = {.status = 304, .minor = 1, .has_length = true, .length = 7};
    assert_int_equal(read_answer(&head, &back), 0);
    assert_true(back.has_length);
    assert_int_equal(back.length, 7);
}

static void test_a_copy_has_the_facts_and_the_fields_that_are_there(void **state) {
    (void)state;
    struct answer_head h = answer(), copy = answer();
    add(&h.fields, "etag", "x");
    add(&h.fields, "set-cookie", "a=b");
    h.status = 404;
    h.keep_alive = false;
    for (int i = 0; i < 5; i++)
        add(&copy.fields, "old", "1");
    answer_copy(&h, &copy);
    assert_int_equal(copy.status, 404);
    assert_false(copy.keep_alive);
    assert_int_equal(copy.length, h.length);
    assert_int_equal(copy.fields.n, h.fields.n);
    for (size_t i = 0; i < h.fields.n; i++)
        assert_true(view_equal(copy.fields.at[i].value, h.fields.at[i].value));
    assert_int_equal(fields_remove(&copy.fields, VIEW("etag")), 1);
    assert_int_equal(fields_find(&h.fields, VIEW("etag"), NULL), 1);
}

static void test_every_cut_record_is_refused(void **state) {
    (void)state;
    struct request_head h = request(), back;
    struct answer_head a = answer(), answer_back;
    add(&h.fields, "x", "y");
    add(&a.fields, "x", "y");
    buf_reset(&out);
    request_write(&h, &out);
    for (size_t n = 0; n < buf_len(&out); n++) {
        struct reader r = reader_of(view_head(buf_view(&out), n));
        assert_int_equal(request_read(&r, &back), ERR_BAD);
    }
    buf_reset(&out);
    answer_write(&a, &out);
    for (size_t n = 0; n < buf_len(&out); n++) {
        struct reader r = reader_of(view_head(buf_view(&out), n));
        assert_int_equal(answer_read(&r, &answer_back), ERR_BAD);
    }
}

static void test_fields_that_would_be_framing_on_the_wire_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *name, *value;
        bool in_requests, in_answers;
    } cases[] = {
        {"x", "y", true, true},
        {"host", "evil.test", false, false},
        {"content-length", "5", false, false},
        {"transfer-encoding", "chunked", false, false},
        {"connection", "close", false, false},
        {"keep-alive", "x", false, false},
        {"proxy-connection", "x", false, false},
        {"te", "trailers", false, false},
        {"trailer", "x", false, false},
        {"upgrade", "h2c", false, false},
        {"http2-settings", "x", false, false},
        {"proxy", "http://evil.test", false, false},
        {"expect", "100-continue", false, false},
        {"content_length", "5", false, false},
        {"transfer_encoding", "chunked", false, false},
        {"proxy-authorization", "Basic eA==", false, false},
        {"proxy-authenticate", "Basic", false, true},
        {"X", "y", false, false},
        {"", "y", false, false},
        {"a b", "y", false, false},
        {"a:", "y", false, false},
        {"a\x80", "y", false, false},
        {"x", "a\nb", false, false},
        {"x", "a\rb", false, false},
        {"x", "a\x01", false, false},
        {"x", "\x7f", false, false},
        {"x", " a", false, false},
        {"x", "a\t", false, false},
        {"x", "a b", true, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct request_head h = request(), back;
        struct answer_head a = answer(), answer_back;
        add(&h.fields, cases[i].name, cases[i].value);
        add(&a.fields, cases[i].name, cases[i].value);
        if ((read_request(&h, &back) == 0) != cases[i].in_requests ||
            (read_answer(&a, &answer_back) == 0) != cases[i].in_answers)
            fail_msg("case %zu: %s: %s", i, cases[i].name, cases[i].value);
    }
}

static void test_a_nul_in_a_value_is_refused(void **state) {
    (void)state;
    struct request_head h = request(), back;
    h.fields.at[h.fields.n++] = (struct field){VIEW("x"), VIEW("a\0b")};
    assert_int_equal(read_request(&h, &back), ERR_BAD);
}

static void test_hd_01_two_credentials_of_one_name_are_no_record(void **state) {
    (void)state;
    struct request_head h = request(), back;
    add(&h.fields, "authorization", "Bearer a");
    add(&h.fields, "authorization", "Bearer b");
    assert_int_equal(read_request(&h, &back), ERR_BAD);
}

static void test_requests_that_contradict_themselves_are_refused(void **state) {
    (void)state;
    const struct request_head good = request();
    struct request_head cases[22], back;
    size_t n = 0;
#define BUT(member, value)                                                                         \
    do {                                                                                           \
        cases[n] = good;                                                                           \
        cases[n].member = (value);                                                                 \
        n++;                                                                                       \
    } while (0)
    BUT(method, VIEW(""));
    BUT(method, VIEW("GE T"));
    BUT(method, VIEW("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG"));
    BUT(method, VIEW("CONNECT"));
    BUT(form, (enum form)9);
    BUT(form, FORM_AUTHORITY);
    BUT(form, FORM_ASTERISK);
    BUT(form, FORM_ABSOLUTE);
    BUT(https, true);
    BUT(authority, VIEW("evil.test"));
    BUT(host, VIEW(""));
    BUT(host, VIEW("a b"));
    BUT(host, VIEW("a@b"));
    BUT(has_host, false);
    BUT(target, VIEW(""));
    BUT(target, VIEW("x"));
    BUT(target, VIEW("/ HTTP/1.1\r\nX: y"));
    BUT(target, VIEW("/#"));
    BUT(minor, 2);
    BUT(minor, 0); /* with keep-alive */
    BUT(framing, FRAMING_CLOSE);
    BUT(framing, FRAMING_NONE); /* with a length */
#undef BUT
    assert_int_equal(n, COUNT(cases));
    for (size_t i = 0; i < n; i++)
        if (read_request(&cases[i], &back) != ERR_BAD)
            fail_msg("case %zu", i);
}

static void test_answers_that_contradict_themselves_are_refused(void **state) {
    (void)state;
    static const struct answer_head cases[] = {
        {.status = 99, .minor = 1},
        {.status = 600, .minor = 1},
        {.status = 101, .minor = 1},
        {.status = 200, .minor = 2},
        {.status = 200, .framing = (enum framing)4},
        {.status = 200, .framing = FRAMING_CHUNKED, .length = 1},
        {.status = 200, .framing = FRAMING_NONE, .length = 1},
        {.status = 200, .framing = FRAMING_LENGTH, .length = UINT64_MAX},
        {.status = 200, .framing = FRAMING_LENGTH, .length = 1, .has_length = true},
        {.status = 100, .framing = FRAMING_LENGTH, .length = 1},
        {.status = 100, .has_length = true, .length = 1},
        {.status = 204, .framing = FRAMING_CHUNKED},
        {.status = 304, .framing = FRAMING_CLOSE},
    };
    struct answer_head back;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (read_answer(&cases[i], &back) != ERR_BAD)
            fail_msg("case %zu", i);
}

static void test_unknown_flags_are_refused(void **state) {
    (void)state;
    struct request_head h = request(), back;
    struct answer_head a = answer(), answer_back;
    for (int bit = 0; bit < 8; bit++) {
        buf_reset(&out);
        answer_write(&a, &out);
        out.p[out.pos + 4] = (uint8_t)(1 << bit);
        struct reader r = reader_of(buf_view(&out));
        assert_int_equal(answer_read(&r, &answer_back), bit == 3 ? 0 : ERR_BAD);
        buf_reset(&out);
        request_write(&h, &out);
        out.p[out.pos + 3] |= (uint8_t)(1 << bit);
        r = reader_of(buf_view(&out));
        assert_int_equal(request_read(&r, &back), (bit >= 1 && bit <= 4) || bit == 6 ? 0 : ERR_BAD);
    }
}

static void test_more_fields_than_there_is_room_for_are_refused(void **state) {
    (void)state;
    struct answer_head h = answer(), back;
    buf_reset(&out);
    answer_write(&h, &out);
    struct view bytes = buf_view(&out);
    uint8_t *count = out.p + out.pos + bytes.n - 2;
    count[0] = 1;
    count[1] = 1; /* 257 */
    for (int i = 0; i < 257; i++) {
        buf_put_block(&out, VIEW("a"));
        buf_put_block(&out, VIEW("b"));
    }
    struct reader r = reader_of(buf_view(&out));
    assert_int_equal(answer_read(&r, &back), ERR_BAD);
}

static int setup(void **state) {
    (void)state;
    buf_init(&out, 1 << 20);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    buf_free(&out);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_are_found_and_removed_by_exact_name),
        cmocka_unit_test(test_there_is_room_for_so_many_fields_and_no_more),
        cmocka_unit_test(test_a_request_comes_back_as_it_was),
        cmocka_unit_test(test_an_answer_comes_back_as_it_was),
        cmocka_unit_test(test_a_copy_has_the_facts_and_the_fields_that_are_there),
        cmocka_unit_test(test_every_cut_record_is_refused),
        cmocka_unit_test(test_fields_that_would_be_framing_on_the_wire_are_refused),
        cmocka_unit_test(test_a_nul_in_a_value_is_refused),
        cmocka_unit_test(test_hd_01_two_credentials_of_one_name_are_no_record),
        cmocka_unit_test(test_requests_that_contradict_themselves_are_refused),
        cmocka_unit_test(test_answers_that_contradict_themselves_are_refused),
        cmocka_unit_test(test_unknown_flags_are_refused),
        cmocka_unit_test(test_more_fields_than_there_is_room_for_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

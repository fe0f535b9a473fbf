#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "cli/json_scan.h"
#include "cli/list.h"

#include <string.h>

static void members_are_found_whatever_stands_around_them(void **state) {
    static const struct {
        const char *object, *name, *value; /* NULL: not found */
    } cases[] = {
        {"{\"a\":1}", "a", "1"},
        {"{ \"a\" : 1 , \"b\" : [1,{\"a\":2}] , \"c\" : \"x\" }", "c", "\"x\""},
        {"{\"b\":{\"a\":\"}\"},\"a\":true}", "a", "true"},
        {"{\"b\":\"a\\\"\",\"a\":{}}", "a", "{}"},
        {"{\"a\":[]}", "a", "[]"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "a", "3"},
        {"{\"a\":1,\"a\":", "a", "1"},
        {"{\"a\":1}", "b", NULL},
        {"{}", "a", NULL},
        {"[\"a\"]", "a", NULL},
        {"", "a", NULL},
        {"{\"a\"", "a", NULL},
        {"{\"a\":", "a", NULL},
        {"{\"a\":\"", "a", NULL},
        {"{\"a\":[", "a", NULL},
        {"{\"a", "a", NULL},
        {"{,}", "a", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct view value;
        bool found = json_member(view_str(cases[i].object), cases[i].name, &value);
        assert_int_equal(found, cases[i].value != NULL);
        if (found)
            assert_true(view_equal(value, view_str(cases[i].value)));
    }
}

static void elements_are_walked(void **state) {
    static const char *const want[] = {"1", "\"a,]\"", "[2,3]", "{\"x\":[4]}"};
    struct view rest = json_elements(VIEW("[1, \"a,]\",[2,3] ,{\"x\":[4]}]")), element;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_true(json_element(&rest, &element));
        assert_true(view_equal(element, view_str(want[i])));
    }
    assert_false(json_element(&rest, &element));
    rest = json_elements(VIEW("[]"));
    assert_false(json_element(&rest, &element));
    assert_true(view_is_empty(json_elements(VIEW("[1"))));
    assert_true(view_is_empty(json_elements(VIEW("{}"))));
}

static void a_string_comes_back_as_it_was_written(void **state) {
    static const uint8_t bytes[] = "a\"b\\c\n\x01\x7f<\xc3\xa9";
    struct buf json, text;
    (void)state;
    buf_init(&json, 256);
    buf_init(&text, 256);
    json_put_string(&json, view_of(bytes, sizeof bytes - 1));
    json_text(buf_view(&json), &text);
    assert_true(view_equal(buf_view(&text), view_of(bytes, sizeof bytes - 1)));
    buf_free(&json);
    buf_free(&text);
}

static void a_list_is_a_table_without_control_characters(void **state) {
    static const struct list_column columns[] = {
        {"NAME", "name", LIST_TEXT}, {"SINCE", "t", LIST_TIME}, {"ON", "on", LIST_YES_NO},
        {"WORDS", "w", LIST_WORDS},  {NULL, NULL, LIST_TEXT},
    };
    struct buf out;
    (void)state;
    buf_init(&out, 4096);
    list_write(VIEW("[{\"name\":\"a\\u001b[1m\",\"t\":86400,\"on\":true,\"w\":[\"x\",\"y\"]},"
                    "{\"name\":\"bb\",\"on\":false,\"w\":[]}]"),
               columns, &out);
    const char *want = "NAME   SINCE                 ON   WORDS\n"
                       "a?[1m  1970-01-02T00:00:00Z  yes  x y\n"
                       "bb                           no   \n";
    assert_true(view_equal(buf_view(&out), view_str(want)));
    buf_reset(&out);
    buf_put_str(&out, "\n");
    list_put_text(VIEW("\"a\\u001b]0;x\\u0007\\u000ab \\\"c\\\"\""), &out);
    assert_true(view_equal(buf_view(&out), VIEW("\na?]0;x??b \"c\"")));
    buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_whatever_stands_around_them),
        cmocka_unit_test(elements_are_walked),
        cmocka_unit_test(a_string_comes_back_as_it_was_written),
        cmocka_unit_test(a_list_is_a_table_without_control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

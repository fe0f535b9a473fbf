#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/json_form.h"
#include "policy/json_place.h"
#include "policy/layout.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct policy_errors errors;

static struct buf must(int (*convert)(struct view, const char *, struct buf *,
                                      struct policy_errors *),
                       struct view text) {
    struct buf out;
    errors_reset(&errors);
    buf_init(&out, JSON_FORM_MAX);
    if (convert(text, "policy", &out, &errors) != 0)
        fail_msg("%u:%u: %s\n%.*s", errors.at[0].at.line, errors.at[0].at.column, errors.at[0].text,
                 VIEW_ARG(text));
    return out;
}

/* Text to JSON to text is what `fmt` makes of the text; and the JSON is its own canonical form. */
static void check_round(const char *text) {
    struct buf json = must(json_form_write, view_str(text));
    struct buf back = must(json_form_read, buf_view(&json));
    struct buf formatted = must(policy_format, view_str(text));
    if (!view_equal(buf_view(&back), buf_view(&formatted)))
        fail_msg("is:\n%.*s\nshould be:\n%.*s\nJSON:\n%.*s", VIEW_ARG(buf_view(&back)),
                 VIEW_ARG(buf_view(&formatted)), VIEW_ARG(buf_view(&json)));
    struct buf again = must(json_form_write, buf_view(&back));
    assert_true(view_equal(buf_view(&again), buf_view(&json)));
    assert_true(json_form_is(buf_view(&json)));
    assert_false(json_form_is(buf_view(&back)));
    buf_free(&json);
    buf_free(&back);
    buf_free(&formatted);
    buf_free(&again);
}

static void text_to_json_to_text_is_the_same_policy_with_its_notes(void **state) {
    static const char *const cases[] = {
        "",
        "# only a note",
        "layer vendor\n\n\n# first \nservice a { # of a\nhost a.test b.test #one\n# alone\n"
        "operation r { GET /; # root\n HEAD / } # r\n} # end\n# last",
        "sandbox s { }\nsandbox * label x y {\n# nothing\n}",
        "service a { host bücher.test [2001:db8::1]; range ::1 # grüße\noperation r { GET \"/a "
        "b;c\" /'d\" } }"
        "expect allow as s GET https://a.test/",
        "service a { host a.test; operation c { POST / { body /m in [ 'a' ,b # one\n#x\n,\"c,d\", "
        "'e\"f'\n# y\n]"
        "; query q is \"true\" }; POST /g/{id} graphql query [a, b]; POST /r jsonrpc [ping]; "
        "POST /m mcp tools/call [search] # z\n } }",
        "service a {\nhost a.test\n\ncredential k { in header x-key; for r } # k\n\noperation r { "
        "GET /x\\y }\n"
        "limit body 1K;never { * /**/z { header x matches 'a \\ b' } } }",
        "sandbox s { grant a r until 2099-01-31T12:00:00Z uses 3 note \"why: 'so'\" }",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf out;
        buf_init(&out, 1 << 20);
        errors_reset(&errors);
        /* Of those that are no policy the other tests tell. */
        if (policy_format(view_str(cases[i]), "policy", &out, &errors) == 0)
            check_round(cases[i]);
        else
            assert_true(i == 4 || i == 6);
        buf_free(&out);
    }
}

static void what_json_says_is_plain_to_machines(void **state) {
    (void)state;
    struct buf json =
        must(json_form_write,
             VIEW("service a { host a.test # one\n\nrange ::1\noperation r {\nGET / { body /m "
                  "in [b, \"c\"] } } }"));
    assert_true(view_equal(
        buf_view(&json),
        VIEW("{\"policy\": [\n"
             " {\"words\": [\"service\", \"a\"], \"block\": [\n"
             "  {\"words\": [\"host\", \"a.test\"], \"note\": \" one\"},\n"
             "  {\"space\": true, \"words\": [\"range\", \"::1\"]},\n"
             "  {\"words\": [\"operation\", \"r\"], \"block\": [\n"
             "   {\"words\": [\"GET\", \"/\"], \"block\": [\n"
             "    {\"words\": [\"body\", \"/m\", \"in\", [\"b\", {\"quoted\": \"c\"}]]}\n"
             "   ]}\n"
             "  ]}\n"
             " ]}\n"
             "]}\n")));
    buf_free(&json);
}

struct fault {
    const char *json;
    unsigned line, column;
    const char *text;
};

static const struct fault faults[] = {
    {"{", 1, 1, "JSON: "},
    {"{\"policy\": [],\n \"policy\": []}", 2, 9, "JSON: duplicate"},
    {"{}", 1, 1, "expected {\"policy\": [...]}"},
    {"{\"polcy\": []}", 1, 1, "did you mean 'policy'?"},
    {"{\"policy\": {}}", 1, 1, "expected {\"policy\": [...]}"},
    {"{\"policy\": [\n 7]}", 2, 2, "/policy/0: expected a statement"},
    {"{\"policy\": [{}]}", 1, 13, "/policy/0: a statement has words"},
    {"{\"policy\": [{\"words\": []}]}", 1, 23, "/policy/0/words: expected an array of words"},
    {"{\"policy\": [{\"words\": [\"a b\"]}]}", 1, 24, "/policy/0/words/0: this is no word"},
    {"{\"policy\": [{\"words\": [\"a\", \"b;c\"]}]}", 1, 29, "/policy/0/words/1: this is no word"},
    {"{\"policy\": [{\"words\": [\"a\\nb\"]}]}", 1, 24, "no word"},
    {"{\"policy\": [{\"words\": [\"#a\"]}]}", 1, 24, "no word"},
    {"{\"policy\": [{\"words\": [\"a{\"]}]}", 1, 24, "no word"},
    {"{\"policy\": [{\"words\": [\"\\\"a\\\"\"]}]}", 1, 24, "no word"},
    {"{\"policy\": [{\"words\": [{\"quoted\": \"a\\u0000b\"}]}]}", 1, 0, "JSON: "},
    {"{\"policy\": [{\"words\": [{\"quoted\": \"a\\nb\"}]}]}", 1, 24, "a quoted word"},
    {"{\"policy\": [{\"words\": [{\"quoted\": \"a'b\\\"\"}]}]}", 1, 24, "both kinds of quotes"},
    {"{\"policy\": [{\"words\": [{\"quoted\": \"\"}]}]}", 1, 24, "a quoted word"},
    {"{\"policy\": [{\"words\": [{\"qouted\": \"x\"}]}]}", 1, 24, "did you mean 'quoted'?"},
    {"{\"policy\": [{\"words\": [{\"word\": \"x\", \"note\": \"y\"}]}]}", 1, 24,
     "'note' is no member"},
    {"{\"policy\": [{\"words\": [true]}]}", 1, 24, "expected a word"},
    {"{\"policy\": [{\"words\": [\"a\", [\"b\"]]}]}", 1, 29, "no list stands here"},
    {"{\"policy\": [{\"words\": [\"in\", \"[b]\"]}]}", 1, 30, "a list is written as an array"},
    {"{\"policy\": [{\"words\": [\"in\", []]}]}", 1, 30, "an empty list"},
    {"{\"policy\": [{\"words\": [\"in\", [\"a,b\"]]}]}", 1, 31, "/words/1/0: this is no word"},
    {"{\"policy\": [{\"words\": [\"in\", [[\"a\"]]]}]}", 1, 31, "no list stands here"},
    {"{\"policy\": [{\"note\": \"a\\nservice\"}]}", 1, 13, "a note is a text without line ends"},
    {"{\"policy\": [{\"words\": [\"a\"], \"note\": 7}]}", 1, 13, "a note is a text"},
    {"{\"policy\": [{\"words\": [\"a\"], \"block_note\": \"x\"}]}", 1, 13, "a statement has words"},
    {"{\"policy\": [{\"words\": [\"a\"], \"space\": 1}]}", 1, 13, "a statement has words"},
    {"{\"policy\": [{\"words\": [\"a\"], \"block\": 1}]}", 1, 39,
     "/policy/0/block: expected an array"},
    {"{\"policy\": [{\"words\": [\"a\"], \"block\": [\n  {\"words\": [\"b\"]}, {\"words\": [\"c\", "
     "\"d d\"]}]}]}",
     2, 37, "/policy/0/block/1/words/1: this is no word"},
};

static void errors_of_the_form_name_place_and_pointer(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(faults); i++) {
        const struct fault *f = &faults[i];
        struct buf out;
        errors_reset(&errors);
        buf_init(&out, 10000);
        if (json_form_read(view_str(f->json), "policy", &out, &errors) != ERR_BAD)
            fail_msg("reads: %s", f->json);
        const struct policy_error *e = &errors.at[0];
        if (!strstr(e->text, f->text) || e->at.line != f->line ||
            (f->column && e->at.column != f->column && !strstr(e->text, "JSON: ")))
            fail_msg("%s\n%u:%u: %s, expected %u:%u: %s", f->json, e->at.line, e->at.column,
                     e->text, f->line, f->column, f->text);
        buf_free(&out);
    }
}

static void every_wrong_statement_is_reported(void **state) {
    struct buf out;
    (void)state;
    errors_reset(&errors);
    buf_init(&out, 10000);
    assert_int_equal(
        json_form_read(VIEW("{\"policy\": [{}, {\"words\": [\"a\"]}, {\"words\": [\"b b\"]}, "
                            "{\"note\": 1}]}"),
                       "policy", &out, &errors),
        ERR_BAD);
    assert_int_equal(errors.total, 3);
    assert_int_equal(strncmp(errors.at[1].text, "/policy/2/words/0", 17), 0);
    buf_free(&out);
}

static void blocks_nest_no_deeper_than_any_policy(void **state) {
    struct buf json, out;
    (void)state;
    errors_reset(&errors);
    buf_init(&json, 100000);
    buf_init(&out, 100000);
    buf_put_str(&json, "{\"policy\": [");
    for (int i = 0; i < 40; i++)
        buf_put_str(&json, "{\"words\": [\"a\"], \"block\": [");
    for (int i = 0; i < 40; i++)
        buf_put_str(&json, "]}");
    buf_put_str(&json, "]}");
    assert_int_equal(json_form_read(buf_view(&json), "policy", &out, &errors), ERR_BAD);
    assert_non_null(strstr(errors.at[0].text, "within at most 16"));
    buf_free(&json);
    buf_free(&out);
}

/* ---- errors of the language ---- */

static void errors_of_the_text_are_placed_in_the_json(void **state) {
    static const struct fault cases[] = {
        {"{\"policy\": [\n {\"words\": [\"service\", \"a\"], \"block\": [\n  {\"note\": \" "
         "\\\"x\\\"\"},\n  "
         "{\"words\": [\"host\", \"a.test\", \"b.*\"]}]}]}",
         4, 32, "/policy/0/block/1/words/2: 'b.*' is no host"},
        {"{\"policy\": [{\"block\": [{\"words\": [\"hots\", \"a.test\"]}],\n \"words\": "
         "[\"service\", \"a\"]}]}",
         1, 35, "/policy/0/block/0/words/0: 'hots' is no word of a service, did you mean 'host'?"},
        {"{\"policy\": [{\"words\": [\"servce\"]}]}", 1, 24,
         "/policy/0/words/0: 'servce' is no word"},
        {"{\"policy\": [{\"words\": [\"service\", \"a\"], \"block\": [{\"words\": [\"operation\", "
         "\"r\"], "
         "\"block\": [{\"words\": [\"GET\", \"/\"],\n\"block\": [{\"words\": [\"body\", \"/m\", "
         "\"in\", "
         "[\"a\", {\"quoted\": \"b\"}, \"a\"]]}]}]}]}]}",
         2, 65, "/policy/0/block/0/block/0/block/0/words/3/2: 'a' twice in a list"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct view json = view_str(cases[i].json);
        struct buf text = must(json_form_read, json);
        assert_int_equal(layout_check(buf_view(&text), "policy", &errors), ERR_BAD);
        json_form_place(json, "policy", &errors);
        const struct policy_error *e = &errors.at[0];
        if (!strstr(e->text, cases[i].text) || e->at.line != cases[i].line ||
            e->at.column != cases[i].column)
            fail_msg("%u:%u: %s", e->at.line, e->at.column, e->text);
        buf_free(&text);
    }
}

static void comments_that_are_no_utf_8_cannot_be_json(void **state) {
    struct buf out;
    (void)state;
    errors_reset(&errors);
    buf_init(&out, 1000);
    assert_int_equal(json_form_write(VIEW("sandbox s { }\n# \xff\n"), "policy", &out, &errors),
                     ERR_BAD);
    assert_int_equal(errors.at[0].at.line, 2);
    assert_int_equal(errors.at[0].at.column, 3);
    assert_int_equal(buf_len(&out), 0);
    buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_to_json_to_text_is_the_same_policy_with_its_notes),
        cmocka_unit_test(what_json_says_is_plain_to_machines),
        cmocka_unit_test(errors_of_the_form_name_place_and_pointer),
        cmocka_unit_test(every_wrong_statement_is_reported),
        cmocka_unit_test(blocks_nest_no_deeper_than_any_policy),
        cmocka_unit_test(errors_of_the_text_are_placed_in_the_json),
        cmocka_unit_test(comments_that_are_no_utf_8_cannot_be_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/graphql.h"

#include <string.h>

struct example {
    struct view document;
    const char *operation; /* NULL: none is named */
    const char *want;      /* kind and root fields; NULL: not certain */
};

static void render(struct view document, const char *operation, char *out, size_t size) {
    static const char *const kinds[] = {"query", "mutation", "subscription"};
    struct view name = view_str(operation);
    struct graphql *g = NULL;
    struct buf b;
    out[0] = 0;
    int err = graphql_read(document, operation ? &name : NULL, &g);
    if (err != 0) {
        assert_true(err == ERR_BAD || err == ERR_LIMIT);
        return;
    }
    struct graphql_facts f = graphql_facts(g);
    buf_init(&b, size - 1);
    buf_put_str(&b, kinds[f.kind]);
    for (size_t i = 0; i < f.n_fields; i++)
        buf_printf(&b, " %.*s", VIEW_ARG(f.fields[i]));
    assert_int_equal(view_cstr(buf_view(&b), out, size), 0);
    buf_free(&b);
    graphql_free(g);
}

static void check(const struct example *cases, size_t n) {
    char got[512];
    for (size_t i = 0; i < n; i++) {
        const char *want = cases[i].want ? cases[i].want : "";
        render(cases[i].document, cases[i].operation, got, sizeof got);
        if (strcmp(got, want) != 0)
            print_error("%.*s\n", VIEW_ARG(cases[i].document));
        assert_string_equal(got, want);
    }
}

#define DOC(text) VIEW(text)
#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))

static void AP_01_kind_and_root_fields_are_those_of_the_selected_operation(void **state) {
    static const struct example cases[] = {
        {DOC("{a}"), NULL, "query a"},
        {DOC("query{a b}"), NULL, "query a b"},
        {DOC("mutation M($x: Int = 5) @d(a: 1) { create(x: $x) { id } }"), NULL, "mutation create"},
        {DOC("mutation M{a}"), "M", "mutation a"},
        {DOC("subscription{a}"), NULL, "subscription a"},
        {DOC("query A{x} mutation B{y}"), "A", "query x"},
        {DOC("query A{x} mutation B{y}"), "B", "mutation y"},
        {DOC("{query mutation fragment on true}"), NULL, "query query mutation fragment on true"},
        {DOC("query query{a}"), "query", "query a"},
        {DOC("query A{x} mutation B{y}"), NULL, NULL},
        {DOC("query A{x} mutation B{y}"), "C", NULL},
        {DOC("query A{x} mutation B{y}"), "", NULL},
        {DOC("{x}"), "A", NULL},
        {DOC("{x}"), "", NULL},
        {DOC("{x} mutation B{y}"), "B", NULL},
        {DOC("{x}{y}"), NULL, NULL},
        {DOC("query A{x} mutation A{y}"), "A", NULL},
        {DOC("fragment F on T{a}"), NULL, NULL},
    };
    (void)state;
    CHECK(cases);
}

static void AP_01_aliases_and_directives_hide_no_field(void **state) {
    static const struct example cases[] = {
        {DOC("mutation{x: deleteRepo}"), NULL, "mutation deleteRepo"},
        {DOC("mutation{viewer: deleteRepo(id: \"viewer\") {viewer}}"), NULL, "mutation deleteRepo"},
        {DOC("query($no: Boolean = false){a @skip(if: true) b @include(if: $no) @x}"), NULL,
         "query a b"},
        {DOC("{a __typename}"), NULL, "query a __typename"},
    };
    (void)state;
    CHECK(cases);
}

static void AP_01_fields_of_fragments_are_root_fields(void **state) {
    static const struct example cases[] = {
        {DOC("{...F} fragment F on Query{a ...G} fragment G on Query{b}"), NULL, "query a b"},
        {DOC("fragment F on Mutation{x:deleteRepo} mutation{ok ...F @include(if:true)}"), NULL,
         "mutation ok deleteRepo"},
        {DOC("{...{a} ... on Query{b ... @x {c}} d}"), NULL, "query a b c d"},
        {DOC("{a{...F}} fragment F on T{b ...F}"), NULL, "query a"},
        {DOC("{...F ...F} fragment F on Query{a}"), NULL, "query a"},
        {DOC("{...F}"), NULL, NULL},
        {DOC("{...F} fragment F on Query{...F}"), NULL, NULL},
        {DOC("{...F} fragment F on Query{...G} fragment G on Query{a ... on Query{...F}}"), NULL,
         NULL},
        {DOC("{...F} fragment F on Query{a} fragment F on Query{b}"), NULL, NULL},
        {DOC("{...F} fragment F($x: Int) on Query{a}"), NULL, NULL},
        {DOC("{...on} fragment on on Query{a}"), NULL, NULL},
        {DOC("{...F} fragment F{a}"), NULL, NULL},
    };
    (void)state;
    CHECK(cases);
}

static void AP_01_what_is_ignored_hides_no_word(void **state) {
    static const struct example cases[] = {
        {DOC("\xef\xbb\xbf mutation{a}"), NULL, "mutation a"},
        {DOC("# query\nmutation,,{\t,a # }\r}"), NULL, "mutation a"},
        {DOC("#\rmutation{a}"), NULL, "mutation a"},
        {DOC("{a #\xef\xbb\xbf\xc3\xa9\n}"), NULL, "query a"},
        {DOC("{a}# end"), NULL, "query a"},
        {DOC("#\xe2\x80\xa8mutation{a}\n{b}"), NULL, NULL},
        {DOC("#\xc2\x85mutation{a}\n{b}"), NULL, NULL},
        {DOC("#\x0bmutation{a}\n{b}"), NULL, NULL},
        {DOC("{a\xc2\xa0"
             "b}"),
         NULL, NULL},
        {DOC("{a\x0c}"), NULL, NULL},
        {DOC("{a\0}"), NULL, NULL},
        {DOC("mut\xef\xbb\xbf"
             "ation{a}"),
         NULL, NULL},
    };
    (void)state;
    CHECK(cases);
}

static void strings_end_where_they_do(void **state) {
    static const struct example cases[] = {
        {DOC("{a(x: \"}\\\" mutation{b}\") c}"), NULL, "query a c"},
        {DOC("{a(x: \"\", y: \"\\u00e9\\n\\/\") c}"), NULL, "query a c"},
        {DOC("{a(x: \"\"\" \" } \"\" \\\"\"\" \\ # \n \"\"\") c}"), NULL, "query a c"},
        {DOC("{a(x: \"\"\"\"\"\") c}"), NULL, "query a c"},
        {DOC("{a(x: \"\"\"\\\\\"\"\") c}"), NULL, NULL},
        {DOC("{a(x: \"\n\") c}"), NULL, NULL},
        {DOC("{a(x: \"\\q\") c}"), NULL, NULL},
        {DOC("{a(x: \"\\u{41}\") c}"), NULL, NULL},
        {DOC("{a(x: \"\\u12\") c}"), NULL, NULL},
        {DOC("{a(x: \"\\"), NULL, NULL},
        {DOC("{a(x: \"b) c}"), NULL, NULL},
        {DOC("{a(x: \"\"\"b\"\") c}"), NULL, NULL},
    };
    (void)state;
    CHECK(cases);
}

static void the_whole_grammar_is_followed(void **state) {
    static const struct example cases[] = {
        {DOC("{a(b: [1, -2.5e-3, $x, {y: {}, z: [E, null, true]}], c: 0)}"), NULL, "query a"},
        {DOC("query Q($a: [Int!]! = [1] @d, $b: T) {a}"), NULL, "query a"},
        {DOC("{a{b{c:d(e:1)@f{g}}}}"), NULL, "query a"},
        {DOC(""), NULL, NULL},
        {DOC("{}"), NULL, NULL},
        {DOC("{a"), NULL, NULL},
        {DOC("{a}}"), NULL, NULL},
        {DOC("{a()}"), NULL, NULL},
        {DOC("{a(b)}"), NULL, NULL},
        {DOC("{a(b:)}"), NULL, NULL},
        {DOC("{a{}}"), NULL, NULL},
        {DOC("{a:}"), NULL, NULL},
        {DOC("{a:b:c}"), NULL, NULL},
        {DOC("{a .. b}"), NULL, NULL},
        {DOC("{a(b:01)}"), NULL, NULL},
        {DOC("{a(b:1x)}"), NULL, NULL},
        {DOC("{a(b:1.)}"), NULL, NULL},
        {DOC("{a(b:-)}"), NULL, NULL},
        {DOC("{a(b:1e)}"), NULL, NULL},
        {DOC("query(){a}"), NULL, NULL},
        {DOC("query($a){a}"), NULL, NULL},
        {DOC("query Q"), NULL, NULL},
        {DOC("Query{a}"), NULL, NULL},
        {DOC("query{a} type T{b:Int}"), NULL, NULL},
        {DOC("extend type T{a} {a}"), NULL, NULL},
        {DOC("\"about\" query{a}"), NULL, NULL},
        {DOC("{a ?}"), NULL, NULL},
    };
    (void)state;
    CHECK(cases);
}

/* before, n times what, after */
static void check_many(const char *before, const char *what, size_t n, const char *after,
                       bool good) {
    struct graphql *g = NULL;
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_put_str(&b, before);
    for (size_t i = 0; i < n; i++)
        buf_put_str(&b, what);
    buf_put_str(&b, after);
    assert_true(buf_ok(&b));
    assert_int_equal(graphql_read(buf_view(&b), NULL, &g), good ? 0 : ERR_LIMIT);
    graphql_free(g);
    buf_free(&b);
}

static void everything_has_an_end(void **state) {
    (void)state;
    check_many("{a(b:[", "1 ", GRAPHQL_TOKENS_MAX - 10, "])}", true);
    check_many("{a(b:[", "1 ", GRAPHQL_TOKENS_MAX, "])}", false);
    check_many("{", "a ", GRAPHQL_ROOTS_MAX, "}", true);
    check_many("{", "a ", GRAPHQL_ROOTS_MAX + 1, "}", false);
    check_many("", "{a", GRAPHQL_DEPTH_MAX + 1, "", false);
    check_many("{a(b:", "[", GRAPHQL_DEPTH_MAX, "", false);
    check_many("{a(b:", "{c:", GRAPHQL_DEPTH_MAX, "", false);
    check_many("query($a:", "[", GRAPHQL_DEPTH_MAX + 1, "", false);
    check_many("{", "...{", GRAPHQL_DEPTH_MAX, "", false);
    check_many("", "fragment F on T{a}", GRAPHQL_DEFINITIONS_MAX + 1, "", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AP_01_kind_and_root_fields_are_those_of_the_selected_operation),
        cmocka_unit_test(AP_01_aliases_and_directives_hide_no_field),
        cmocka_unit_test(AP_01_fields_of_fragments_are_root_fields),
        cmocka_unit_test(AP_01_what_is_ignored_hides_no_word),
        cmocka_unit_test(strings_end_where_they_do),
        cmocka_unit_test(the_whole_grammar_is_followed),
        cmocka_unit_test(everything_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

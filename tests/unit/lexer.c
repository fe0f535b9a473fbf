#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/lexer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct policy_errors errors;

static int clear(void **state) {
    (void)state;
    memset(&errors, 0, sizeof errors);
    return 0;
}

/* Tokens in one line: words as they are, quoted ones in <>, END as ;, BAD as !. */
static const char *tokens_of(struct view text) {
    static char out[4096];
    struct lexer l;
    size_t n = 0;
    lexer_init(&l, text, "t", &errors);
    out[0] = '\0';
    while (!lexer_at(&l, TOKEN_EOF)) {
        struct token t = lexer_take(&l);
        const char *marks[] = {"", "{", "}", ";", "", "!"};
        const char *open = t.quoted ? "<" : "", *close = t.quoted ? ">" : "";
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s%.*s%s%s", n ? " " : "", open,
                              VIEW_ARG(t.text), close, marks[t.kind]);
    }
    return out;
}

struct token_case {
    const char *text, *tokens;
};

static const struct token_case token_cases[] = {
    {"", ""},
    {"a b", "a b"},
    {"a\tb  c\n", "a b c ;"},
    {"a;b", "a ; b"},
    {"a{b}c", "a { b } c"},
    {"a\r\nb", "a ; b"},
    {"# all\na # rest\n#", "; a ;"},
    {"\"a;v=1\" b", "<a;v=1> b"},
    {"\"a b\";\"{}#\"", "<a b> ; <{}#>"},
    {"/v1/**,x%2F=?&@:[]", "/v1/**,x%2F=?&@:[]"},
    {"# \xc3\xa9t\xc3\xa9\na", "; a"},
};

static void texts_become_these_tokens(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof token_cases / sizeof token_cases[0]; i++)
        assert_string_equal(tokens_of(view_str(token_cases[i].text)), token_cases[i].tokens);
    assert_int_equal(errors.total, 0);
}

struct bad_case {
    struct view text;
    uint32_t line, column;
    const char *says;
};

#define BAD(text, line, column, says)                                                              \
    { VIEW_INIT(text), line, column, says }
#define VIEW_INIT(literal)                                                                         \
    { (const uint8_t *)(literal), sizeof(literal) - 1 }

static const struct bad_case bad_cases[] = {
    BAD("a b\n c\x01", 2, 3, "byte 0x01"),
    BAD("a\0b", 1, 2, "byte 0x00"),
    BAD("caf\xc3\xa9", 1, 4, "byte 0xc3"),
    BAD("\xef\xbb\xbfstate x", 1, 1, "byte 0xef"),
    BAD("a\rb", 1, 2, "byte 0x0d"),
    BAD("a#b", 1, 2, "'#' inside a word"),
    BAD("a\"b\"", 1, 2, "'\"' inside a word"),
    BAD("\"ab", 1, 1, "not closed"),
    BAD("\"ab\nc", 1, 4, "before the end of the line"),
    BAD("\"\"", 1, 1, "an empty word"),
    BAD("\"a\"b", 1, 4, "expected a blank"),
    BAD("\"a\x1b\"", 1, 3, "byte 0x1b"),
    BAD("# a\x1b[2K\nb", 1, 4, "control character 0x1b"),
    BAD("# a\rb\n", 1, 4, "control character 0x0d"),
    BAD("# a\0b\n", 1, 4, "control character 0x00"),
    BAD("# a\xe2\x80\xae b", 1, 4, "read differently"),    /* right-to-left override */
    BAD("# a\xe2\x81\xa6 b", 1, 4, "read differently"),    /* isolate */
    BAD("# a\xe2\x80\xa8grant", 1, 4, "read differently"), /* line separator */
    BAD("# a\xc2\x85grant", 1, 4, "read differently"),     /* next line */
    BAD("# a\xc2\x9b"
        "2K",
        1, 4, "read differently"), /* C1 control sequence */
    BAD("# a\xd8\x9c b", 1, 4, "read differently"),
};

static void bytes_that_deceive_or_do_not_belong_are_errors_at_their_place(void **state) {
    for (size_t i = 0; i < sizeof bad_cases / sizeof bad_cases[0]; i++) {
        const struct bad_case *c = &bad_cases[i];
        clear(state);
        tokens_of(c->text);
        if (errors.total != 1)
            fail_msg("case %zu: %zu errors", i, errors.total);
        const struct policy_error *e = &errors.at[0];
        if (e->at.line != c->line || e->at.column != c->column || !strstr(e->text, c->says))
            fail_msg("case %zu: %u:%u: %s", i, e->at.line, e->at.column, e->text);
    }
}

static void a_text_over_the_limit_has_no_token(void **state) {
    (void)state;
    char *text = malloc(POLICY_TEXT_MAX + 1);
    memset(text, 'a', POLICY_TEXT_MAX + 1);
    assert_string_equal(tokens_of(view_of(text, POLICY_TEXT_MAX + 1)), "");
    assert_int_equal(errors.total, 1);
    free(text);
}

static void positions_count_lines_and_bytes_from_one(void **state) {
    (void)state;
    struct lexer l;
    lexer_init(&l, VIEW("a\n\n  bb \"c\"\r\n\td"), "file", &errors);
    const uint32_t expected[][2] = {{1, 1}, {1, 2}, {2, 1}, {3, 3}, {3, 6}, {3, 9}, {4, 2}, {4, 3}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct token t = lexer_take(&l);
        assert_int_equal(t.at.line, expected[i][0]);
        assert_int_equal(t.at.column, expected[i][1]);
        assert_string_equal(t.at.file, "file");
    }
}

static void names_are_short_and_plain(void **state) {
    (void)state;
    static const char *const good[] = {"a", "A-b_c.9", "7"};
    static const char *const bad[] = {"", "-a", ".a", "a/../b", "a b", "a\xc3\xa9", "a:b", "_x"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(name_is_good(view_str(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(name_is_good(view_str(bad[i])));
    char longest[POLICY_NAME_MAX + 1];
    memset(longest, 'a', sizeof longest);
    assert_true(name_is_good(view_of(longest, POLICY_NAME_MAX)));
    assert_false(name_is_good(view_of(longest, POLICY_NAME_MAX + 1)));
}

/* ---- statements ---- */

static char seen[1024];

static int read_say(void *ctx, struct lexer *l, const struct token *at) {
    (void)ctx;
    (void)at;
    struct token t;
    if (lexer_word(l, "something to say", &t) != 0)
        return ERR_BAD;
    size_t n = strlen(seen);
    snprintf(seen + n, sizeof seen - n, "%.*s ", VIEW_ARG(t.text));
    return 0;
}

static int read_inner(void *ctx, struct lexer *l, const struct token *at);

static const struct statement words[] = {
    {"say", read_say, false}, {"once", read_say, true}, {"block", read_inner, false}};

static int read_inner(void *ctx, struct lexer *l, const struct token *at) {
    (void)at;
    return statements_read(l, words, 2, "a block", ctx);
}

static void read_text(const char *text) {
    static const char name[] = "t";
    struct lexer l;
    seen[0] = '\0';
    clear(NULL);
    lexer_init(&l, view_str(text), name, &errors);
    assert_int_equal(statements_read(&l, words, 3, NULL, NULL), 0);
    errors_sort(&errors, name);
}

static void statements_end_at_newlines_semicolons_and_braces(void **state) {
    (void)state;
    read_text("say a; say b\nblock { say c }\nblock {\n say d\n\n say e; }\n;;\nblock{}\nsay f");
    assert_int_equal(errors.total, 0);
    assert_string_equal(seen, "a b c d e f ");
}

static void every_error_of_a_text_is_met_and_the_rest_is_read(void **state) {
    (void)state;
    read_text(
        "sya a\nsay\nsay b c\nsay d\n}\nblock say\nblock {\n yes\n say e\n block { say x }\n}\n"
        "once 1\nonce 2\n\"say\" x\nsay f\nblock {");
    static const struct {
        uint32_t line, column;
        const char *says;
    } expected[] = {
        {1, 1, "'sya' is no word of this file, did you mean 'say'?"},
        {2, 4, "expected something to say, not the end of the statement"},
        {3, 7, "expected the end of the statement (a new line or ';'), not 'c'"},
        {5, 1, "a '}' that closes no block"},
        {6, 7, "expected '{', not 'say'"},
        {8, 2, "'yes' is no word of a block: its words are say, once"},
        {10, 2, "'block' is no word of a block: is the '}' missing of the block opened in line 7?"},
        {13, 1, "a second 'once' in this file, the first is in line 12"},
        {14, 1, "'say' is no word of this file"},
        {16, 8, "for the block opened in line 16"},
    };
    assert_string_equal(seen, "b d e 1 f ");
    size_t n = sizeof expected / sizeof expected[0];
    for (size_t i = 0; i < n && i < errors.n; i++) {
        const struct policy_error *e = &errors.at[i];
        if (e->at.line != expected[i].line || e->at.column != expected[i].column ||
            !strstr(e->text, expected[i].says))
            fail_msg("%u:%u: %s", e->at.line, e->at.column, e->text);
    }
    assert_int_equal(errors.total, n);
}

static void errors_beyond_the_maximum_are_counted(void **state) {
    (void)state;
    char text[POLICY_ERRORS_MAX * 4 + 16] = "";
    for (int i = 0; i < POLICY_ERRORS_MAX + 3; i++)
        strcat(text, "x\n");
    read_text(text);
    assert_int_equal(errors.n, POLICY_ERRORS_MAX);
    assert_int_equal(errors.total, POLICY_ERRORS_MAX + 3);
}

/* ---- showing them ---- */

static void an_error_is_shown_with_its_line_and_a_caret(void **state) {
    (void)state;
    struct buf out;
    struct policy_error e = {{"p", 2, 3}, "wrong"};
    buf_init(&out, 4096);
    errors_show(&e, VIEW("first\n\tb\x1b\xff c\r\nthird"), &out);
    buf_put_u8(&out, 0);
    assert_string_equal((const char *)buf_view(&out).p, "p:2:3: wrong\n    \tb?? c\n    \t ^\n");
    buf_free(&out);
}

static void an_error_outside_the_text_is_shown_without_a_line(void **state) {
    (void)state;
    static const struct position places[] = {{"p", 9, 1}, {"p", 1, 99}, {"p", 0, 0}};
    for (size_t i = 0; i < 3; i++) {
        struct buf out;
        struct policy_error e = {places[i], "wrong"};
        buf_init(&out, 4096);
        errors_show(&e, VIEW("first\n"), &out);
        assert_true(view_ends(buf_view(&out), VIEW("wrong\n")));
        buf_free(&out);
    }
}

static void a_guess_is_near_or_none(void **state) {
    (void)state;
    static const struct {
        const char *word, *known, *best;
    } cases[] = {{"operatoin", "operation", "operation"},
                 {"hots", "host", "host"},
                 {"Host", "host", "host"},
                 {"credentials", "credential", "credential"},
                 {"x", "host", NULL},
                 {"xyzzy", "range", NULL},
                 {"", "host", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct guess g = guess_of(view_str(cases[i].word));
        guess_offer(&g, VIEW("completely-different"));
        guess_offer(&g, view_str(cases[i].known));
        if (cases[i].best)
            assert_non_null(strstr(guess_text(&g), cases[i].best));
        else
            assert_string_equal(guess_text(&g), "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(texts_become_these_tokens, clear),
        cmocka_unit_test_setup(bytes_that_deceive_or_do_not_belong_are_errors_at_their_place,
                               clear),
        cmocka_unit_test_setup(a_text_over_the_limit_has_no_token, clear),
        cmocka_unit_test_setup(positions_count_lines_and_bytes_from_one, clear),
        cmocka_unit_test(names_are_short_and_plain),
        cmocka_unit_test(statements_end_at_newlines_semicolons_and_braces),
        cmocka_unit_test(every_error_of_a_text_is_met_and_the_rest_is_read),
        cmocka_unit_test(errors_beyond_the_maximum_are_counted),
        cmocka_unit_test(an_error_is_shown_with_its_line_and_a_caret),
        cmocka_unit_test(an_error_outside_the_text_is_shown_without_a_line),
        cmocka_unit_test(a_guess_is_near_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

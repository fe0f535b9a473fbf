#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/layout.h"
#include "policy/lexer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct policy_errors errors;

static struct buf format(struct view text) {
    struct buf out;
    buf_init(&out, 1 << 22);
    if (policy_format(text, "policy", &out, &errors) != 0)
        fail_msg("%u: %s\n%.*s", errors.at[0].at.line, errors.at[0].text, VIEW_ARG(text));
    return out;
}

static void check(const char *text, const char *wanted) {
    struct buf out = format(view_str(text));
    if (!view_equal(buf_view(&out), view_str(wanted)))
        fail_msg("is:\n%.*s\nshould be:\n%s", VIEW_ARG(buf_view(&out)), wanted);
    struct buf again = format(buf_view(&out));
    assert_true(view_equal(buf_view(&out), buf_view(&again)));
    buf_free(&out);
    buf_free(&again);
}

static void blocks_of_the_top_level_are_open_and_short_ones_below_are_not(void **state) {
    (void)state;
    check("service   a {host\ta.test;operation read {\n\nGET /\n}}",
          "service a {\n    host a.test\n    operation read { GET / }\n}\n");
}

static void comments_stay_with_what_they_stood_at(void **state) {
    (void)state;
    check("# first\r\n\n\n\nservice a { # of a\n"
          "host a.test #one\n# alone\n operation r { GET /; # root\n HEAD / } # r\n} # end\n# last",
          "# first\n\nservice a { # of a\n    host a.test #one\n    # alone\n    operation r {\n"
          "        GET / # root\n        HEAD /\n    } # r\n} # end\n\n# last\n");
}

static void lists_stand_on_one_line_or_have_one_line_for_each_item(void **state) {
    (void)state;
    check("service a { host a.test; operation c { POST / { body /m in [ 'a' ,b\n,\"c,d\" ] } } }",
          "service a {\n    host a.test\n    operation c {\n"
          "        POST / { body /m in [\"a\", b, \"c,d\"] }\n    }\n}\n");
    check("service a { host a.test; operation c { POST / { query q in [a # one\n, b # ] two\n#x\n]"
          " # y\n } } }",
          "service a {\n    host a.test\n    operation c {\n        POST / {\n"
          "            query q in [\n                a, # one\n                b # ] two\n"
          "                #x\n            ] # y\n        }\n    }\n}\n");
}

static void brackets_and_quotes_that_are_words_stay_words(void **state) {
    (void)state;
    check("service a { host [2001:db8::7]\n operation c { POST / { header x matches [a,b\n query "
          "\"in\" is '\"' } }\nexpect deny POST / body [1,2] }",
          "service a {\n    host [2001:db8::7]\n    operation c {\n"
          "        POST / { header x matches [a,b; query \"in\" is '\"' }\n    }\n"
          "    expect deny POST / body [1,2]\n}\n");
}

static void what_does_not_read_is_refused_with_its_place(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 16);
    assert_int_equal(policy_format(VIEW("service a {\n hots b.test }\n"), "p", &out, &errors),
                     ERR_BAD);
    assert_int_equal(errors.at[0].at.line, 2);
    assert_int_equal(buf_len(&out), 0);
    buf_free(&out);
}

/* ---- any layout of the same words ---- */

struct words {
    struct lexer l;
    bool started;
};

static struct token next(struct words *w) {
    struct token t = lexer_take(&w->l);
    while (t.kind == TOKEN_END && (!w->started || lexer_at(&w->l, TOKEN_END) ||
                                   lexer_at(&w->l, TOKEN_CLOSE) || lexer_at(&w->l, TOKEN_EOF)))
        t = lexer_take(&w->l);
    w->started = t.kind != TOKEN_OPEN && t.kind != TOKEN_END;
    return t;
}

/* Token for token, but for how statements end and how items of lists are parted by blanks. */
static void assert_same_words(struct view a, struct view b) {
    struct words x = {.started = false}, y = {.started = false};
    errors_reset(&errors);
    lexer_init(&x.l, a, "a", &errors);
    lexer_init(&y.l, b, "b", &errors);
    for (;;) {
        struct token p = next(&x), q = next(&y);
        if (p.kind != q.kind || p.quoted != q.quoted || !view_equal(p.text, q.text))
            fail_msg("'%.*s' became '%.*s' in\n%.*s\n---\n%.*s", VIEW_ARG(p.text), VIEW_ARG(q.text),
                     VIEW_ARG(a), VIEW_ARG(b));
        if (p.kind == TOKEN_EOF)
            return;
    }
}

static const char *const statements[] = {
    "host a.test *.b.test",
    "port 443 8443",
    "credential k { in basic user; at most 2 }",
    "operation r anonymous preset read { GET /a; GET HEAD \"/a;v=1\" }",
    "operation w { POST /r/{x}/{n:int}/** graphql mutation { body at most 1K; no query q } }",
    "operation g { git case-folded fetch acme/x acme/y }",
    "never guard urls",
    "never all",
    "expect deny as w with none POST /x type a/b body '{\"a\": [1]}' reason never",
    "operation l { * /; * /** { header x in [a, b] } }",
};

static void put_gap(struct buf *out, bool end) {
    static const char *const blanks[] = {" ", "\t", "  ", " \t "};
    static const char *const ends[] = {"\n",     ";",           "\r\n", " # why\n",
                                       "\n\n\n", "\n# alone\n", ";; "};
    buf_put_str(out, end ? ends[rand() % 7] : blanks[rand() % 4]);
}

/* Blanks and ends of the statement in other forms; what stands in quotes and lists is kept. */
static void put_scrambled(struct buf *out, const char *text) {
    for (char quote = 0; *text; text++) {
        if ((*text == '\'' || *text == '"') && (!quote || quote == *text))
            quote = quote ? 0 : *text;
        bool list = text[0] == ' ' && text[-1] == ',';
        if (!quote && *text == ';')
            put_gap(out, true);
        else if (!quote && *text == ' ' && !list)
            put_gap(out, false);
        else
            buf_put_u8(out, (uint8_t)*text);
        if (!quote && *text == '{' && text[1] == ' ' && rand() % 3 == 0)
            put_gap(out, true);
    }
    put_gap(out, true);
}

static size_t count(struct view v, uint8_t c) {
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++)
        n += v.p[i] == c;
    return n;
}

static void any_layout_keeps_its_words_and_comments_and_formatting_twice_is_once(void **state) {
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    srand(seed);
    for (int round = 0; round < 2000; round++) {
        struct buf text;
        buf_init(&text, 1 << 20);
        put_scrambled(&text, "guard urls { * /** { query url } }");
        put_scrambled(&text, "service a {");
        for (int i = 0; i < 10; i++)
            if (rand() % 2)
                put_scrambled(&text, statements[i]);
        put_scrambled(&text, "}");
        put_scrambled(&text,
                      "sandbox w { grant a all until 2027-01-31T12:00:00Z note \"so; it is\" }");
        struct buf once = format(buf_view(&text)), twice = format(buf_view(&once));
        assert_true(view_equal(buf_view(&once), buf_view(&twice)));
        assert_same_words(buf_view(&text), buf_view(&once));
        assert_int_equal(count(buf_view(&text), '#'), count(buf_view(&once), '#'));
        buf_free(&twice);
        buf_free(&once);
        buf_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_the_top_level_are_open_and_short_ones_below_are_not),
        cmocka_unit_test(comments_stay_with_what_they_stood_at),
        cmocka_unit_test(lists_stand_on_one_line_or_have_one_line_for_each_item),
        cmocka_unit_test(brackets_and_quotes_that_are_words_stay_words),
        cmocka_unit_test(what_does_not_read_is_refused_with_its_place),
        cmocka_unit_test(any_layout_keeps_its_words_and_comments_and_formatting_twice_is_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

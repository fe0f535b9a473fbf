#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/body_read.h"
#include "policy/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTERS = 4, RENDERED = 4096 };

struct question {
    enum body_source source;
    const char *pointers[POINTERS];
    bool graphql, rpc;
    uint64_t limit;
};

/* ---- facts as a text: "0=string:x 1~number:5" (~: alike), or the fault's text ---- */

static void put_value(struct buf *b, const struct body_value *v) {
    static const char *const types[] = {"null", "boolean", "number", "string",
                                        "text", "array",   "object"};
    buf_printf(b, "%s%u%c%s", buf_len(b) ? " " : "", v->pointer, v->alike ? '~' : '=',
               types[v->type]);
    if (v->value.n > 0)
        buf_printf(b, ":%.*s", VIEW_ARG(v->value));
}

static void put_protocols(struct buf *b, const struct body_facts *f) {
    static const char *const kinds[] = {"query", "mutation", "subscription"};
    if (f->graphql.known) {
        buf_printf(b, "%s", kinds[f->graphql.kind]);
        for (size_t i = 0; i < f->graphql.n_fields; i++)
            buf_printf(b, " %.*s", VIEW_ARG(f->graphql.fields[i]));
    }
    if (f->rpc.known && f->rpc.batch)
        buf_printf(b, "batch:");
    for (size_t i = 0; f->rpc.known && i < f->rpc.n_calls; i++)
        buf_printf(b, "%s%.*s(%.*s)", buf_len(b) ? " " : "", VIEW_ARG(f->rpc.calls[i].method),
                   VIEW_ARG(f->rpc.calls[i].tool));
}

static void render(const struct question *q, struct view body, size_t piece, char *out) {
    struct body_read *r = NULL;
    struct view pointers[POINTERS];
    struct body_wants w = {.pointers = pointers,
                           .graphql = q->graphql,
                           .rpc = q->rpc,
                           .limit = q->limit ? q->limit : 1 << 20};
    struct buf b;
    while (w.n_pointers < POINTERS && q->pointers[w.n_pointers]) {
        pointers[w.n_pointers] = view_str(q->pointers[w.n_pointers]);
        w.n_pointers++;
    }
    buf_init(&b, RENDERED - 1);
    assert_int_equal(body_read_new(q->source, &w, &r), 0);
    for (struct view rest = body; rest.n > 0; rest = view_skip(rest, piece))
        body_read_feed(r, view_head(rest, piece));
    const struct body_facts *f = body_read_end(r);
    assert_int_equal(f->size, body.n);
    assert_int_equal(f->unclear && !f->why, false);
    for (size_t i = 0; !f->unclear && i < f->n_values; i++)
        put_value(&b, &f->values[i]);
    put_protocols(&b, f);
    if (f->unclear || body_read_fault(r) != BODY_FAULTLESS)
        buf_printf(&b, "%s", body_fault_text(body_read_fault(r)));
    assert_true(buf_ok(&b));
    assert_int_equal(view_cstr(buf_view(&b), out, RENDERED), 0);
    buf_free(&b);
    body_read_free(r);
}

/* Whatever the pieces are. */
static void check(const struct question *q, struct view body, const char *want) {
    char got[RENDERED];
    for (size_t piece = 1; piece <= body.n + 1; piece++) {
        render(q, body, piece, got);
        if (strcmp(got, want) != 0)
            print_error("%.*s in pieces of %zu\n", VIEW_ARG(body), piece);
        assert_string_equal(got, want);
        piece += piece > 20 ? body.n / 3 : 0;
    }
}

struct example {
    struct view body;
    const char *want;
};

#define BODY(text) VIEW(text)
#define CHECK_ALL(q, table)                                                                        \
    for (size_t i = 0; i < sizeof(table) / sizeof *(table); i++)                                   \
    check(&(q), (table)[i].body, (table)[i].want)

/* ---- JSON ---- */

static void pointers_lead_to_values_of_every_type(void **state) {
    static const struct question q = {
        .pointers = {"/model", "/tools/*/url", "/a~1b/~0", "/list/1"}};
    static const struct example cases[] = {
        {BODY("{}"), ""},
        {BODY(""), ""},
        {BODY("[1,2]"), ""},
        {BODY("{\"model\":\"gpt\"}"), "0=string:gpt"},
        {BODY(" {\n\"model\" : \"\" }\r\n"), "0=string"},
        {BODY("{\"model\":null}"), "0=null"},
        {BODY("{\"model\":true,\"list\":[1,false]}"), "0=boolean:true 3=boolean:false"},
        {BODY("{\"model\":-1.50e+3}"), "0=number:-1.50e+3"},
        {BODY("{\"model\":{\"model\":\"x\"}}"), "0=object"},
        {BODY("{\"model\":[\"x\"]}"), "0=array"},
        {BODY("{\"x\":{\"model\":1}}"), ""},
        {BODY("{\"tools\":[{\"url\":\"u\"},{\"n\":1},{\"url\":2}]}"), "1=string:u 1=number:2"},
        {BODY("{\"tools\":{\"x\":{\"url\":\"u\"}}}"), "1=string:u"},
        {BODY("{\"tools\":{\"url\":\"u\"}}"), ""},
        {BODY("{\"a/b\":{\"~\":1}}"), "2=number:1"},
        {BODY("{\"list\":[[1],[2],3]}"), "3=array"},
        {BODY("{\"list\":{\"1\":5}}"), "3=number:5"},
        {BODY("{\"list\":{\"01\":5}}"), ""},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void strings_are_decoded(void **state) {
    static const struct question q = {.pointers = {"/model"}};
    static const struct example cases[] = {
        {BODY("{\"m\\u006fdel\":\"\\u0061\\n\\/\\\"\\\\\"}"), "0=string:a\n/\"\\"},
        {BODY("{\"model\":\"\\u00e9\\u20ac\\ud83d\\ude00\"}"),
         "0=string:\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {BODY("{\"model\":\"\xc3\xa9\xf0\x9f\x98\x80\"}"), "0=string:\xc3\xa9\xf0\x9f\x98\x80"},
        {BODY("5"), ""},
        {BODY("{\"model\":12}"), "0=number:12"},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void a_whole_document_may_be_a_value(void **state) {
    static const struct question q = {.pointers = {""}};
    static const struct example cases[] = {
        {BODY("5"), "0=number:5"}, {BODY(" \"x\" "), "0=string:x"},  {BODY("{}"), "0=object"},
        {BODY("[]"), "0=array"},   {BODY("true"), "0=boolean:true"},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void names_that_some_take_for_the_pointers_are_alike(void **state) {
    static const struct question q = {.pointers = {"/fileUri", "/tools/*/type", "/k/x"}};
    static const struct example cases[] = {
        {BODY("{\"fileuri\":1}"), "0~number:1"},
        {BODY("{\"file_uri\":1}"), "0~number:1"},
        {BODY("{\"fileUri\":1,\"FILEURI\":2}"), "0=number:1 0~number:2"},
        {BODY("{\"TOOLS\":[{\"type\":\"x\"}]}"), "1~array 1~object 1~string:x"},
        {BODY("{\"tools\":[{\"Type\":\"x\"}]}"), "1~string:x"},
        {BODY("{\"\xe2\x84\xaa\":{\"x\":1}}"), "2~object 2~number:1"},
        {BODY("{\"f\xc4\xb0leUri\":1}"), "0~number:1"},
        {BODY("{\"file\":1,\"uri\":2}"), ""},
        /* whoever takes it for the token loses what stands there, or all of it */
        {BODY("{\"k\":{\"x\":1},\"K\":null}"), "2=number:1 2~null"},
        {BODY("{\"k\":{\"x\":1},\"K\":[]}"), "2=number:1 2~array"},
        {BODY("{\"k\":{\"x\":1},\"K\":{\"y\":1}}"), "2=number:1 2~object"},
        {BODY("{\"tools\":[],\"Tools\":[]}"), "1~array"},
        {BODY("{\"k\":null}"), ""},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void AP_04_duplicate_names_make_a_body_unclear(void **state) {
    static const struct question q = {.pointers = {"/method"}};
    static const struct example cases[] = {
        {BODY("{\"method\":\"ping\",\"method\":\"tools/call\"}"),
         "the body has two members of one name"},
        {BODY("{\"method\":\"ping\",\"m\\u0065thod\":\"x\"}"),
         "the body has two members of one name"},
        {BODY("{\"a\":[{\"x\":1,\"y\":{},\"x\":1}]}"), "the body has two members of one name"},
        {BODY("{\"\":1,\"a\":1,\"\":2}"), "the body has two members of one name"},
        {BODY("{\"a\":{\"x\":1},\"b\":{\"x\":1},\"x\":2}"), ""},
        {BODY("[{\"method\":1},{\"method\":1}]"), ""},
        {BODY("{\"__proto__\":{\"method\":\"x\"}}"), "the body has a member __proto__"},
        {BODY("{\"a\":{\"__prot\\u006f__\":1}}"), "the body has a member __proto__"},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void what_two_readers_could_take_differently_is_unclear(void **state) {
    static const struct question q = {.pointers = {"/a"}};
    static const struct example cases[] = {
        {BODY("{\"a\":1"), "the body ends too early"},
        {BODY("{\"a\":\"x"), "the body ends too early"},
        {BODY("1."), "the body ends too early"},
        {BODY("{\"a\":1}{\"a\":2}"), "something stands behind the body's document"},
        {BODY("{\"a\":1}\n2"), "something stands behind the body's document"},
        {BODY("{\"a\":1}x"), "the body is not of its type's syntax"},
        {BODY("{\"a\":1,}"), "the body is not of its type's syntax"},
        {BODY("{'a':1}"), "the body is not of its type's syntax"},
        {BODY("{\"a\":01}"), "the body is not of its type's syntax"},
        {BODY("{\"a\":NaN}"), "the body is not of its type's syntax"},
        {BODY("{\"a\":1/*x*/}"), "the body is not of its type's syntax"},
        {BODY("{\"a\":\"\\x41\"}"), "the body is not of its type's syntax"},
        {BODY("{\"a\":\"\t\"}"), "the body is not of its type's syntax"},
        {BODY("\xef\xbb\xbf{\"a\":1}"), "the body begins with a byte order mark"},
        {BODY("{\"b\":\"\xff\"}"), "the body is not in UTF-8"},
        {BODY("{\"b\":\"\xc0\xaf\"}"), "the body is not in UTF-8"},
        {BODY("{\"b\":\"\xed\xa0\x80\"}"), "the body is not in UTF-8"},
        {BODY("{\"b\":\"\xe2\x82\"}"), "the body is not in UTF-8"},
        {BODY("{\"b\":\"\xe2\\n\"}"), "the body is not in UTF-8"},
        {BODY("{\"\xff\":1}"), "the body is not in UTF-8"},
        {BODY("{\"b\":\"\\ud800\"}"), "the body has half of a surrogate pair"},
        {BODY("{\"b\":\"\\udc00\"}"), "the body has half of a surrogate pair"},
        {BODY("{\"b\":\"\\ud800x\"}"), "the body has half of a surrogate pair"},
        {BODY("{\"b\":\"\\ud800\\n\"}"), "the body has half of a surrogate pair"},
        {BODY("{\"b\":\"\\ud800\\ud800\"}"), "the body has half of a surrogate pair"},
        {BODY("{\"\\udc00\":1}"), "the body has half of a surrogate pair"},
        {BODY("{\"a\":\"x\\u0000\"}"), "the body has NUL in a name or value"},
        {BODY("{\"a\\u0000\":1}"), "the body has NUL in a name or value"},
        {BODY("{\"b\":\"\\u0000\"}"), ""},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void numbers_have_an_end(void **state) {
    static const struct question q = {.pointers = {"/a"}, .limit = 8};
    static const struct example cases[] = {
        {BODY("{\"a\":12}"), "0=number:12"},
        {BODY("{\"a\":123}"), "the body is larger than what is inspected"},
    };
    char deep[JSON_DEPTH + 1], got[RENDERED];
    (void)state;
    CHECK_ALL(q, cases);
    memset(deep, '[', sizeof deep);
    const struct question any = {.pointers = {"/a"}};
    render(&any, view_of(deep, sizeof deep), 100, got);
    assert_string_equal(got, "the body is nested too deeply");
}

/* An object or array with n members of one byte each. */
static void put_many(struct buf *b, size_t n, bool object) {
    buf_put_str(b, object ? "{" : "[");
    for (size_t i = 0; i < n; i++)
        if (object)
            buf_printf(b, "%s\"%zx\":1", i ? "," : "", i);
        else
            buf_printf(b, "%s1", i ? "," : "");
    buf_put_str(b, object ? "}" : "]");
}

static void values_and_names_are_bounded(void **state) {
    static const struct question q = {.pointers = {"/*"}};
    static const struct question none = {.pointers = {"/a/b"}};
    char got[RENDERED];
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 20);
    put_many(&b, BODY_VALUES_MAX + 1, false);
    render(&q, buf_view(&b), 5000, got);
    assert_string_equal(got, "the body has more names or values than are inspected");
    buf_reset(&b);
    put_many(&b, BODY_NAMES_MAX, true);
    render(&none, buf_view(&b), 5000, got);
    assert_string_equal(got, "");
    buf_reset(&b);
    put_many(&b, BODY_NAMES_MAX + 1, true);
    render(&none, buf_view(&b), 5000, got);
    assert_string_equal(got, "the body has more names or values than are inspected");
    buf_reset(&b);
    buf_put_str(&b, "{\"a\":{\"b\":\"");
    for (size_t i = 0; i <= BODY_TEXT_MAX; i++)
        buf_put_u8(&b, 'x');
    buf_put_str(&b, "\"}}");
    render(&none, buf_view(&b), 5000, got);
    assert_string_equal(got, "the body has more names or values than are inspected");
    buf_free(&b);
}

static void what_is_no_pointer_cannot_be_asked_for(void **state) {
    static const struct {
        const char *pointer;
        int err;
    } cases[] = {{"a", ERR_BAD}, {"/a~", ERR_BAD}, {"/a~2", ERR_BAD}, {"/~0~1", 0}, {"/", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct view p = view_str(cases[i].pointer);
        struct body_wants w = {.pointers = &p, .n_pointers = 1, .limit = 10};
        struct body_read *r = NULL;
        assert_int_equal(body_read_new(BODY_SOURCE_JSON, &w, &r), cases[i].err);
        body_read_free(r);
    }
    struct view many[JSON_PATHS_MAX + 1];
    char deep[2 * (JSON_PATH_TOKENS + 1) + 1];
    for (size_t i = 0; i < JSON_PATHS_MAX + 1; i++)
        many[i] = VIEW("/a");
    struct body_wants w = {.pointers = many, .n_pointers = JSON_PATHS_MAX + 1, .limit = 10};
    struct body_read *r = NULL;
    assert_int_equal(body_read_new(BODY_SOURCE_JSON, &w, &r), ERR_LIMIT);
    for (size_t i = 0; i < JSON_PATH_TOKENS + 1; i++)
        memcpy(deep + 2 * i, "/a", 3);
    many[0] = view_str(deep);
    w.n_pointers = 1;
    assert_int_equal(body_read_new(BODY_SOURCE_JSON, &w, &r), ERR_LIMIT);
}

/* ---- forms ---- */

static void fields_of_a_form_are_texts(void **state) {
    static const struct question q = {.source = BODY_SOURCE_FORM,
                                      .pointers = {"/a", "/config/url", "/list/*", "/a[b]"}};
    static const struct example cases[] = {
        {BODY(""), ""},
        {BODY("a=1"), "0=text:1"},
        {BODY("a"), "0=text"},
        {BODY("b=1&a=x+y%2f&&c"), "0=text:x y/"},
        {BODY("a=1&a=2"), "0=text:1 0=text:2"},
        {BODY("%61=1"), "0=text:1"},
        {BODY("+a=1"), "0~text:1"},
        {BODY("A=1"), "0~text:1"},
        {BODY("config[url]=u"), "1=text:u"},
        {BODY("config%5Burl%5D=u"), "1=text:u"},
        {BODY("config[Url]=u"), "1~text:u"},
        {BODY("config.url=u"), "1~text:u"},
        {BODY("config=u"), "1~text:u"},
        {BODY("config[url]=u&config=v"), "1=text:u 1~text:v"},
        {BODY("config[url][x]=u"), "1~object"},
        {BODY("list[]=x&list[3]=y&list[a]=z"), "2=text:x 2=text:y 2=text:z"},
        {BODY("list=x"), "2~text:x"},
        {BODY("a[b]=1"), "3=text:1 0~object"},
        {BODY("a[]=1"), "0~object"},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void items_of_a_form_without_index_could_be_any(void **state) {
    static const struct question q = {.source = BODY_SOURCE_FORM, .pointers = {"/a/0", "/a/*/b"}};
    static const struct example cases[] = {
        {BODY("a[]=x"), "0~text:x 1~text:x"},
        {BODY("a[0]=x"), "0=text:x 1~text:x"},
        {BODY("a[1]=x"), "1~text:x"},
        {BODY("a[][b]=x"), "0~object 1=text:x"},
        {BODY("a[0].b=x"), "the body is not of its type's syntax"},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void SF_07_forms_that_are_read_in_two_ways_are_unclear(void **state) {
    static const struct question q = {.source = BODY_SOURCE_FORM, .pointers = {"/a"}};
    static const struct example cases[] = {
        {BODY("a=1;b=2"), "the body is not of its type's syntax"},
        {BODY("b;a=1"), "the body is not of its type's syntax"},
        {BODY("a=%zz"), "the body is not of its type's syntax"},
        {BODY("%u0061=1"), "the body is not of its type's syntax"},
        {BODY("b=%"), "the body is not of its type's syntax"},
        {BODY("a[b=1"), "the body is not of its type's syntax"},
        {BODY("a]=1"), "the body is not of its type's syntax"},
        {BODY("a[b]c=1"), "the body is not of its type's syntax"},
        {BODY("[a]=1"), "the body is not of its type's syntax"},
        {BODY("{\"a\":1}"), "the body is not of its type's syntax"},
        {BODY("\xef\xbb\xbf \r\n{\"a\":1}"), "the body is not of its type's syntax"},
        {BODY("a=%ff"), "the body is not in UTF-8"},
        {BODY("a=\xff"), "the body is not in UTF-8"},
        {BODY("a%00=1"), "the body has NUL in a name or value"},
        {BODY("b=%00"), "the body has NUL in a name or value"},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void a_long_form_costs_no_memory_that_nobody_asked_for(void **state) {
    static const struct question q = {.source = BODY_SOURCE_FORM, .pointers = {"/a"}};
    char got[RENDERED];
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 20);
    for (size_t i = 0; i < BODY_TEXT_MAX / 8; i++)
        buf_put_str(&b, "bbbb=123456&");
    buf_put_str(&b, "a=1");
    render(&q, buf_view(&b), 5000, got);
    assert_string_equal(got, "0=text:1");
    buf_free(&b);
}

/* ---- JSON-RPC and MCP ---- */

static const char no_rpc[] = "the body is no JSON-RPC 2.0";

static void AP_03_calls_are_told_one_by_one(void **state) {
    static const struct question q = {.rpc = true};
    static const struct example cases[] = {
        {BODY("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"), "ping()"},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"),
         "notifications/initialized()"},
        {BODY("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
              "call\",\"params\":{\"name\":\"delete\",\"arguments\":{\"name\":\"x\"}}}"),
         "tools/call(delete)"},
        {BODY("{\"params\":{\"name\":\"del\\u0065te\"},\"method\":\"tools\\/"
              "call\",\"jsonrpc\":\"2.0\"}"),
         "tools/call(delete)"},
        {BODY("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sum\",\"params\":[1,2]}"), "sum()"},
        {BODY("[{\"jsonrpc\":\"2.0\",\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"method\":\"tools/"
              "call\",\"params\":{\"name\":\"delete\"}}]"),
         "batch: ping() tools/call(delete)"},
        {BODY("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"method\":\"x\"}}"), "()"},
        {BODY("[{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}},{\"jsonrpc\":\"2.0\",\"method\":\"a\"}"
              "]"),
         "batch: () a()"},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void AP_04_what_could_be_another_call_is_no_json_rpc(void **state) {
    static const struct question q = {.rpc = true};
    static const struct example cases[] = {
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"Method\":\"tools/call\"}"), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"METHOD\":\"tools/call\"}"), no_rpc},
        {BODY("{\"method\":\"ping\"}"), no_rpc},
        {BODY("{\"jsonrpc\":\"1.0\",\"method\":\"ping\"}"), no_rpc},
        {BODY("{\"jsonrpc\":2.0,\"method\":\"ping\"}"), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":5}"), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"\"}"), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":[\"ping\"]}"), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"result\":1}"), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"id\":1}"), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\"}"), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":[\"delete\"]}"), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":1}}"), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"tools/"
              "call\",\"params\":{\"name\":\"a\",\"NAME\":\"b\"}}"),
         no_rpc},
        {BODY("[]"), no_rpc},
        {BODY("[1]"), no_rpc},
        {BODY("[[{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}]]"), no_rpc},
        {BODY("[{\"jsonrpc\":\"2.0\",\"method\":\"ping\"},{\"method\":\"x\"}]"), no_rpc},
        {BODY("\"ping\""), no_rpc},
        {BODY(""), no_rpc},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"method\":\"b\"}"),
         "the body has two members of one name"},
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"b\"}"),
         "something stands behind the body's document"},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void arguments_of_a_call_are_values_like_others(void **state) {
    static const struct question q = {.pointers = {"/params/arguments/path"}, .rpc = true};
    static const struct example cases[] = {
        {BODY("{\"jsonrpc\":\"2.0\",\"method\":\"tools/"
              "call\",\"params\":{\"name\":\"read\",\"arguments\":{\"path\":\"/etc\"}}}"),
         "0=string:/etc tools/call(read)"},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

/* ---- GraphQL over HTTP ---- */

static const char no_graphql[] = "the body is no GraphQL request with one certain operation";

static void AP_01_the_selected_operation_of_a_json_body_is_told(void **state) {
    static const struct question q = {.graphql = true};
    static const struct example cases[] = {
        {BODY("{\"query\":\"{viewer{login}}\"}"), "query viewer"},
        {BODY("{\"query\":\"query A{x} mutation B{y}\",\"operationName\":\"B\"}"), "mutation y"},
        {BODY("{\"query\":\"query A{x} mutation "
              "B{y}\",\"operationName\":\"A\",\"variables\":{\"query\":\"mutation{z}\"}}"),
         "query x"},
        {BODY("{\"query\":\"\\ufeff# c\\n "
              "mutation{a:deleteRepo}\",\"variables\":null,\"operationName\":null,\"extensions\":{}"
              "}"),
         "mutation deleteRepo"},
        {BODY("{\"query\":\"query A{x} mutation B{y}\"}"), no_graphql},
        {BODY("{\"query\":\"query A{x}\",\"operationName\":\"B\"}"), no_graphql},
        {BODY("{\"query\":\"query A{x}\",\"operationName\":\"\"}"), no_graphql},
        {BODY("{\"query\":\"query A{x}\",\"operationName\":1}"), no_graphql},
        {BODY("{\"query\":\"query A{x} mutation "
              "B{y}\",\"operationName\":\"A\",\"operationname\":\"B\"}"),
         no_graphql},
        {BODY("{\"query\":\"{x}\",\"Query\":\"mutation{y}\"}"), no_graphql},
        {BODY("{\"query\":\"{x}\",\"id\":\"5\"}"), no_graphql},
        {BODY("{\"query\":\"{x}\",\"extensions\":{\"persistedQuery\":{}}}"), no_graphql},
        {BODY("{\"query\":\"{x}\",\"variables\":\"{}\"}"), no_graphql},
        {BODY("{\"query\":[\"{x}\"]}"), no_graphql},
        {BODY("{\"variables\":{}}"), no_graphql},
        {BODY("[{\"query\":\"{x}\"}]"), no_graphql},
        {BODY("{\"query\":\"{x\"}"), no_graphql},
        {BODY(""), no_graphql},
    };
    (void)state;
    CHECK_ALL(q, cases);
}

static void AP_02_a_query_string_may_hold_graphql_that_changes_nothing(void **state) {
    static const struct question q = {.source = BODY_SOURCE_QUERY, .graphql = true};
    static const struct question form = {.source = BODY_SOURCE_FORM, .graphql = true};
    static const struct example cases[] = {
        {BODY("query=%7Bviewer%7Blogin%7D%7D"), "query viewer"},
        {BODY("variables=%7B%7D&query=query+A{x}query+B{y}&operationName=B"), "query y"},
        {BODY("query=subscription{a}"), "subscription a"},
        {BODY("query=mutation{x}"), no_graphql},
        {BODY("query={x}&query=mutation{y}"), no_graphql},
        {BODY("query={x}&Query=mutation{y}"), no_graphql},
        {BODY("query={x}&operationName="), no_graphql},
        {BODY("query={x}&extensions={}"), no_graphql},
        {BODY("query={x};query=mutation{y}"), no_graphql},
        {BODY("query=%ff"), no_graphql},
        {BODY("operationName=A"), no_graphql},
        {BODY(""), no_graphql},
    };
    (void)state;
    CHECK_ALL(q, cases);
    check(&form, BODY("query={x}"), no_graphql);
}

/* ---- types ---- */

static void SF_07_only_types_that_all_read_alike_are_read(void **state) {
    static const struct {
        const char *type;
        int source; /* -1: none */
    } cases[] = {
        {"application/json", BODY_SOURCE_JSON},
        {"Application/JSON; charset=UTF-8", BODY_SOURCE_JSON},
        {"application/json;charset=\"utf-8\"", BODY_SOURCE_JSON},
        {"application/vnd.github+json", BODY_SOURCE_JSON},
        {"application/x-www-form-urlencoded", BODY_SOURCE_FORM},
        {"application/x-www-form-urlencoded;charset=utf-8", BODY_SOURCE_FORM},
        {"application/json; charset=utf-16", -1},
        {"application/json; charset=utf-8; charset=utf-7", -1},
        {"application/json; x=y", -1},
        {"application/json,text/plain", -1},
        {"application/json text", -1},
        {"application/x-ndjson", -1},
        {"application/json-seq", -1},
        {"application/graphql", -1},
        {"multipart/form-data; boundary=b", -1},
        {"text/plain", -1},
        {"text/json", -1},
        {"application/+json", -1},
        {"application/cbor", -1},
        {"application", -1},
        {"", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum body_source source = BODY_SOURCE_QUERY;
        bool read = body_source_of(view_str(cases[i].type), &source);
        if (read != (cases[i].source >= 0))
            print_error("%s\n", cases[i].type);
        assert_int_equal(read ? (int)source : -1, cases[i].source);
    }
}

static void every_fault_has_a_text(void **state) {
    (void)state;
    assert_null(body_fault_text(BODY_FAULTLESS));
    for (int f = BODY_FAULTLESS + 1; f < BODY_FAULT_COUNT; f++)
        assert_non_null(body_fault_text((enum body_fault)f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointers_lead_to_values_of_every_type),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(a_whole_document_may_be_a_value),
        cmocka_unit_test(names_that_some_take_for_the_pointers_are_alike),
        cmocka_unit_test(AP_04_duplicate_names_make_a_body_unclear),
        cmocka_unit_test(what_two_readers_could_take_differently_is_unclear),
        cmocka_unit_test(numbers_have_an_end),
        cmocka_unit_test(values_and_names_are_bounded),
        cmocka_unit_test(what_is_no_pointer_cannot_be_asked_for),
        cmocka_unit_test(fields_of_a_form_are_texts),
        cmocka_unit_test(items_of_a_form_without_index_could_be_any),
        cmocka_unit_test(SF_07_forms_that_are_read_in_two_ways_are_unclear),
        cmocka_unit_test(a_long_form_costs_no_memory_that_nobody_asked_for),
        cmocka_unit_test(AP_03_calls_are_told_one_by_one),
        cmocka_unit_test(AP_04_what_could_be_another_call_is_no_json_rpc),
        cmocka_unit_test(arguments_of_a_call_are_values_like_others),
        cmocka_unit_test(AP_01_the_selected_operation_of_a_json_body_is_told),
        cmocka_unit_test(AP_02_a_query_string_may_hold_graphql_that_changes_nothing),
        cmocka_unit_test(SF_07_only_types_that_all_read_alike_are_read),
        cmocka_unit_test(every_fault_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

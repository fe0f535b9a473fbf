#include "policy/reader.h"

#include "policy/json_path.h"
#include "policy/own_field.h"

struct condition *add_condition(struct policy_source *s, enum condition_kind kind,
                                struct position at) {
    struct condition *c = arena_alloc(&s->policy->arena, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct condition){.kind = kind, .at = at};
    *s->conditions = c;
    s->conditions = &c->next;
    s->rule->n_conditions++;
    return c;
}

/* ---- tests ---- */

static enum body_type type_of(const struct token *t) {
    if (t->quoted)
        return BODY_STRING;
    if (view_equal(t->text, VIEW("true")) || view_equal(t->text, VIEW("false")))
        return BODY_BOOLEAN;
    if (view_equal(t->text, VIEW("null")))
        return BODY_NULL;
    return number_is_good(t->text) ? BODY_NUMBER : BODY_STRING;
}

struct value_list {
    struct arena *arena;
    struct test *test;
    size_t room;
};

static int add_value(void *ctx, struct lexer *l, const struct token *t) {
    struct value_list *list = ctx;
    struct test *test = list->test;
    enum body_type type = type_of(t);
    for (size_t i = 0; i < test->n_values; i++)
        if (test->values[i].type == type && view_equal(test->values[i].text, t->text)) {
            errors_add(l->errors, t->at, "'%.*s' twice in a list", WORD_ARG(t->text));
            return ERR_BAD;
        }
    if (test->n_values == VALUES_MAX) {
        errors_add(l->errors, t->at, "more than %d values in a list", VALUES_MAX);
        return ERR_BAD;
    }
    if (test->n_values == list->room) {
        list->room = list->room ? 2 * list->room : 4;
        struct test_value *more = arena_array(list->arena, list->room, sizeof *more);
        if (!more)
            return ERR_MEMORY;
        for (size_t i = 0; i < test->n_values; i++)
            more[i] = test->values[i];
        test->values = more;
    }
    test->values[test->n_values++] = (struct test_value){type, t->text};
    return 0;
}

static int read_is(struct policy_source *s, struct lexer *l, struct test *test) {
    static const struct {
        const char *word;
        enum body_type type;
    } types[] = {{"boolean", BODY_BOOLEAN},
                 {"number", BODY_NUMBER},
                 {"string", BODY_STRING},
                 {"null", BODY_NULL}};
    struct token t;
    if (lexer_word(l, "a value, or 'boolean', 'number', 'string' or 'null'", &t) != 0)
        return ERR_BAD;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!t.quoted && view_equal(t.text, view_str(types[i].word))) {
            test->kind = TEST_TYPE;
            test->type = types[i].type;
            return 0;
        }
    test->kind = TEST_VALUES;
    return add_value(&(struct value_list){&s->policy->arena, test, 0}, l, &t);
}

static int read_matches(struct lexer *l, struct test *test) {
    struct token t;
    if (lexer_word(l, "a text, in which '*' stands for anything", &t) != 0)
        return ERR_BAD;
    test->kind = TEST_GLOB;
    test->glob = t.text;
    return 0;
}

static int read_test(struct policy_source *s, struct lexer *l, struct test *test) {
    static const char *const known[] = {"is", "in", "matches"};
    if (!lexer_at(l, TOKEN_WORD))
        return 0;
    if (lexer_skip_word(l, "is"))
        return read_is(s, l, test);
    if (lexer_skip_word(l, "matches"))
        return read_matches(l, test);
    if (!lexer_skip_word(l, "in")) {
        struct token t = lexer_take(l);
        return word_unknown(l, &t, known, 3);
    }
    test->kind = TEST_VALUES;
    return lexer_list(l, "a value", add_value, &(struct value_list){&s->policy->arena, test, 0});
}

/* ---- conditions ---- */

static int read_query(struct policy_source *s, struct lexer *l, struct condition *c) {
    struct token t;
    if (!c->no && lexer_skip_word(l, "only")) {
        c->kind = CONDITION_QUERY_ONLY;
        return 0;
    }
    if (lexer_word(l, "the name of a parameter", &t) != 0)
        return ERR_BAD;
    c->name = t.text;
    return read_test(s, l, &c->test);
}

/* Fields that no rule is told of: they are gone, or say how the message is framed. */
static bool is_out_of_sight(struct view name) {
    static const char *const framing[] = {
        "host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade"};
    for (size_t i = 0; i < sizeof framing / sizeof framing[0]; i++)
        if (view_equal(name, view_str(framing[i])))
            return true;
    return own_field_is_removed(name);
}

static int read_header(struct policy_source *s, struct lexer *l, struct condition *c) {
    struct position at = l->token.at;
    int err = word_lower(s, l, "the name of a field", &c->name);
    if (err == 0 && is_out_of_sight(c->name)) {
        errors_add(l->errors, at, "'%.*s' is exeat's own affair: it is not sent on as it came",
                   VIEW_ARG(c->name));
        err = ERR_BAD;
    }
    return err != 0 ? err : read_test(s, l, &c->test);
}

static bool is_media_type(struct view v) {
    struct view subtype = v, type = view_cut(&subtype, '/');
    bool good = type.n > 0 && subtype.n > 0;
    for (size_t i = 0; i < v.n; i++)
        good = good && (is_tchar(v.p[i]) || i == type.n);
    return good;
}

static int read_type(struct policy_source *s, struct lexer *l, struct condition *c) {
    enum { TYPES_MAX = 16 };
    c->names = arena_array(&s->policy->arena, TYPES_MAX, sizeof *c->names);
    if (!c->names)
        return ERR_MEMORY;
    do {
        struct token t;
        if (lexer_word(l, "a media type such as application/json", &t) != 0)
            return ERR_BAD;
        if (!is_media_type(t.text) || c->n_names == TYPES_MAX) {
            errors_add(l->errors, t.at, "expected %s, not '%.*s'",
                       c->n_names == TYPES_MAX ? "at most 16 media types"
                                               : "a media type such as application/json",
                       WORD_ARG(t.text));
            return ERR_BAD;
        }
        c->names[c->n_names++] = t.text;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

const char *pointer_fault(struct view v) {
    size_t tokens = 0;
    if (v.p[0] != '/')
        return "a pointer begins with '/'";
    for (size_t i = 0; i < v.n; i++) {
        tokens += v.p[i] == '/';
        if (v.p[i] == '~' && (i + 1 == v.n || (v.p[i + 1] != '0' && v.p[i + 1] != '1')))
            return "behind '~' stands 0 or 1";
    }
    return tokens > JSON_PATH_TOKENS || v.n > JSON_PATH_TEXT ? "it is too long" : NULL;
}

int pointer_find(struct policy *p, struct lexer *l, struct position at, struct view text,
                 uint16_t *out) {
    if (!p->pointers)
        p->pointers = arena_array(&p->arena, POINTERS_MAX, sizeof *p->pointers);
    if (!p->pointers)
        return ERR_MEMORY;
    size_t i = 0;
    while (i < p->n_pointers && !view_equal(p->pointers[i], text))
        i++;
    if (i == POINTERS_MAX) {
        errors_add(l->errors, at, "more than %d pointers", POINTERS_MAX);
        return ERR_BAD;
    }
    p->pointers[i] = text;
    p->n_pointers += i == p->n_pointers;
    *out = (uint16_t)i;
    return 0;
}

static int read_body(struct policy_source *s, struct lexer *l, struct condition *c) {
    struct token t;
    if (!c->no && lexer_skip_word(l, "at")) {
        c->kind = CONDITION_SIZE;
        if (!lexer_skip_word(l, "most"))
            return lexer_expected(l, "'most'");
        return word_size(l, "a size", &c->limit);
    }
    if (lexer_word(l, "a pointer such as /model, or 'at most'", &t) != 0)
        return ERR_BAD;
    const char *fault = pointer_fault(t.text);
    if (fault) {
        errors_add(l->errors, t.at, "'%.*s' is no pointer: %s", WORD_ARG(t.text), fault);
        return ERR_BAD;
    }
    c->name = t.text;
    int err = pointer_find(s->policy, l, t.at, t.text, &c->pointer);
    return err != 0 ? err : read_test(s, l, &c->test);
}

static int read_condition(void *source, struct lexer *l) {
    static const char *const known[] = {"query", "header", "content-type", "body", "no"};
    struct policy_source *s = source;
    struct position at = l->token.at;
    bool no = lexer_skip_word(l, "no");
    s->n_condition_lines++;
    if (s->rule->n_conditions == CONDITIONS_MAX) {
        errors_add(l->errors, at, "more than %d conditions of one line", CONDITIONS_MAX);
        return ERR_BAD;
    }
    size_t which;
    if (word_choose(l, "'query', 'header', 'content-type' or 'body'", known, no ? 4 : 5, &which) !=
        0)
        return ERR_BAD;
    if (which == 0 && !no && lexer_skip_word(l, "any"))
        return 0; /* what holds without the word as well */
    if (which == 2 && no) {
        errors_add(l->errors, at, "'no' is for 'query', 'header' and 'body'");
        return ERR_BAD;
    }
    static const enum condition_kind kinds[] = {CONDITION_QUERY, CONDITION_HEADER, CONDITION_TYPE,
                                                CONDITION_BODY};
    static int (*const readers[])(struct policy_source *, struct lexer *, struct condition *) = {
        read_query, read_header, read_type, read_body};
    if (which == 4)
        return lexer_expected(l, "'query', 'header' or 'body' behind one 'no'");
    struct condition *c = add_condition(s, kinds[which], at);
    if (!c)
        return ERR_MEMORY;
    c->no = no;
    return readers[which](s, l, c);
}

int read_conditions(struct policy_source *s, struct lexer *l) {
    if (!lexer_at(l, TOKEN_OPEN))
        return 0;
    struct position at = l->token.at;
    size_t before = l->errors->total;
    s->n_condition_lines = 0;
    int err = lines_read(l, read_condition, "a line's conditions", s);
    if (err == 0 && s->n_condition_lines == 0 && l->errors->total == before)
        errors_add(l->errors, at, "no condition between the braces");
    return err;
}

/* ---- protocols ---- */

static int read_graphql(struct policy_source *s, struct lexer *l, struct condition *c) {
    static const char *const kinds[] = {"query", "mutation", "subscription"};
    size_t which;
    if (word_choose(l, "'query', 'mutation' or 'subscription'", kinds, 3, &which) != 0)
        return ERR_BAD;
    c->graphql = (enum graphql_kind)which;
    return lexer_at_list(l) ? word_list(s, l, "a root field", &c->names, &c->n_names) : 0;
}

static int read_jsonrpc(struct policy_source *s, struct lexer *l, struct condition *c) {
    return word_list(s, l, "a method", &c->names, &c->n_names);
}

static int read_mcp(struct policy_source *s, struct lexer *l, struct condition *c) {
    struct token t;
    if (lexer_word(l, "a method such as tools/call", &t) != 0)
        return ERR_BAD;
    c->name = t.text;
    if (!lexer_at_list(l))
        return 0;
    if (!view_equal(t.text, VIEW("tools/call"))) {
        errors_add(l->errors, l->token.at, "tools are named of 'tools/call' only");
        return ERR_BAD;
    }
    return word_list(s, l, "a tool", &c->names, &c->n_names);
}

static int read_websocket(struct policy_source *s, struct lexer *l, struct condition *c) {
    (void)l;
    (void)c;
    s->rule->websocket = true;
    return 0;
}

/* The path that gRPC makes of a service and a method. */
static int read_grpc(struct policy_source *s, struct lexer *l, struct condition *c) {
    struct token service, method;
    if (lexer_word(l, "a gRPC service such as pkg.Service", &service) != 0 ||
        lexer_word(l, "a gRPC method, or '*'", &method) != 0)
        return ERR_BAD;
    bool any = view_equal(method.text, VIEW("*"));
    size_t n = service.text.n + 2 + (any ? 0 : method.text.n);
    uint8_t *path = arena_alloc(&s->policy->arena, n);
    if (!path)
        return ERR_MEMORY;
    path[0] = '/';
    view_copy(service.text, path + 1);
    path[1 + service.text.n] = '/';
    if (!any)
        view_copy(method.text, path + 2 + service.text.n);
    c->name = view_of(path, n);
    return 0;
}

int read_protocol(struct policy_source *s, struct lexer *l) {
    static const char *const known[] = {"graphql", "jsonrpc", "mcp", "websocket", "grpc"};
    static const enum condition_kind kinds[] = {CONDITION_GRAPHQL, CONDITION_RPC, CONDITION_MCP,
                                                CONDITION_WEBSOCKET, CONDITION_GRPC};
    static int (*const readers[])(struct policy_source *, struct lexer *, struct condition *) = {
        read_graphql, read_jsonrpc, read_mcp, read_websocket, read_grpc};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct position at = l->token.at;
        if (!lexer_skip_word(l, known[i]))
            continue;
        struct condition *c = add_condition(s, kinds[i], at);
        return c ? readers[i](s, l, c) : ERR_MEMORY;
    }
    return 0;
}

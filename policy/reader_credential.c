#include "policy/reader.h"

#include "policy/own_field.h"

/* ---- places ---- */

static int read_header_place(struct policy_source *s, struct lexer *l,
                             struct credential_place *place) {
    struct position at = l->token.at;
    place->place = PLACE_HEADER;
    int err = word_lower(s, l, "the name of a field", &place->name);
    if (err != 0)
        return err;
    if (own_field_is(place->name)) {
        errors_add(l->errors, at, "a credential cannot stand in '%.*s'", VIEW_ARG(place->name));
        return ERR_BAD;
    }
    return lexer_skip_word(l, "scheme") ? word_lower(s, l, "a scheme", &place->scheme) : 0;
}

static int read_basic_place(struct policy_source *s, struct lexer *l,
                            struct credential_place *place) {
    static const char *const halves[] = {"user", "password"};
    size_t which;
    (void)s;
    if (word_choose(l, "'user' or 'password'", halves, 2, &which) != 0)
        return ERR_BAD;
    place->name = VIEW("authorization");
    place->scheme = VIEW("basic");
    place->place = which == 0 ? PLACE_BASIC_USER : PLACE_BASIC_PASSWORD;
    return 0;
}

/* A cookie, a parameter or a form's field: a name that is sent as it is written. */
static int read_named(struct lexer *l, const char *what, struct credential_place *place) {
    struct token t;
    if (lexer_word(l, what, &t) != 0)
        return ERR_BAD;
    bool good = t.text.n <= POLICY_NAME_MAX;
    for (size_t i = 0; i < t.text.n; i++)
        good = good && (is_tchar(t.text.p[i]) || t.text.p[i] == '[' || t.text.p[i] == ']');
    if (!good) {
        errors_add(l->errors, t.at, "expected %s, not '%.*s'", what, WORD_ARG(t.text));
        return ERR_BAD;
    }
    place->name = t.text;
    return 0;
}

static int read_cookie_place(struct policy_source *s, struct lexer *l,
                             struct credential_place *place) {
    (void)s;
    place->place = PLACE_COOKIE;
    return read_named(l, "the name of a cookie", place);
}

static int read_query_place(struct policy_source *s, struct lexer *l,
                            struct credential_place *place) {
    (void)s;
    place->place = PLACE_QUERY;
    return read_named(l, "the name of a parameter", place);
}

/* The field's name as a pointer (RFC 6901), as bodies are read by. */
static int point_to_field(struct policy_source *s, struct lexer *l, struct position at,
                          struct credential_place *place) {
    uint8_t *text = arena_alloc(&s->policy->arena, 1 + 2 * place->name.n);
    size_t n = 0;
    if (!text)
        return ERR_MEMORY;
    text[n++] = '/';
    for (size_t i = 0; i < place->name.n; i++) {
        text[n++] = place->name.p[i];
        if (place->name.p[i] == '~')
            text[n++] = '0';
    }
    return pointer_find(s->policy, l, at, view_of(text, n), &place->pointer);
}

static int read_form_place(struct policy_source *s, struct lexer *l,
                           struct credential_place *place) {
    struct position at = l->token.at;
    place->place = PLACE_FORM;
    int err = read_named(l, "the name of a form's field", place);
    return err != 0 ? err : point_to_field(s, l, at, place);
}

static int read_path_place(struct policy_source *s, struct lexer *l,
                           struct credential_place *place) {
    uint64_t n;
    (void)s;
    place->place = PLACE_PATH;
    place->name = l->token.text;
    if (lexer_number(l, "the number of a path segment", 1, PATH_PARTS_MAX, &n) != 0)
        return ERR_BAD;
    place->segment = (uint16_t)n;
    return 0;
}

/* What is told apart by its name wherever it stands: no item of an array. */
static bool is_member(struct view pointer) {
    struct view last = pointer;
    if (pointer_fault(pointer) || view_find(pointer, '*') < pointer.n)
        return false;
    while (view_find(last, '/') < last.n)
        (void)view_cut(&last, '/');
    bool named = false;
    for (size_t i = 0; i < last.n; i++)
        named = named || !is_digit(last.p[i]);
    return named && last.n <= POLICY_NAME_MAX;
}

static int read_json_place(struct policy_source *s, struct lexer *l,
                           struct credential_place *place) {
    struct token t;
    place->place = PLACE_JSON;
    if (lexer_word(l, "a pointer such as /api_key", &t) != 0)
        return ERR_BAD;
    if (!is_member(t.text)) {
        errors_add(l->errors, t.at,
                   "expected a pointer to one member, such as /api_key, not '%.*s'",
                   WORD_ARG(t.text));
        return ERR_BAD;
    }
    place->name = t.text;
    return pointer_find(s->policy, l, t.at, t.text, &place->pointer);
}

static int read_in(void *source, struct lexer *l, const struct token *at) {
    static const char *const kinds[] = {"header", "basic", "cookie", "query",
                                        "path",   "json",  "form"};
    static int (*const readers[])(struct policy_source *, struct lexer *,
                                  struct credential_place *) = {
        read_header_place, read_basic_place, read_cookie_place, read_query_place,
        read_path_place,   read_json_place,  read_form_place};
    struct policy_source *s = source;
    size_t which;
    (void)at;
    if (lexer_at(l, TOKEN_WORD) && view_equal(l->token.text, VIEW("bearer"))) {
        errors_add(l->errors, l->token.at,
                   "a bearer token is written: in header authorization scheme bearer");
        return ERR_BAD;
    }
    if (word_choose(l, "where the credential goes", kinds, sizeof kinds / sizeof kinds[0],
                    &which) != 0)
        return ERR_BAD;
    return readers[which](s, l, &s->credential->place);
}

/* ---- the block ---- */

static int read_at_most(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    uint64_t n;
    (void)at;
    if (!lexer_skip_word(l, "most"))
        return lexer_expected(l, "'most'");
    if (lexer_number(l, "a number", 1, MATERIALS_MAX, &n) != 0)
        return ERR_BAD;
    s->credential->at_most = (unsigned)n;
    return 0;
}

static int read_for(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    (void)at;
    do {
        int err = word_mention(s, l, "the name of an operation", &s->mentions);
        if (err != 0)
            return err;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

static int read_terms(struct policy_source *s, struct lexer *l, struct credential *c) {
    static const struct statement words[] = {
        {"in", read_in, true}, {"at", read_at_most, true}, {"for", read_for, true}};
    struct mention **guards = s->mentions;
    size_t before = l->errors->total;
    s->credential = c;
    s->mentions = &c->operations;
    int err = statements_read(l, words, sizeof words / sizeof words[0], "a credential", s);
    s->mentions = guards;
    if (err == 0 && c->place.name.n == 0 && l->errors->total == before) {
        errors_add(l->errors, c->at, "where the credential goes is missing: '{ in header ... }'");
        err = ERR_BAD;
    }
    return err;
}

int read_credential(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    struct token name = {.at = at->at};
    if (s->n_credentials == CREDENTIALS_MAX) {
        errors_add(l->errors, at->at, "more than %d credentials of a service", CREDENTIALS_MAX);
        return ERR_BAD;
    }
    struct credential *c = arena_alloc(&s->policy->arena, sizeof *c);
    if (!c)
        return ERR_MEMORY;
    int err = lexer_name(l, "the name of a credential", &name);
    *c = (struct credential){.name = name.text, .at = name.at, .at_most = 1};
    if (err != 0 && !lexer_at(l, TOKEN_OPEN))
        return err;
    int block = read_terms(s, l, c);
    if (block == 0 && err == 0) {
        s->n_credentials++;
        *s->credentials = c;
        s->credentials = &c->next;
    }
    return block != 0 ? block : err;
}

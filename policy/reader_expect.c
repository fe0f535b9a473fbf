#include "policy/reader.h"

static int read_verdict(struct lexer *l, struct expectation *e) {
    static const char *const known[] = {"allow", "deny"};
    size_t which;
    if (word_choose(l, "'allow' or 'deny'", known, 2, &which) != 0)
        return ERR_BAD;
    e->allow = which == 0;
    return 0;
}

static int read_with(struct lexer *l, struct expectation *e) {
    static const char *const known[] = {"ours", "none", "foreign"};
    size_t which;
    if (word_choose(l, "'ours', 'none' or 'foreign'", known, 3, &which) != 0)
        return ERR_BAD;
    e->with = (enum with)(WITH_OURS + which);
    return 0;
}

static int read_reason(struct lexer *l, struct expectation *e) {
    struct token t;
    enum reason reason;
    if (lexer_word(l, "the code of a reason", &t) != 0)
        return ERR_BAD;
    e->reason = t.text;
    if (e->allow) {
        errors_add(l->errors, t.at, "a reason is for 'deny'");
        return ERR_BAD;
    }
    if (reason_find(t.text, &reason) == 0)
        return 0;
    struct guess g = guess_of(t.text);
    for (int i = 0; i < REASON_COUNT; i++)
        guess_offer(&g, view_str(reason_info((enum reason)i)->code));
    errors_add(l->errors, t.at, "'%.*s' is no reason%s", WORD_ARG(t.text), guess_text(&g));
    return ERR_BAD;
}

static int read_field(struct policy_source *s, struct lexer *l, struct expectation *e) {
    enum { FIELDS_OF_EXPECTATION = 16 };
    struct token t;
    if (lexer_word(l, "a field such as 'accept: text/plain'", &t) != 0)
        return ERR_BAD;
    struct view value = t.text, name = view_cut(&value, ':');
    bool good = name.n > 0 && name.n < t.text.n && e->n_fields < FIELDS_OF_EXPECTATION;
    for (size_t i = 0; i < name.n; i++)
        good = good && is_tchar(name.p[i]);
    if (!good) {
        errors_add(l->errors, t.at, "expected a field such as 'accept: text/plain', not '%.*s'",
                   WORD_ARG(t.text));
        return ERR_BAD;
    }
    if (!e->fields)
        e->fields = arena_array(&s->policy->arena, FIELDS_OF_EXPECTATION, sizeof *e->fields);
    if (!e->fields)
        return ERR_MEMORY;
    e->fields[e->n_fields++] = (struct field){name, view_trim(value)};
    return 0;
}

/* What stands behind the URL, in any order. */
static int read_rest(struct policy_source *s, struct lexer *l, struct expectation *e) {
    for (int err = 0; lexer_at(l, TOKEN_WORD);) {
        struct token t = {.at = l->token.at};
        if (lexer_skip_word(l, "reason"))
            err = read_reason(l, e);
        else if (lexer_skip_word(l, "header"))
            err = read_field(s, l, e);
        else if (e->type.n == 0 && lexer_skip_word(l, "type")) {
            err = lexer_word(l, "a media type", &t);
            e->type = t.text;
        } else if (!e->has_body && lexer_skip_word(l, "body")) {
            err = lexer_word(l, "a body in quotes", &t);
            e->has_body = true;
            e->body = t.text;
            e->body_at = t.at;
        } else
            return 0; /* the statement does not end here: that is reported */
        if (err != 0)
            return err;
    }
    return 0;
}

static int read_request(struct policy_source *s, struct lexer *l, struct expectation *e) {
    struct token t;
    if (lexer_word(l, "a method", &t) != 0)
        return ERR_BAD;
    e->method = t.text;
    if (lexer_word(l, s->service ? "a path or URL" : "a URL", &t) != 0)
        return ERR_BAD;
    e->url = t.text;
    e->url_at = t.at;
    return read_rest(s, l, e);
}

static int read_expectation(struct policy_source *s, struct lexer *l, struct expectation *e) {
    if (read_verdict(l, e) != 0)
        return ERR_BAD;
    if (lexer_skip_word(l, "as")) {
        struct token name;
        if (lexer_name(l, "the name of a sandbox", &name) != 0)
            return ERR_BAD;
        e->sandbox = name.text;
        e->sandbox_at = name.at;
    } else if (!s->service)
        return lexer_expected(l, "'as' and the name of a sandbox");
    if (lexer_skip_word(l, "with") && read_with(l, e) != 0)
        return ERR_BAD;
    return read_request(s, l, e);
}

int read_expect(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    if (s->n_expectations++ == EXPECTATIONS_MAX) {
        errors_add(l->errors, at->at, "more than %d expectations", EXPECTATIONS_MAX);
        return ERR_BAD;
    }
    struct expectation *e = arena_alloc(&s->policy->arena, sizeof *e);
    if (!e)
        return ERR_MEMORY;
    *e = (struct expectation){.service = s->service, .at = at->at};
    int err = read_expectation(s, l, e);
    if (err == 0) {
        *s->expectations = e;
        s->expectations = &e->next;
    }
    return err;
}

#include "policy/reader.h"

/* ---- a grant ---- */

static int read_until(struct lexer *l, struct grant *g) {
    struct token t;
    if (lexer_word(l, "a time such as 2027-01-31T12:00:00Z", &t) != 0)
        return ERR_BAD;
    if (time_parse(t.text, &g->limits.until) == 0 && g->limits.until > 0)
        return 0;
    errors_add(l->errors, t.at, "expected a time such as 2027-01-31T12:00:00Z, not '%.*s'",
               WORD_ARG(t.text));
    return ERR_BAD;
}

static int read_uses(struct lexer *l, struct grant *g) {
    return lexer_number(l, "a number of requests", 1, UINT32_MAX, &g->limits.uses);
}

static int read_rate(struct lexer *l, struct grant *g) {
    static const struct {
        const char *unit;
        uint64_t seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}};
    struct token t;
    if (lexer_word(l, "a rate such as 10/m", &t) != 0)
        return ERR_BAD;
    struct view unit = t.text, number = view_cut(&unit, '/');
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (view_equal(unit, view_str(units[i].unit)))
            g->limits.rate_seconds = units[i].seconds;
    if (g->limits.rate_seconds != 0 && view_number(number, UINT32_MAX, &g->limits.rate) == 0 &&
        g->limits.rate > 0)
        return 0;
    errors_add(l->errors, t.at, "expected a rate such as 5/s, 10/m or 100/h, not '%.*s'",
               WORD_ARG(t.text));
    return ERR_BAD;
}

static int read_bytes_out(struct lexer *l, struct grant *g) {
    if (!lexer_skip_word(l, "out"))
        return lexer_expected(l, "'out'");
    return word_size(l, "a size", &g->limits.bytes_out);
}

static int read_concurrent(struct lexer *l, struct grant *g) {
    return lexer_number(l, "a number of requests", 1, UINT32_MAX, &g->limits.concurrent);
}

static int read_mode(struct lexer *l, struct grant *g) {
    static const char *const modes[] = {"enforce", "observe"};
    size_t which;
    if (word_choose(l, "'enforce' or 'observe'", modes, 2, &which) != 0)
        return ERR_BAD;
    g->observe = which == 1;
    return 0;
}

static int read_note(struct lexer *l, struct grant *g) {
    struct token t;
    if (lexer_word(l, "a note in quotes", &t) != 0)
        return ERR_BAD;
    g->note = t.text;
    return 0;
}

static const struct term {
    const char *word;
    int (*read)(struct lexer *l, struct grant *g);
    bool limits;
} terms[] = {
    {"until", read_until, true},
    {"uses", read_uses, true},
    {"rate", read_rate, true},
    {"bytes", read_bytes_out, true},
    {"concurrent", read_concurrent, true},
    {"mode", read_mode, false},
    {"note", read_note, false},
};

enum { TERMS = sizeof terms / sizeof terms[0] };

const char *grant_term(size_t i) {
    return i < TERMS ? terms[i].word : NULL;
}

static size_t term_at(const struct lexer *l) {
    size_t i = 0;
    while (i < TERMS && !lexer_at_word(l, terms[i].word))
        i++;
    return i;
}

static int read_terms(struct lexer *l, struct grant *g) {
    bool seen[TERMS] = {false};
    while (lexer_at(l, TOKEN_WORD)) {
        size_t i = term_at(l);
        struct token t = lexer_take(l);
        if (i == TERMS) {
            struct guess guess = guess_of(t.text);
            for (size_t k = 0; k < TERMS; k++)
                guess_offer(&guess, view_str(terms[k].word));
            errors_add(l->errors, t.at, "'%.*s' is no word of a grant%s", WORD_ARG(t.text),
                       guess_text(&guess));
            return ERR_BAD;
        }
        if (seen[i]) {
            errors_add(l->errors, t.at, "a second '%s' in a grant", terms[i].word);
            return ERR_BAD;
        }
        seen[i] = true;
        g->limited = g->limited || terms[i].limits;
        if (terms[i].read(l, g) != 0)
            return ERR_BAD;
    }
    return 0;
}

static int add_grant(struct policy_source *s, const struct token *service,
                     const struct token *operation) {
    struct grant *g = arena_alloc(&s->policy->arena, sizeof *g);
    if (!g)
        return ERR_MEMORY;
    *g = (struct grant){
        .service = service->text, .service_at = service->at, .index = s->policy->n_grants};
    if (operation) {
        g->operation = operation->text;
        g->operation_at = operation->at;
    }
    *s->grants = g;
    s->grants = &g->next;
    return 0;
}

/* Names of operations up to the first word that is a term of the grant. */
static int read_granted(struct policy_source *s, struct lexer *l, const struct token *service) {
    if (lexer_skip_word(l, "all"))
        return add_grant(s, service, NULL);
    do {
        struct token operation;
        if (lexer_name(l, "the name of an operation, or 'all'", &operation) != 0)
            return ERR_BAD;
        if (add_grant(s, service, &operation) != 0)
            return ERR_MEMORY;
    } while (lexer_at(l, TOKEN_WORD) && term_at(l) == TERMS);
    return 0;
}

/* The terms count for all operations of the line. */
static void spread_terms(struct grant *first, const struct grant *terms_of_line) {
    for (struct grant *g = first; g; g = g->next) {
        g->limits = terms_of_line->limits;
        g->limited = terms_of_line->limited;
        g->observe = terms_of_line->observe;
        g->note = terms_of_line->note;
    }
}

static int read_grant(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    struct grant **first = s->grants, line = {.index = 0};
    struct token service;
    (void)at;
    if (lexer_name(l, "the name of a service", &service) != 0)
        return ERR_BAD;
    int err = read_granted(s, l, &service);
    if (err == 0)
        err = read_terms(l, &line);
    spread_terms(*first, &line);
    s->policy->n_grants++;
    return err;
}

/* ---- a sandbox ---- */

static bool is_glob(struct view v) {
    return view_find(v, '*') < v.n;
}

/* A name, or one with stars in it. */
static int read_name(struct lexer *l, struct token *out) {
    uint8_t plain[POLICY_NAME_MAX];
    if (!lexer_at(l, TOKEN_WORD) || !is_glob(l->token.text))
        return lexer_name(l, "the name of a sandbox", out);
    *out = lexer_take(l);
    size_t n = out->text.n < sizeof plain ? out->text.n : sizeof plain;
    for (size_t i = 0; i < n; i++)
        plain[i] = out->text.p[i] == '*' ? 'x' : out->text.p[i];
    if (n == out->text.n && name_is_good(view_of(plain, n)))
        return 0;
    errors_add(l->errors, out->at,
               "'%.*s' is no name of sandboxes: a name, with '*' for any run of its "
               "characters",
               WORD_ARG(out->text));
    return ERR_BAD;
}

static int read_labels(struct policy_source *s, struct lexer *l, struct sandbox *sandbox) {
    struct mention **end = &sandbox->labels;
    do {
        int err = word_mention(s, l, "a label", &end);
        if (err != 0)
            return err;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

static int read_head(struct policy_source *s, struct lexer *l, struct sandbox *sandbox) {
    struct token name = {.at = sandbox->at};
    int err = read_name(l, &name);
    sandbox->name = name.text;
    sandbox->glob = is_glob(name.text);
    sandbox->at = name.at;
    if (err != 0)
        return err;
    *s->sandboxes = sandbox;
    s->sandboxes = &sandbox->next;
    s->policy->n_sandboxes++;
    return lexer_skip_word(l, "label") ? read_labels(s, l, sandbox) : 0;
}

int read_sandbox(void *source, struct lexer *l, const struct token *at) {
    static const struct statement words[] = {{"grant", read_grant, false}};
    struct policy_source *s = source;
    if (s->policy->n_sandboxes == SANDBOXES_MAX) {
        errors_add(l->errors, at->at, "more than %d sandboxes", SANDBOXES_MAX);
        return ERR_BAD;
    }
    struct sandbox *sandbox = arena_alloc(&s->policy->arena, sizeof *sandbox);
    if (!sandbox)
        return ERR_MEMORY;
    *sandbox = (struct sandbox){.at = at->at, .layer = s->layer};
    int err = read_head(s, l, sandbox);
    if (err != 0 && !lexer_at(l, TOKEN_OPEN))
        return err;
    s->grants = &sandbox->grants;
    int block = statements_read(l, words, 1, "a sandbox", s);
    return block != 0 ? block : err;
}

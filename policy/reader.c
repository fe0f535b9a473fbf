#include "policy/reader.h"

/* ---- files ---- */

static int read_file(struct policy_source *s, struct view text, const char *name,
                     struct policy_errors *errors);

/* Whether the file is being read already; how it was named when it was. */
static bool is_open(const struct policy_source *s, const char *name) {
    for (size_t i = 0; i < s->depth; i++)
        if (strcmp(s->open[i], name) == 0)
            return true;
    return false;
}

static bool was_read(const struct policy_source *s, const char *name) {
    for (size_t i = 0; i < s->n_files; i++)
        if (strcmp(s->names[i], name) == 0)
            return true;
    return false;
}

static int include_text(struct policy_source *s, struct lexer *l, const struct token *t,
                        struct view text, const char *name) {
    if (is_open(s, name)) {
        errors_add(l->errors, t->at, "'%.*s' includes itself", WORD_ARG(t->text));
        return ERR_BAD;
    }
    if (was_read(s, name)) {
        errors_add(l->errors, t->at, "'%.*s' is included twice", WORD_ARG(t->text));
        return ERR_BAD;
    }
    if (s->n_files == FILES_MAX) {
        errors_add(l->errors, t->at, "more than %d files", FILES_MAX);
        return ERR_BAD;
    }
    enum layer layer = s->layer;
    int err = read_file(s, text, name, l->errors);
    s->layer = layer;
    s->file = l->file;
    return err;
}

static int read_include(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    char name[FILE_NAME_MAX];
    const char *why = "it cannot be read";
    struct token t;
    struct buf text;
    (void)at;
    if (lexer_word(l, "a file", &t) != 0)
        return ERR_BAD;
    if (!s->files) {
        errors_add(l->errors, t.at, "other files are not read here");
        return ERR_BAD;
    }
    buf_init(&text, POLICY_TEXT_MAX);
    int err = s->files->read(s->files->ctx, s->file, t.text, &text, name, sizeof name, &why);
    if (err == ERR_MEMORY) {
        buf_free(&text);
        return err;
    }
    if (err != 0) {
        errors_add(l->errors, t.at, "'%.*s': %s", WORD_ARG(t.text), why);
        err = ERR_BAD;
    } else {
        err = include_text(s, l, &t, buf_view(&text), name);
    }
    buf_free(&text);
    return err;
}

/* ---- the statements of a file ---- */

/* What a file says to be holds for it and for what it includes. */
static int read_layer(struct policy_source *s, struct lexer *l) {
    static const char *const known[] = {"vendor", "organisation", "project", "session"};
    size_t which;
    while (lexer_at(l, TOKEN_END))
        lexer_take(l);
    if (!lexer_skip_word(l, "layer"))
        return 0;
    if (word_choose(l, "'vendor', 'organisation', 'project' or 'session'", known, 4, &which) != 0)
        return ERR_BAD;
    s->layer = (enum layer)which;
    if (lexer_at(l, TOKEN_END) || lexer_at(l, TOKEN_EOF))
        return 0;
    return lexer_expected(l, "the end of the statement (a new line or ';')");
}

static int late_layer(void *source, struct lexer *l, const struct token *at) {
    (void)source;
    errors_add(l->errors, at->at, "'layer' is the first statement of a file");
    return ERR_BAD;
}

/* Reads a text of which a copy is made; name is one of the policy's, or outlives it. */
static int read_text(struct policy_source *s, struct view text, const char *name,
                     struct policy_errors *errors) {
    static const struct statement words[] = {
        {"service", read_service, false},
        {"sandbox", read_sandbox, false},
        {"expect", read_expect, false},
        {"guard", read_guard, false},
        {"include", read_include, STATEMENT_NAMES},
        {"layer", late_layer, false},
    };
    struct view copy = arena_copy(&s->policy->arena, text);
    struct lexer l;
    if (!copy.p)
        return ERR_MEMORY;
    lexer_init(&l, copy, name, errors);
    s->file = name;
    s->names[s->n_files++] = s->open[s->depth++] = name;
    int err = read_layer(s, &l);
    if (err == 0 || err == ERR_BAD)
        err = statements_read(&l, words, sizeof words / sizeof words[0], NULL, s);
    s->depth--;
    return err;
}

static int read_file(struct policy_source *s, struct view text, const char *name,
                     struct policy_errors *errors) {
    struct view copy = arena_copy(&s->policy->arena, view_str(name));
    return copy.p ? read_text(s, text, (const char *)copy.p, errors) : ERR_MEMORY;
}

int policy_read(struct policy *p, struct view text, const char *file,
                const struct policy_files *files, struct policy_errors *errors) {
    struct policy_source s = {.policy = p,
                              .services = &p->services,
                              .guards = &p->guards,
                              .sandboxes = &p->sandboxes,
                              .expectations = &p->expectations,
                              .files = files,
                              .layer = LAYER_PROJECT};
    return read_text(&s, text, file, errors);
}

#include "policy/reader.h"

#include "policy/method.h"

/* ---- methods and path ---- */

static int read_method(struct policy_source *s, struct lexer *l, struct rule *r) {
    struct token t = lexer_take(l);
    bool star = view_equal(t.text, VIEW("*"));
    uint64_t bit = star ? methods_grantable() : method_bit(t.text);
    if (bit == 0) {
        struct guess g = guess_of(t.text);
        for (size_t i = 0; method_at(i).n; i++)
            guess_offer(&g, method_at(i));
        const char *guess = guess_text(&g);
        errors_add(l->errors, t.at, "'%.*s' is no registered method%s", WORD_ARG(t.text),
                   *guess ? guess : "; a path begins with '/'");
    } else if ((bit & ~s->methods) != 0) {
        errors_add(l->errors, t.at, "%.*s cannot be granted", WORD_ARG(t.text));
    } else if ((r->methods & bit) != 0) {
        errors_add(l->errors, t.at, "'%.*s' names a method twice", WORD_ARG(t.text));
    } else {
        r->methods |= bit;
        r->any_method = r->any_method || (star && s->methods == UINT64_MAX);
        return 0;
    }
    return ERR_BAD;
}

static int read_path(struct lexer *l, struct rule *r) {
    const char *why = "malformed";
    struct token t;
    if (lexer_word(l, "a path that begins with '/'", &t) != 0)
        return ERR_BAD;
    if (path_pattern_parse(t.text, !t.quoted, &r->path, &why) == 0)
        return 0;
    errors_add(l->errors, t.at, "'%.*s' is no path pattern: %s", WORD_ARG(t.text), why);
    return ERR_BAD;
}

static void append_rule(struct policy_source *s, struct rule *r) {
    *s->rules = r;
    s->rules = &r->next;
    s->policy->n_rules++;
}

/* A new line of the block. NULL: an error was reported, or *err is ERR_MEMORY. */
static struct rule *new_rule(struct policy_source *s, struct lexer *l, struct position at,
                             int *err) {
    struct rule *r = arena_alloc(&s->policy->arena, sizeof *r);
    *err = r ? 0 : ERR_MEMORY;
    if (!r)
        return NULL;
    if (s->n_rules++ == RULES_MAX) {
        errors_add(l->errors, at, "more than %d rules in a block", RULES_MAX);
        *err = ERR_BAD;
        return NULL;
    }
    r->at = at;
    s->rule = r;
    s->conditions = &r->conditions;
    return r;
}

static int read_plain_rule(struct policy_source *s, struct lexer *l) {
    int err;
    struct rule *r = new_rule(s, l, l->token.at, &err);
    if (!r)
        return err;
    while (lexer_at(l, TOKEN_WORD) && !view_starts(l->token.text, VIEW("/")))
        if (read_method(s, l, r) != 0)
            return ERR_BAD;
    if (r->methods == 0 && lexer_at(l, TOKEN_WORD))
        return lexer_expected(l, "a method before the path");
    if (read_path(l, r) != 0)
        return ERR_BAD;
    err = read_protocol(s, l);
    if (err == 0)
        err = read_conditions(s, l);
    if (err == 0)
        append_rule(s, r);
    return err;
}

/* ---- git over HTTP ---- */

struct git_line {
    struct position at;
    bool fold, fetches;
    struct view service; /* git-upload-pack or git-receive-pack */
};

static int join(struct arena *a, struct view repository, const char *suffix, struct view service,
                const char *between, struct view *out) {
    size_t n_suffix = strlen(suffix), n_between = strlen(between);
    size_t n = 1 + repository.n + n_suffix + n_between + service.n;
    uint8_t *to = arena_alloc(a, n);
    if (!to)
        return ERR_MEMORY;
    *out = view_of(to, n);
    *to++ = '/';
    view_copy(repository, to);
    memcpy(to + repository.n, suffix, n_suffix);
    memcpy(to + repository.n + n_suffix, between, n_between);
    view_copy(service, to + repository.n + n_suffix + n_between);
    return 0;
}

/* The condition that the one parameter `service` names the service. */
static int add_service(struct policy_source *s, const struct git_line *g) {
    struct condition *c = add_condition(s, CONDITION_QUERY, g->at);
    struct test_value *value = arena_alloc(&s->policy->arena, sizeof *value);
    if (!c || !value)
        return ERR_MEMORY;
    *value = (struct test_value){BODY_STRING, g->service};
    c->name = VIEW("service");
    c->once = true;
    c->test = (struct test){.kind = TEST_VALUES, .values = value, .n_values = 1};
    return 0;
}

/* One request of the protocol: what refs there are, or the pack itself. */
static int add_git_rule(struct policy_source *s, struct lexer *l, const struct git_line *g,
                        const struct token *repository, const char *suffix, bool refs) {
    const char *why = "malformed";
    struct view path;
    int err;
    struct rule *r = new_rule(s, l, repository->at, &err);
    if (!r)
        return err;
    if (join(&s->policy->arena, repository->text, suffix, refs ? VIEW("info/refs") : g->service,
             "/", &path) != 0)
        return ERR_MEMORY;
    if (path_pattern_parse(path, !repository->quoted, &r->path, &why) != 0) {
        errors_add(l->errors, repository->at, "'%.*s' is no repository: %s",
                   WORD_ARG(repository->text), why);
        return ERR_BAD;
    }
    r->path.fold = g->fold;
    r->fetches = g->fetches;
    r->methods = method_bit(refs ? VIEW("GET") : VIEW("POST"));
    if (refs && add_service(s, g) != 0)
        return ERR_MEMORY;
    append_rule(s, r);
    return 0;
}

static bool ends_in_name(struct view repository) {
    uint8_t last = repository.p[repository.n - 1];
    return last != '*' && last != '}' && last != '/';
}

/* With and without ".git", which forges take for the same. */
static int add_repository(struct policy_source *s, struct lexer *l, const struct git_line *g,
                          struct token t) {
    if (view_ends(t.text, VIEW(".git")))
        t.text = view_head(t.text, t.text.n - 4);
    if (t.text.n == 0 || t.text.p[0] == '/') {
        errors_add(l->errors, t.at,
                   "expected a repository such as acme/widgets, without '/' before it");
        return ERR_BAD;
    }
    int err = 0;
    for (int named = 0; err == 0 && named <= ends_in_name(t.text); named++)
        for (int refs = 0; err == 0 && refs < 2; refs++)
            err = add_git_rule(s, l, g, &t, named ? ".git" : "", refs);
    return err;
}

static int read_git(struct policy_source *s, struct lexer *l) {
    static const char *const kinds[] = {"fetch", "push"};
    struct git_line g = {.at = l->token.at};
    size_t which;
    lexer_take(l);
    g.fold = lexer_skip_word(l, "case-folded");
    if (word_choose(l, "'fetch' or 'push'", kinds, 2, &which) != 0)
        return ERR_BAD;
    g.fetches = which == 0;
    g.service = which == 0 ? VIEW("git-upload-pack") : VIEW("git-receive-pack");
    do {
        struct token t;
        if (lexer_word(l, "a repository such as acme/widgets", &t) != 0)
            return ERR_BAD;
        int err = add_repository(s, l, &g, t);
        if (err != 0)
            return err;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

static int read_rule(void *source, struct lexer *l) {
    return lexer_at_word(l, "git") ? read_git(source, l) : read_plain_rule(source, l);
}

/* ---- operation ---- */

static int read_marks(struct lexer *l, struct operation *o) {
    static const char *const presets[] = {"read", "write"};
    for (;;) {
        struct position at = l->token.at;
        size_t which;
        if (lexer_skip_word(l, "anonymous")) {
            o->anonymous = true;
        } else if (lexer_skip_word(l, "preset")) {
            if (word_choose(l, "'read' or 'write'", presets, 2, &which) != 0)
                return ERR_BAD;
            if (o->preset != PRESET_NONE) {
                errors_add(l->errors, at, "a second 'preset'");
                return ERR_BAD;
            }
            o->preset = which == 0 ? PRESET_READ : PRESET_WRITE;
        } else {
            return 0;
        }
    }
}

static int read_lines(struct policy_source *s, struct lexer *l, const char *inside,
                      uint64_t methods) {
    s->n_rules = 0;
    s->methods = methods;
    return lines_read(l, read_rule, inside, s);
}

int read_operation(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    struct operation *o = arena_alloc(&s->policy->arena, sizeof *o);
    if (!o)
        return ERR_MEMORY;
    struct token name = {.at = at->at};
    int err = lexer_name(l, "the name of an operation", &name);
    size_t before = l->errors->total;
    *o = (struct operation){
        .name = name.text, .service = s->service, .index = s->policy->n_operations, .at = name.at};
    s->rules = &o->rules;
    if (err == 0)
        err = read_marks(l, o);
    if (err != 0 && !lexer_at(l, TOKEN_OPEN))
        return err;
    int block = read_lines(s, l, "an operation", methods_grantable());
    if (block != 0 || err != 0)
        return block != 0 ? block : err;
    if (!o->rules && l->errors->total == before) {
        errors_add(l->errors, name.at, "an operation without a rule");
        return ERR_BAD;
    }
    s->policy->n_operations++;
    s->service->n_operations++;
    *s->operations = o;
    s->operations = &o->next;
    return 0;
}

/* ---- never, and guards ---- */

int read_never(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    if (lexer_skip_word(l, "guard"))
        return word_mention(s, l, "the name of a guard", &s->mentions);
    if (lexer_skip_word(l, "all")) {
        if (s->service->never_all.line != 0)
            errors_add(l->errors, at->at, "a second 'never all', the first is in line %u",
                       s->service->never_all.line);
        s->service->never_all = at->at;
        return 0;
    }
    struct rule **first = s->rules = s->nevers;
    size_t before = l->errors->total;
    int err = read_lines(s, l, "never", UINT64_MAX);
    s->nevers = s->rules;
    if (err == 0 && !*first && l->errors->total == before)
        errors_add(l->errors, at->at, "a 'never' without a rule");
    return err;
}

int read_guard(void *source, struct lexer *l, const struct token *at) {
    struct policy_source *s = source;
    struct guard *g = arena_alloc(&s->policy->arena, sizeof *g);
    if (!g)
        return ERR_MEMORY;
    struct token name = {.at = at->at};
    int err = lexer_name(l, "the name of a guard", &name);
    *g = (struct guard){.name = name.text, .at = name.at};
    if (err == 0) {
        *s->guards = g;
        s->guards = &g->next;
    }
    if (err != 0 && !lexer_at(l, TOKEN_OPEN))
        return err;
    s->rules = &g->rules;
    size_t before = l->errors->total;
    int block = read_lines(s, l, "a guard", UINT64_MAX);
    if (block == 0 && err == 0 && !g->rules && l->errors->total == before)
        errors_add(l->errors, name.at, "a guard without a rule");
    return block != 0 ? block : err;
}

#include "policy/reader.h"

#include "policy/reason.h"

#include <stdio.h>

int word_unknown(struct lexer *l, const struct token *t, const char *const *known, size_t n) {
    struct guess g = guess_of(t->text);
    char list[96] = "";
    for (size_t i = 0, at = 0; i < n && at < sizeof list; i++) {
        guess_offer(&g, view_str(known[i]));
        const char *between = i == 0 ? "" : i + 1 == n ? " or " : ", ";
        int put = snprintf(list + at, sizeof list - at, "%s'%s'", between, known[i]);
        at += put > 0 ? (size_t)put : 0;
    }
    errors_add(l->errors, t->at, "expected %s, not '%.*s'%s", list, WORD_ARG(t->text),
               guess_text(&g));
    return ERR_BAD;
}

/* ---- sandboxes ---- */

static int add_grant(struct policy_source *s, const struct token *service,
                     const struct token *operation) {
    struct grant *g = arena_alloc(&s->policy->arena, sizeof *g);
    if (!g)
        return ERR_MEMORY;
    *g = (struct grant){.service = service->text, .service_at = service->at};
    if (operation) {
        g->operation = operation->text;
        g->operation_at = operation->at;
    }
    *s->grants = g;
    s->grants = &g->next;
    return 0;
}

static int read_grant(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    struct policy_source *s = source;
    struct token service, operation;
    if (lexer_name(l, "the name of a service", &service) != 0)
        return ERR_BAD;
    if (lexer_skip_word(l, "all"))
        return add_grant(s, &service, NULL);
    do {
        if (lexer_name(l, "the name of an operation, or 'all'", &operation) != 0)
            return ERR_BAD;
        if (add_grant(s, &service, &operation) != 0)
            return ERR_MEMORY;
    } while (lexer_at(l, TOKEN_WORD));
    return 0;
}

static int read_sandbox(void *source, struct lexer *l, const struct token *at) {
    static const struct statement words[] = {{"grant", read_grant, false}};
    struct policy_source *s = source;
    if (s->policy->n_sandboxes == SANDBOXES_MAX) {
        errors_add(l->errors, at->at, "more than %d sandboxes", SANDBOXES_MAX);
        return ERR_BAD;
    }
    struct sandbox *sandbox = arena_alloc(&s->policy->arena, sizeof *sandbox);
    if (!sandbox)
        return ERR_MEMORY;
    struct token name = {.at = at->at};
    int err = lexer_name(l, "the name of a sandbox", &name);
    *sandbox = (struct sandbox){.name = name.text, .at = name.at};
    if (err == 0) {
        *s->sandboxes = sandbox;
        s->sandboxes = &sandbox->next;
        s->policy->n_sandboxes++;
    }
    if (err != 0 && !lexer_at(l, TOKEN_OPEN))
        return err;
    s->grants = &sandbox->grants;
    int block = statements_read(l, words, 1, "a sandbox", s);
    return block != 0 ? block : err;
}

/* ---- expectations ---- */

static int read_verdict(struct lexer *l, struct expectation *e) {
    static const char *const known[] = {"allow", "deny"};
    struct token t;
    if (lexer_word(l, "'allow' or 'deny'", &t) != 0)
        return ERR_BAD;
    e->allow = view_equal(t.text, VIEW("allow"));
    return e->allow || view_equal(t.text, VIEW("deny")) ? 0 : word_unknown(l, &t, known, 2);
}

static int read_with(struct lexer *l, struct expectation *e) {
    static const char *const known[] = {"ours", "none", "foreign"};
    struct token t;
    if (lexer_word(l, "'ours', 'none' or 'foreign'", &t) != 0)
        return ERR_BAD;
    for (size_t i = 0; i < 3; i++)
        if (view_equal(t.text, view_str(known[i]))) {
            e->with = (enum with)(WITH_OURS + (int)i);
            return 0;
        }
    return word_unknown(l, &t, known, 3);
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

static int read_request(struct policy_source *s, struct lexer *l, struct expectation *e) {
    struct token t;
    if (lexer_word(l, "a method", &t) != 0)
        return ERR_BAD;
    e->method = t.text;
    if (lexer_word(l, s->service ? "a path or URL" : "a URL", &t) != 0)
        return ERR_BAD;
    e->url = t.text;
    e->url_at = t.at;
    return lexer_skip_word(l, "reason") ? read_reason(l, e) : 0;
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

/* ---- the file ---- */

int policy_read(struct policy *p, struct view text, const char *file,
                struct policy_errors *errors) {
    static const struct statement words[] = {
        {"service", read_service, false},
        {"sandbox", read_sandbox, false},
        {"expect", read_expect, false},
    };
    struct policy_source s = {.policy = p,
                              .services = &p->services,
                              .sandboxes = &p->sandboxes,
                              .expectations = &p->expectations};
    struct view copy = arena_copy(&p->arena, text);
    if (!copy.p)
        return ERR_MEMORY;
    struct lexer l;
    lexer_init(&l, copy, file, errors);
    return statements_read(&l, words, 3, NULL, &s);
}

#include "policy/explain.h"
#include "policy/reader.h"

#include <stdio.h>
#include <stdlib.h>

enum { PLACE_TEXT_SIZE = 128, NEAREST_TEXT_SIZE = 384 };

/* A path inside a service means its first host that is one host, at its first port. */
static int place_in_service(const struct expectation *e, struct trial *t, const char **why) {
    const struct service *s = e->service;
    const struct host_rule *h = s->hosts;
    while (h && h->pattern.reach != REACH_EXACT)
        h = h->next;
    if (!h) {
        *why = "all hosts of this service have stars, write a whole URL";
        return ERR_BAD;
    }
    t->authority = h->pattern.base;
    t->authority.port = s->ports[0];
    t->tls = s->tls != SERVICE_CLEAR;
    t->target = e->url;
    return 0;
}

static int run(const struct policy *p, const struct expectation *e, struct verdict *out,
               struct nearest *nearest, const char **why) {
    struct trial t = {.sandbox = e->sandbox,
                      .method = e->method,
                      .with = e->with,
                      .fields = e->fields,
                      .n_fields = e->n_fields,
                      .type = e->type,
                      .body = e->body};
    struct who all = who_of(e->service ? &e->service->everything : NULL);
    const struct who *who = e->sandbox.n ? NULL : &all;
    bool path = e->service && view_starts(e->url, VIEW("/"));
    int err = path ? place_in_service(e, &t, why) : trial_url(e->url, &t, why);
    return err != 0 ? err : trial_run_as(p, who, &t, out, nearest, why);
}

/* Where it was decided; nothing, where the default is what refused. */
static const char *put_place(const struct verdict *v, char out[static PLACE_TEXT_SIZE]) {
    out[0] = '\0';
    if (v->at.file)
        snprintf(out, PLACE_TEXT_SIZE, " at %s:%u:%u", v->at.file, v->at.line, v->at.column);
    return out;
}

/* "; nearest is 'add' at FILE:7:24: what fails of it", where that is more than the verdict says. */
static const char *put_nearest(const struct nearest *n, char out[static NEAREST_TEXT_SIZE]) {
    const struct failure *first = n->failures;
    out[0] = '\0';
    if (n->operation && n->n_failures > 0 && first->clause != CLAUSE_REFUSAL)
        snprintf(out, NEAREST_TEXT_SIZE, "; nearest is '%.*s' at %s:%u:%u: %s",
                 VIEW_ARG(n->operation->name), n->at.file, n->at.line, n->at.column, first->text);
    return out;
}

static void compare(const struct expectation *e, const struct verdict *v,
                    const struct nearest *nearest, struct policy_errors *errors) {
    const struct reason_info *info = verdict_reason(v, v->reason);
    char place[PLACE_TEXT_SIZE], near[NEAREST_TEXT_SIZE];
    if (e->allow && !v->allow)
        errors_add(errors, e->at, "expected allow, but this is refused%s: %s (%s)%s",
                   put_place(v, place), info->code, info->title, put_nearest(nearest, near));
    else if (!e->allow && v->allow)
        errors_add(errors, e->at, "expected deny, but this is allowed by '%.*s'%s",
                   VIEW_ARG(v->operation->name), put_place(v, place));
    else if (e->reason.n && !view_equal(e->reason, view_str(info->code)))
        errors_add(errors, e->at, "expected the reason %.*s, but it is %s%s", WORD_ARG(e->reason),
                   info->code, put_place(v, place));
}

static int try_all(const struct policy *p, const struct expectation *e,
                   struct policy_errors *errors) {
    for (; e; e = e->next) {
        struct verdict v = {.reason = REASON_ALLOWED};
        struct nearest nearest = {.operation = NULL};
        const char *why = "malformed";
        int err = run(p, e, &v, e->allow ? &nearest : NULL, &why);
        if (err == ERR_MEMORY)
            return err;
        if (err == 0)
            compare(e, &v, &nearest, errors);
        else
            errors_add(errors, e->url_at, "%.*s %.*s: %s", WORD_ARG(e->method), WORD_ARG(e->url),
                       why);
    }
    return 0;
}

int policy_try(const struct policy *p, struct policy_errors *errors) {
    return try_all(p, p->expectations, errors);
}

/* ---- in a file of their own ---- */

static int read_tests(struct policy *tests, struct view text, const char *file,
                      struct policy_errors *errors) {
    static const struct statement words[] = {{"expect", read_expect, false}};
    struct policy_source s = {.policy = tests, .expectations = &tests->expectations};
    struct lexer l;
    lexer_init(&l, text, file, errors);
    return statements_read(&l, words, 1, NULL, &s);
}

static int test(const struct policy *p, const struct policy *tests, struct policy_errors *errors) {
    for (const struct expectation *e = tests->expectations; e; e = e->next)
        policy_check_expectation(p, e, errors);
    return errors->total == 0 ? try_all(p, tests->expectations, errors) : ERR_BAD;
}

int policy_test(const struct policy *p, struct view text, const char *file, size_t *n,
                struct policy_errors *errors) {
    *n = 0;
    errors_reset(errors);
    struct policy *tests = calloc(1, sizeof *tests);
    if (!tests)
        return ERR_MEMORY;
    int err = read_tests(tests, text, file, errors);
    if (err == 0)
        err = errors->total == 0 ? test(p, tests, errors) : ERR_BAD;
    for (const struct expectation *e = tests->expectations; e; e = e->next)
        (*n)++;
    errors_sort(errors, file);
    policy_free(tests);
    return err;
}

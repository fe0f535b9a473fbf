#include "policy/lint.h"

#include "policy/cover.h"
#include "policy/errors.h"
#include "policy/method.h"

#include <stdarg.h>
#include <stdio.h>

struct linter {
    const struct policy *p;
    void (*found)(void *ctx, const struct lint_finding *f);
    void *ctx;
};

static void find(const struct linter *l, const char *code, struct position at, const char *remedy,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

static void find(const struct linter *l, const char *code, struct position at, const char *remedy,
                 const char *format, ...) {
    struct lint_finding f = {.code = code, .at = at, .remedy = remedy};
    va_list args;
    va_start(args, format);
    vsnprintf(f.text, sizeof f.text, format, args);
    va_end(args);
    l->found(l->ctx, &f);
}

/* ---- what nothing reaches ---- */

static const struct rule *refused_by(const struct linter *l, const struct rule *r) {
    for (const struct service *s = l->p->services; s; s = s->next) {
        if (!s->nevers || !service_covers(s, r->service))
            continue;
        for (const struct rule *never = s->nevers; never; never = never->next)
            if (rule_covers(never, r, true))
                return never;
    }
    return NULL;
}

/* Of two lines that are the same, the later one is the shadowed one; such do not load, but with different conditions. */
static const struct rule *shadowed_by(const struct rule *r) {
    bool before = true;
    for (const struct rule *q = r->operation->rules; q; q = q->next) {
        if (q == r)
            before = false;
        else if (rule_covers(q, r, false) && (before || !rule_covers(r, q, false)))
            return q;
    }
    return NULL;
}

static void look_for_dead_rules(const struct linter *l, const struct rule *r) {
    const struct rule *never = refused_by(l, r), *wider = shadowed_by(r);
    if (never)
        find(l, "unreachable", r->at, "take the line out, or narrow the never line",
             "a never line refuses all that this line allows: %s:%u:%u", never->at.file,
             never->at.line, never->at.column);
    else if (wider)
        find(l, "shadowed", r->at, "take one of the two lines out",
             "another line of the operation '%.*s' allows all of this: %s:%u:%u",
             VIEW_ARG(r->operation->name), wider->at.file, wider->at.line, wider->at.column);
}

static void look_for_dead_service(const struct linter *l, const struct service *s) {
    for (const struct service *q = l->p->services; q && s->operations; q = q->next)
        if (q->never_all.line != 0 && service_covers(q, s))
            find(l, "unreachable", s->at, "take the service out, or narrow the hosts of the other",
                 "'never all' of '%.*s' refuses every host of '%.*s': %s:%u:%u", VIEW_ARG(q->name),
                 VIEW_ARG(s->name), q->never_all.file, q->never_all.line, q->never_all.column);
}

/* ---- what is too wide ---- */

static bool is_any_path(const struct path_pattern *p) {
    return view_equal(p->text, VIEW("/**"));
}

static void look_for_wide_rules(const struct linter *l, const struct rule *r) {
    const struct credential *c = r->operation->credential;
    if (!is_any_path(&r->path))
        return;
    if (c)
        find(l, "credential-without-path", r->at,
             "name the paths that the credential is needed for",
             "the credential '%.*s' goes to every path of '%.*s'", VIEW_ARG(c->name),
             VIEW_ARG(r->service->name));
    else if (r->methods == methods_grantable())
        find(l, "wide-rule", r->at, "name the methods or paths that are needed",
             "the line allows every method and path");
}

static void look_for_wide_hosts(const struct linter *l, const struct service *s) {
    for (const struct host_rule *h = s->hosts; h && s->operations; h = h->next)
        if (h->wide)
            find(l, "wide-host", h->at, "name the hosts that are meant",
                 "'%.*s' covers hosts of strangers", WORD_ARG(h->text));
}

/* Its one operation is not of the text: what could be said of its lines is said here. */
static void look_for_splice(const struct linter *l, const struct service *s) {
    if (s->tls == SERVICE_SPLICE)
        find(l, "splice", s->tls_at,
             "intercept it, unless its clients trust no other certificate than the upstream's own",
             "nobody sees what leaves to '%.*s': any request, any credential, any data",
             VIEW_ARG(s->name));
}

static bool has_size(const struct rule *r) {
    for (const struct condition *c = r->conditions; c; c = c->next)
        if (c->kind == CONDITION_SIZE && !c->no)
            return true;
    return r->service->body_limit != UINT64_MAX;
}

/* ---- what nobody tries ---- */

static bool reaches(const struct expectation *e, const struct service *s) {
    const char *why;
    struct trial t;
    if (e->service || trial_url(e->url, &t, &why) != 0)
        return e->service == s;
    struct host_facts host = host_facts_of(&t.authority);
    for (const struct host_rule *h = s->hosts; h; h = h->next)
        if (host_pattern_match(&h->pattern, &host))
            return service_covers_port(s, t.authority.port);
    return false;
}

static bool is_expected(const struct linter *l, const struct service *s) {
    for (const struct expectation *e = l->p->expectations; e; e = e->next)
        if (reaches(e, s))
            return true;
    return false;
}

/* ---- what nobody may use ---- */

static bool is_granted(const struct policy *p, const struct operation *o) {
    for (size_t i = 0; i < p->n_identities; i++)
        if (bit_is_set(p->by_name[i].rights.operations, o->index))
            return true;
    for (size_t i = 0; i < p->n_globs; i++)
        if (bit_is_set(p->globs[i]->rights.operations, o->index))
            return true;
    return false;
}

/* One finding for all lines of a service, since one limit of the service mends all; lines that nobody may use let nothing leave. */
static void look_for_long_bodies(const struct linter *l, const struct service *s) {
    uint64_t reading =
        method_bit(VIEW("GET")) | method_bit(VIEW("HEAD")) | method_bit(VIEW("OPTIONS"));
    const struct rule *first = NULL;
    char more[64] = "";
    size_t n = 0;
    for (const struct operation *o = s->operations; o; o = o->next)
        for (const struct rule *r = o->rules; r; r = r->next) {
            if ((r->methods & ~reading) == 0 || r->fetches || has_size(r) ||
                (l->p->sandboxes && !is_granted(l->p, o)))
                continue;
            first = first ? first : r;
            n++;
        }
    if (n > 1)
        snprintf(more, sizeof more, ", and by %zu more of the service", n - 1);
    if (first)
        find(l, "no-body-limit", first->at,
             "add 'limit body SIZE' to the service, or '{ body at most SIZE }' to the line",
             "a body of any size may leave by this line%s", more);
}

/* A file of services only is there for others, which need not use all of it. */
static bool has_sandboxes(const struct policy *p, const char *file) {
    const struct sandbox *s = p->sandboxes;
    while (s && s->at.file != file)
        s = s->next;
    return s != NULL;
}

static void look_for_grants(const struct linter *l, const struct operation *o) {
    if (has_sandboxes(l->p, o->at.file) && !is_granted(l->p, o))
        find(l, "not-granted", o->at, "grant it, or take it out",
             "no sandbox is granted the operation '%.*s'", VIEW_ARG(o->name));
}

/* ---- grants ---- */

static void look_at_grant(const struct linter *l, const struct grant *g, uint64_t now) {
    if (g->observe)
        find(l, "observes", g->service_at, "take 'mode observe' out when you have seen enough",
             "what '%.*s' may not do at '%.*s' is let through", WORD_ARG(g->sandbox->name),
             VIEW_ARG(g->service));
    if (g->limits.until != 0 && now >= g->limits.until)
        find(l, "ended", g->service_at, "take the grant out, or let it last longer",
             "the time of this grant has passed");
}

void policy_lint(const struct policy *p, uint64_t now,
                 void (*found)(void *ctx, const struct lint_finding *f), void *ctx) {
    struct linter l = {p, found, ctx};
    for (const struct service *s = p->services; s; s = s->next) {
        look_for_dead_service(&l, s);
        look_for_wide_hosts(&l, s);
        look_for_splice(&l, s);
        for (const struct operation *o = s->operations; o; o = o->next) {
            look_for_grants(&l, o);
            for (const struct rule *r = o->rules; r && s->tls != SERVICE_SPLICE; r = r->next) {
                look_for_dead_rules(&l, r);
                look_for_wide_rules(&l, r);
            }
        }
        if (s->tls != SERVICE_SPLICE)
            look_for_long_bodies(&l, s);
        if (!is_expected(&l, s))
            find(&l, "no-expectation", s->at,
                 "add 'expect allow' and 'expect deny' lines to the service",
                 "the service '%.*s' has no expectation", VIEW_ARG(s->name));
    }
    for (size_t i = 0; i < policy_grants(p); i++)
        if (policy_grant_at(p, i))
            look_at_grant(&l, policy_grant_at(p, i), now);
}

#include "policy/explain.h"

#include "policy/echo.h"
#include "policy/errors.h"
#include "policy/method.h"
#include "policy/rules.h"

#include <stdarg.h>
#include <stdio.h>

const char *clause_word(enum clause c) {
    static const char *const words[] = {"host", "port",      "tls",   "method",
                                        "path", "condition", "grant", "refusal"};
    return words[c];
}

bool nearest_fails_only(const struct nearest *n, unsigned clauses) {
    for (size_t i = 0; i < n->n_failures; i++)
        if ((clauses & 1u << n->failures[i].clause) == 0)
            return false;
    return n->operation && n->n_failures > 0;
}

struct question {
    const struct policy *p;
    const struct request_facts *f;
    const struct who *who; /* NULL: nobody has this name */
    struct host_facts host;
};

/* How far a line is from the request; compared from the top. */
struct distance {
    bool elsewhere; /* it is not about this method, path and place at all */
    size_t failed;
    bool other_host;
    size_t strange; /* parts of the path that are left, where it differs */
    bool other_method, ungranted;
    uint32_t rank;
};

static bool is_nearer(const struct distance *a, const struct distance *b) {
    if (a->elsewhere != b->elsewhere)
        return b->elsewhere;
    if (a->failed != b->failed)
        return a->failed < b->failed;
    if (a->other_host != b->other_host)
        return b->other_host;
    if (a->strange != b->strange)
        return a->strange < b->strange;
    if (a->other_method != b->other_method)
        return b->other_method;
    if (a->ungranted != b->ungranted)
        return b->ungranted;
    return a->rank > b->rank;
}

/* ---- one line ---- */

static bool covers_host(const struct service *s, const struct question *q) {
    if (echo_is_host(q->f->authority))
        return false;
    for (const struct host_rule *h = s->hosts; h; h = h->next)
        if (host_pattern_match(&h->pattern, &q->host))
            return true;
    return false;
}

static bool covers_path(const struct rule *r, const struct target *t) {
    return path_pattern_match(&r->path, t, false) && service_allows_path(r->service, t);
}

/* Segments of the path and the pattern behind those that they begin with alike. */
static size_t path_difference(const struct path_pattern *p, struct view path) {
    struct view parts = p->text, part, segment;
    enum part_kind kind;
    size_t n = 0;
    bool alike = true;
    while (target_segment(&path, &segment)) {
        bool more = path_pattern_part(p, &parts, &part, &kind);
        if (more && kind == PART_MANY)
            return 0;
        alike = alike && more && (kind != PART_LITERAL || view_equal(part, segment));
        n += !alike;
    }
    while (path_pattern_part(p, &parts, &part, &kind))
        n++;
    return n;
}

static size_t failed_conditions(const struct rule *r, const struct request_facts *f) {
    size_t n = 0;
    for (const struct condition *c = r->conditions; c; c = c->next)
        n += !condition_holds(c, r->conditions, f, false);
    n += f->websocket && !r->websocket;
    return n;
}

static bool is_granted(const struct question *q, const struct rule *r) {
    return q->who && who_holds(q->who, r->operation);
}

static struct distance distance_of(const struct question *q, const struct rule *r) {
    const struct service *s = r->service;
    bool path = covers_path(r, q->f->target);
    struct distance d = {.other_host = !covers_host(s, q),
                         .strange = path ? 0 : 1 + path_difference(&r->path, q->f->target->path),
                         .other_method = (r->methods & method_bit(q->f->method)) == 0,
                         .ungranted = !is_granted(q, r),
                         .rank = r->rank};
    d.failed = (size_t)d.other_host + d.other_method + !path;
    d.failed += !service_covers_port(s, q->f->authority->port);
    d.failed += !q->f->tls && s->tls != SERVICE_CLEAR;
    d.elsewhere = d.failed > 0;
    d.failed += failed_conditions(r, q->f);
    return d;
}

static const struct rule *find_nearest(const struct policy *p, const struct question *q) {
    const struct rule *best = NULL;
    struct distance least = {0};
    for (const struct service *s = p->services; s; s = s->next)
        for (const struct operation *o = s->operations; o; o = o->next)
            for (const struct rule *r = o->rules; r; r = r->next) {
                struct distance d = distance_of(q, r);
                if (best && !is_nearer(&d, &least))
                    continue;
                best = r;
                least = d;
            }
    return best;
}

/* ---- what fails of it ---- */

static void fail(struct nearest *out, enum clause clause, struct position at, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

static void fail(struct nearest *out, enum clause clause, struct position at, const char *format,
                 ...) {
    if (out->n_failures == FAILURES_MAX)
        return;
    struct failure *f = &out->failures[out->n_failures++];
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    f->clause = clause;
    f->at = at;
}

static void explain_place(const struct question *q, const struct rule *r, struct nearest *out) {
    const struct service *s = r->service;
    if (!covers_host(s, q))
        fail(out, CLAUSE_HOST, s->hosts->at, "'%.64s' is no host of '%.*s'", q->f->authority->host,
             VIEW_ARG(s->name));
    if (!service_covers_port(s, q->f->authority->port))
        fail(out, CLAUSE_PORT, s->at, "%u is no port of '%.*s'", q->f->authority->port,
             VIEW_ARG(s->name));
    if (!q->f->tls && s->tls != SERVICE_CLEAR)
        fail(out, CLAUSE_TLS, s->at, "'%.*s' is only reached by TLS", VIEW_ARG(s->name));
}

static void put_methods(struct buf *out, uint64_t methods) {
    if (methods == methods_grantable()) {
        buf_put_str(out, " *");
        return;
    }
    for (size_t i = 0; method_at(i).n > 0; i++)
        if ((methods & method_bit(method_at(i))) != 0)
            buf_printf(out, " %.*s", VIEW_ARG(method_at(i)));
}

static void explain_line(const struct question *q, const struct rule *r, struct nearest *out) {
    struct buf methods;
    buf_init(&methods, 512);
    put_methods(&methods, r->methods);
    if ((r->methods & method_bit(q->f->method)) == 0)
        fail(out, CLAUSE_METHOD, r->at, "%.*s is not among%.*s", WORD_ARG(q->f->method),
             VIEW_ARG(buf_view(&methods)));
    buf_free(&methods);
    if (!service_allows_path(r->service, q->f->target))
        fail(out, CLAUSE_PATH, r->service->at, "the service has no 'path allow %s'",
             q->f->target->parameters && !r->service->parameters ? "parameters" : "encoded-slash");
    else if (!covers_path(r, q->f->target))
        fail(out, CLAUSE_PATH, r->at, "'%.*s' does not match '%.*s'", WORD_ARG(q->f->target->path),
             WORD_ARG(r->path.text));
}

static const char *condition_word(const struct condition *c) {
    switch (c->kind) {
    case CONDITION_QUERY:
        return "query";
    case CONDITION_QUERY_ONLY:
        return "query only";
    case CONDITION_HEADER:
        return "header";
    case CONDITION_TYPE:
        return "content-type";
    case CONDITION_SIZE:
        return "body at most";
    case CONDITION_BODY:
        return "body";
    case CONDITION_GRAPHQL:
        return "graphql";
    case CONDITION_RPC:
        return "jsonrpc";
    case CONDITION_MCP:
        return "mcp";
    case CONDITION_WEBSOCKET:
        return "websocket";
    case CONDITION_GRPC:
        return "grpc";
    }
    return "";
}

/* "the condition 'no body /url'" */
static void put_condition(const struct condition *c, struct buf *out) {
    buf_printf(out, "the condition '%s%s%s%.*s'", c->no ? "no " : "", condition_word(c),
               c->name.n ? " " : "", WORD_ARG(c->name));
}

void verdict_put_condition(const struct verdict *v, struct buf *out) {
    if (!v->unmet)
        return;
    put_condition(v->condition, out);
    buf_printf(out, " of '%.*s' does not hold", VIEW_ARG(v->unmet->operation->name));
}

const struct reason_info *verdict_reason(const struct verdict *v, enum reason r) {
    bool unmet = v->unmet && r == REASON_OPERATION_NOT_ALLOWED;
    return unmet ? reason_info_of_conditions() : reason_info(r);
}

static bool asks_for_body(const struct condition *c) {
    return c->kind == CONDITION_BODY || c->kind == CONDITION_GRAPHQL || c->kind == CONDITION_RPC ||
           c->kind == CONDITION_MCP;
}

/* And why, where the body is what it was not found in. */
static void fail_condition(const struct condition *c, const struct request_facts *f,
                           struct nearest *out) {
    bool unclear = asks_for_body(c) && f->body && f->body->why;
    struct buf text;
    buf_init(&text, sizeof out->failures[0].text);
    put_condition(c, &text);
    fail(out, CLAUSE_CONDITION, c->at, "%.*s does not hold%s%s", VIEW_ARG(buf_view(&text)),
         unclear ? ": " : "", unclear ? f->body->why : "");
    buf_free(&text);
}

static void explain_conditions(const struct question *q, const struct rule *r,
                               struct nearest *out) {
    for (const struct condition *c = r->conditions; c; c = c->next)
        if (!condition_holds(c, r->conditions, q->f, false))
            fail_condition(c, q->f, out);
    if (q->f->websocket && !r->websocket)
        fail(out, CLAUSE_CONDITION, r->at, "the line does not say 'websocket'");
}

static void explain_rest(const struct question *q, const struct rule *r, const struct verdict *v,
                         struct nearest *out) {
    const struct reason_info *info = verdict_reason(v, v->reason);
    struct guess g = guess_of(q->f->sandbox);
    guess_offer_sandboxes(&g, q->p);
    if (!q->who)
        fail(out, CLAUSE_GRANT, (struct position){NULL, 0, 0}, "there is no sandbox '%.*s'%s",
             WORD_ARG(q->f->sandbox), guess_text(&g));
    else if (!out->granted)
        fail(out, CLAUSE_GRANT, r->operation->at, "'%.*s' of '%.*s' is not granted to '%.*s'",
             VIEW_ARG(r->operation->name), VIEW_ARG(r->service->name), WORD_ARG(q->f->sandbox));
    if (out->n_failures == 0 || v->reason == REASON_NEVER)
        fail(out, CLAUSE_REFUSAL, v->at, "%s: %s", info->code, info->title);
}

void policy_explain(const struct policy *p, const struct who *who, const struct request_facts *f,
                    const struct verdict *v, struct nearest *out) {
    struct who found;
    struct question q = {.p = p, .f = f, .who = who, .host = host_facts_of(f->authority)};
    if (!who && who_find(p, f->sandbox, &found))
        q.who = &found;
    *out = (struct nearest){.n_failures = 0};
    const struct rule *r = find_nearest(p, &q);
    if (!r)
        return;
    out->service = r->service;
    out->operation = r->operation;
    out->at = r->at;
    out->granted = is_granted(&q, r);
    explain_place(&q, r, out);
    explain_line(&q, r, out);
    explain_conditions(&q, r, out);
    explain_rest(&q, r, v, out);
}

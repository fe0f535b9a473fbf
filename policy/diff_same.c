#include "policy/diff_same.h"

#include "policy/cover.h"

/* ---- lines ---- */

static bool paths_same(const struct path_pattern *a, const struct path_pattern *b) {
    return view_equal(a->text, b->text) && a->templates == b->templates && a->fold == b->fold;
}

bool rule_same(const struct rule *a, const struct rule *b) {
    if (a->methods != b->methods || a->any_method != b->any_method ||
        a->websocket != b->websocket || !paths_same(&a->path, &b->path))
        return false;
    const struct condition *c = a->conditions, *d = b->conditions;
    for (; c && d && condition_same(c, d); c = c->next)
        d = d->next;
    return !c && !d;
}

static bool lines_same(const struct rule *a, const struct rule *b) {
    for (; a && b && rule_same(a, b); a = a->next)
        b = b->next;
    return !a && !b;
}

/* ---- services ---- */

static bool credentials_same(const struct credential *a, const struct credential *b) {
    for (; a && b; a = a->next, b = b->next)
        if (!view_equal(a->name, b->name) || a->at_most != b->at_most ||
            a->place.place != b->place.place || !view_equal(a->place.name, b->place.name) ||
            !view_equal(a->place.scheme, b->place.scheme) || a->place.segment != b->place.segment)
            return false;
    return !a && !b;
}

bool service_head_same(const struct service *a, const struct service *b) {
    return view_equal(a->name, b->name) && a->tls == b->tls && a->accept_any == b->accept_any &&
           a->accept_cookies == b->accept_cookies && a->accept_none == b->accept_none &&
           a->accept_destinations == b->accept_destinations &&
           a->encoded_slash == b->encoded_slash && a->parameters == b->parameters &&
           a->body_limit == b->body_limit && a->splice_most == b->splice_most &&
           (a->never_all.line != 0) == (b->never_all.line != 0) &&
           (a->operations != NULL) == (b->operations != NULL) &&
           credentials_same(a->credentials, b->credentials);
}

bool operation_same(const struct operation *a, const struct operation *b) {
    bool named = a->credential && b->credential;
    return view_equal(a->name, b->name) && a->anonymous == b->anonymous &&
           (named ? view_equal(a->credential->name, b->credential->name)
                  : a->credential == b->credential);
}

bool service_same(const struct service *a, const struct service *b) {
    if (!service_head_same(a, b) || !lines_same(a->nevers, b->nevers))
        return false;
    const struct operation *o = a->operations, *q = b->operations;
    for (; o && q; o = o->next, q = q->next)
        if (!operation_same(o, q) || o->preset != q->preset || !lines_same(o->rules, q->rules))
            return false;
    return !o && !q;
}

/* ---- blocks ---- */

static bool labels_same(const struct mention *a, const struct mention *b) {
    for (; a && b && view_equal(a->name, b->name); a = a->next)
        b = b->next;
    return !a && !b;
}

static bool limits_same(const struct grant_limits *a, const struct grant_limits *b) {
    return a->until == b->until && a->uses == b->uses && a->rate == b->rate &&
           a->rate_seconds == b->rate_seconds && a->bytes_out == b->bytes_out &&
           a->concurrent == b->concurrent;
}

static bool grants_same(const struct grant *a, const struct grant *b) {
    for (; a && b; a = a->next, b = b->next)
        if (!view_equal(a->service, b->service) || !view_equal(a->operation, b->operation) ||
            a->limited != b->limited || a->observe != b->observe ||
            !limits_same(&a->limits, &b->limits) || !view_equal(a->note, b->note) ||
            a->index != b->index)
            return false;
    return !a && !b;
}

bool blocks_same(const struct policy *a, const struct policy *b) {
    const struct sandbox *s = a->sandboxes, *t = b->sandboxes;
    for (; s && t; s = s->next, t = t->next)
        if (!view_equal(s->name, t->name) || s->glob != t->glob || s->layer != t->layer ||
            !labels_same(s->labels, t->labels) || !grants_same(s->grants, t->grants))
            return false;
    return !s && !t;
}

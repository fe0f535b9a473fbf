#include "policy/cover.h"

/* ---- conditions ---- */

static bool names_same(const struct condition *a, const struct condition *b) {
    if (a->n_names != b->n_names)
        return false;
    for (size_t i = 0; i < a->n_names; i++)
        if (!view_equal(a->names[i], b->names[i]))
            return false;
    return true;
}

static bool test_same(const struct test *a, const struct test *b) {
    if (a->kind != b->kind || a->n_values != b->n_values || !view_equal(a->glob, b->glob))
        return false;
    if (a->kind == TEST_TYPE && a->type != b->type)
        return false;
    for (size_t i = 0; i < a->n_values; i++)
        if (a->values[i].type != b->values[i].type ||
            !view_equal(a->values[i].text, b->values[i].text))
            return false;
    return true;
}

bool condition_same(const struct condition *a, const struct condition *b) {
    return a->kind == b->kind && a->no == b->no && a->once == b->once &&
           view_equal(a->name, b->name) && names_same(a, b) && test_same(&a->test, &b->test) &&
           a->graphql == b->graphql && a->limit == b->limit;
}

static bool has_condition(const struct rule *r, const struct condition *wanted) {
    for (const struct condition *c = r->conditions; c; c = c->next)
        if (condition_same(c, wanted))
            return true;
    return false;
}

/* `query only` is about the other conditions of its line as well. */
static bool conditions_cover(const struct rule *a, const struct rule *b) {
    for (const struct condition *c = a->conditions; c; c = c->next)
        if (c->kind == CONDITION_QUERY_ONLY || !has_condition(b, c))
            return false;
    return true;
}

/* ---- lines ---- */

bool rule_covers(const struct rule *a, const struct rule *b, bool widely) {
    bool methods = (b->methods & ~a->methods) == 0 || (widely && a->any_method);
    bool upgrade = a->websocket == b->websocket || (widely && !a->websocket);
    return methods && upgrade && conditions_cover(a, b) &&
           path_pattern_covers(&a->path, &b->path, widely);
}

/* ---- services ---- */

static bool covers_host(const struct service *s, const struct host_rule *host) {
    for (const struct host_rule *h = s->hosts; h; h = h->next)
        if (host_pattern_covers(&h->pattern, &host->pattern))
            return true;
    return false;
}

bool service_covers(const struct service *a, const struct service *b) {
    for (const struct host_rule *h = b->hosts; h; h = h->next)
        if (!covers_host(a, h))
            return false;
    for (size_t i = 0; i < b->n_ports; i++)
        if (!service_covers_port(a, b->ports[i]))
            return false;
    return a->every_port || !b->every_port;
}

#include "policy/judge_grants.h"

/* ---- the grants of a layer ---- */

/* What is asked for: an operation, or, where that is NULL, anything of a service that is observed. */
struct wanted {
    const struct who *who;
    const struct operation *operation;
    const struct service *service;
    uint64_t now;
};

static const struct sandbox *block_at(const struct who *who, size_t i) {
    return who->blocks ? who->blocks[i] : who->globs[i];
}

static bool covers(const struct grant *g, const struct wanted *w) {
    if (!g->operations)
        return false;
    return w->operation ? bit_is_set(g->operations, w->operation->index)
                        : g->observe && g->of == w->service;
}

/* By a line without terms. */
static bool is_free(const struct sandbox *b, const struct operation *o) {
    return o && bit_is_set(b->rights.operations, o->index) &&
           (!b->unlimited || bit_is_set(b->unlimited, o->index));
}

static bool has_ended(const struct grant *g, uint64_t now) {
    return g->limits.until != 0 && now >= g->limits.until;
}

/* In the place of its rank among those of its layer, of which the first ones are kept. */
static void insert(struct verdict *v, size_t first, const struct grant *g) {
    size_t at = v->n_grants;
    if (at - first == GRANTS_A_LAYER) {
        if (v->grants[at - 1]->rank < g->rank)
            return;
        at--;
    } else {
        v->n_grants++;
    }
    for (; at > first && v->grants[at - 1]->rank > g->rank; at--)
        v->grants[at] = v->grants[at - 1];
    v->grants[at] = g;
}

/* NULL, or the first of those that have ended when there is no other. */
static const struct grant *add_layer(const struct wanted *w, enum layer layer, struct verdict *v) {
    size_t first = v->n_grants;
    const struct grant *ended = NULL;
    for (size_t i = 0; i < w->who->n_blocks; i++) {
        const struct sandbox *b = block_at(w->who, i);
        if (b->layer != layer)
            continue;
        bool free = is_free(b, w->operation);
        for (const struct grant *g = free ? NULL : b->grants; g && !free; g = g->next) {
            if (!covers(g, w))
                continue;
            free = !g->limited;
            if (!has_ended(g, w->now))
                insert(v, first, g);
            else if (!ended || g->rank < ended->rank)
                ended = g;
        }
        if (free) {
            v->n_grants = first;
            return NULL;
        }
    }
    return v->n_grants > first ? NULL : ended;
}

bool judge_grants(const struct who *who, uint64_t now, struct verdict *v) {
    struct wanted w = {.who = who, .operation = v->operation, .now = now};
    v->n_grants = 0;
    for (int layer = 0; layer < LAYERS_MAX; layer++) {
        const struct grant *ended = add_layer(&w, (enum layer)layer, v);
        if (!ended)
            continue;
        v->allow = false;
        v->reason = REASON_GRANT_ENDED;
        v->at = ended->service_at;
        return false;
    }
    return true;
}

void judge_observing_grants(const struct who *who, uint64_t now, struct verdict *v) {
    struct wanted w = {.who = who, .service = v->service, .now = now};
    v->n_grants = 0;
    for (int layer = 0; layer < LAYERS_MAX; layer++)
        add_layer(&w, (enum layer)layer, v);
}

/* ---- mode observe ---- */

static const struct grant *observing(const struct sandbox *block, const struct service *s,
                                     uint64_t now) {
    const struct grant *g = block->grants;
    while (g && !(g->observe && g->of == s && g->operations && !has_ended(g, now)))
        g = g->next;
    return g;
}

/* The grant of the lowest layer; NULL unless every layer that speaks of the sandbox observes the service. */
static const struct grant *observed_by(const struct who *who, const struct service *s,
                                       uint64_t now) {
    const struct grant *found = NULL;
    for (int layer = 0; layer < LAYERS_MAX; layer++) {
        bool speaks = false;
        const struct grant *here = NULL;
        for (size_t i = 0; i < who->n_blocks; i++) {
            const struct sandbox *b = block_at(who, i);
            speaks = speaks || (int)b->layer == layer;
            if ((int)b->layer == layer && !here)
                here = observing(b, s, now);
        }
        if (speaks && !here)
            return NULL;
        found = here ? here : found;
    }
    return found;
}

/*
 * The credential that goes with the request: that of the operation that matches, else the one that all
 * granted operations of the service have. False: it was not granted, or they differ.
 */
static bool find_credential(const struct who *who, struct observed *o) {
    bool found = false, differ = false;
    if (o->operation)
        o->credential = o->operation->credential;
    for (const struct operation *each = o->service->operations; each; each = each->next) {
        if (!who_holds(who, each))
            continue;
        if (!o->operation && !found)
            o->credential = each->credential;
        found = found || each->credential == o->credential;
        differ = differ || each->credential != o->credential;
    }
    return found && (o->operation || !differ);
}

bool judge_observed(const struct policy *p, const struct host_facts *host,
                    const struct search *search, struct observed *out) {
    struct host_walk walk = host_walk_of(&p->hosts, host);
    const struct rule *any = search->any.rule;
    unsigned level;
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;) {
        const struct service *s = h->service;
        const struct grant *g = service_covers_port(s, search->facts->authority->port) &&
                                        service_takes(s, search->facts)
                                    ? observed_by(search->who, s, search->facts->now)
                                    : NULL;
        *out = (struct observed){.service = s};
        if (!g)
            continue;
        out->at = g->service_at;
        out->operation = any && any->service == s ? any->operation : NULL;
        if (find_credential(search->who, out))
            return true;
    }
    return false;
}

#include "policy/lexer.h"
#include "policy/rules.h"

size_t glob_weight(struct view glob) {
    size_t n = 0;
    for (size_t i = 0; i < glob.n; i++)
        n += glob.p[i] != '*';
    return n;
}

struct who who_of(const struct rights *rights) {
    return (struct who){.rights = {rights}, .n_rights = 1};
}

/* ---- names ---- */

static const struct identity *find_identity(const struct policy *p, struct view name) {
    size_t from = 0, to = p->n_identities;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = view_compare(name, p->by_name[middle].name);
        if (order == 0)
            return &p->by_name[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

static const struct sandbox *best_glob(const struct policy *p, struct view name, enum layer layer) {
    const struct sandbox *best = NULL;
    for (size_t i = 0; i < p->n_globs; i++) {
        const struct sandbox *b = p->globs[i];
        if (b->layer == layer && glob_match(b->name, name) &&
            (!best || glob_weight(b->name) > glob_weight(best->name)))
            best = b;
    }
    return best;
}

/* A layer with blocks of which none is meant leaves nothing to the layers below it. */
static bool find_globs(const struct policy *p, struct view name, struct who *out) {
    for (int layer = 0; layer < LAYERS_MAX; layer++) {
        const struct sandbox *b = best_glob(p, name, (enum layer)layer);
        if (!b && p->layered[layer] && out->n_rights == 0)
            return false;
        if (!b)
            continue;
        out->globs[out->n_rights] = b;
        out->rights[out->n_rights++] = &b->rights;
    }
    out->n_blocks = out->n_rights;
    return out->n_rights > 0;
}

bool who_find(const struct policy *p, struct view sandbox, struct who *out) {
    const struct identity *i = find_identity(p, sandbox);
    *out = (struct who){.n_rights = 0};
    if (!i)
        return name_is_good(sandbox) && find_globs(p, sandbox, out);
    *out = who_of(&i->rights);
    out->blocks = i->blocks;
    out->n_blocks = i->n_blocks;
    return true;
}

/* ---- rights ---- */

bool who_holds(const struct who *w, const struct operation *o) {
    for (size_t i = 0; i < w->n_rights; i++)
        if (!bit_is_set(w->rights[i]->operations, o->index))
            return false;
    return w->n_rights > 0;
}

bool who_reaches(const struct who *w, const struct service *s) {
    if (w->n_rights == 1)
        return bit_is_set(w->rights[0]->services, s->index);
    for (const struct operation *o = s->operations; o; o = o->next)
        if (who_holds(w, o))
            return true;
    return false;
}

#include "policy/errors.h"
#include "policy/rules.h"
#include "policy/sort.h"

struct checker {
    struct policy *p;
    struct policy_errors *errors;
    struct sandbox *sandbox; /* the block whose grants are resolved */
    struct grant *line;      /* the first grant of the line in hand */
};

/* ---- one grant ---- */

static const struct service *granted_service(struct checker *c, const struct grant *g) {
    struct guess guess = guess_of(g->service);
    for (const struct service *s = c->p->services; s; s = s->next) {
        if (view_equal(s->name, g->service))
            return s;
        guess_offer(&guess, s->name);
    }
    errors_add(c->errors, g->service_at, "there is no service '%.*s'%s", WORD_ARG(g->service),
               guess_text(&guess));
    return NULL;
}

static void grant_one(struct checker *c, const struct operation *o, struct position at) {
    struct rights *r = &c->sandbox->rights;
    uint64_t *seen = c->line->operations     ? c->line->operations
                     : c->sandbox->unlimited ? c->sandbox->unlimited
                                             : r->operations;
    if (bit_is_set(seen, o->index) && at.line != 0)
        errors_add(c->errors, at, "'%.*s' granted twice", VIEW_ARG(o->name));
    rights_add(r, o);
    if (seen != r->operations)
        bit_set(seen, o->index);
}

static void unknown_operation(struct checker *c, const struct service *s, const struct grant *g) {
    struct guess guess = guess_of(g->operation);
    for (const struct operation *o = s->operations; o; o = o->next)
        guess_offer(&guess, o->name);
    for (size_t i = 0; grant_term(i); i++)
        guess_offer(&guess, view_str(grant_term(i)));
    if (!s->broken)
        errors_add(c->errors, g->operation_at, "the service '%.*s' has no operation '%.*s'%s",
                   VIEW_ARG(s->name), WORD_ARG(g->operation), guess_text(&guess));
}

/* `read` and `write`, where no operation has this name. */
static enum preset preset_named(struct view name) {
    if (view_equal(name, VIEW("read")))
        return PRESET_READ;
    return view_equal(name, VIEW("write")) ? PRESET_WRITE : PRESET_NONE;
}

static const struct position nowhere = {NULL, 0, 0};

static void grant_preset(struct checker *c, const struct service *s, const struct grant *g,
                         enum preset preset) {
    bool any = false;
    for (const struct operation *o = s->operations; o; o = o->next)
        if (o->preset == preset) {
            grant_one(c, o, nowhere);
            any = true;
        }
    if (!any && !s->broken)
        errors_add(c->errors, g->operation_at, "the service '%.*s' has no operation that %ss",
                   VIEW_ARG(s->name), preset == PRESET_READ ? "read" : "write");
}

static void grant_operation(struct checker *c, const struct service *s, const struct grant *g) {
    const struct operation *o = service_operation(s, g->operation);
    enum preset preset = preset_named(g->operation);
    if (o)
        grant_one(c, o, g->operation_at);
    else if (preset != PRESET_NONE && s->operations)
        grant_preset(c, s, g, preset);
    else
        unknown_operation(c, s, g);
}

static void grant_all(struct checker *c, const struct service *s, const struct grant *g) {
    if (!s->operations && !s->broken)
        errors_add(c->errors, g->service_at, "the service '%.*s' has no operation to grant",
                   VIEW_ARG(s->name));
    for (const struct operation *o = s->operations; o; o = o->next)
        grant_one(c, o, nowhere);
}

/* ---- the grants of a block ---- */

static bool has_terms(const struct grant *g) {
    return g->limited || g->observe;
}

static int begin_line(struct checker *c, struct grant *g) {
    c->line = g;
    c->p->grants[g->index] = g;
    if (!has_terms(g))
        return 0;
    g->operations = arena_array(&c->p->arena, bit_words(c->p->n_operations), sizeof(uint64_t));
    return g->operations ? 0 : ERR_MEMORY;
}

/* A second line of the same service is for other terms. */
static bool is_repeated(struct checker *c, const struct grant *g) {
    for (const struct grant *q = c->sandbox->grants; q && q->index != g->index; q = q->next)
        if (q->of == g->of && !has_terms(q) && !has_terms(g))
            return true;
    return false;
}

static int check_line(struct checker *c, struct grant *g) {
    if (begin_line(c, g) != 0)
        return ERR_MEMORY;
    g->of = granted_service(c, g);
    if (g->of && is_repeated(c, g)) {
        errors_add(c->errors, g->service_at, "a second grant of '%.*s' in a sandbox",
                   VIEW_ARG(g->of->name));
        g->of = NULL;
    }
    return 0;
}

static bool any_terms(const struct sandbox *s) {
    for (const struct grant *g = s->grants; g; g = g->next)
        if (has_terms(g))
            return true;
    return false;
}

static int check_block(struct checker *c, struct sandbox *s) {
    if (rights_new(c->p, &s->rights) != 0)
        return ERR_MEMORY;
    if (any_terms(s)) {
        s->unlimited = arena_array(&c->p->arena, bit_words(c->p->n_operations), sizeof(uint64_t));
        if (!s->unlimited)
            return ERR_MEMORY;
    }
    c->sandbox = s;
    const struct grant *last = NULL;
    for (struct grant *g = s->grants; g; last = g, g = g->next) {
        g->sandbox = s;
        if ((!last || last->index != g->index) && check_line(c, g) != 0)
            return ERR_MEMORY;
        g->of = c->line->of;
        if (g->of && g->operation.n == 0)
            grant_all(c, g->of, g);
        else if (g->of)
            grant_operation(c, g->of, g);
    }
    return 0;
}

static void check_repeated(struct checker *c, const struct sandbox *s) {
    for (const struct sandbox *q = c->p->sandboxes; q != s; q = q->next)
        if (q->layer == s->layer && view_equal_nocase(q->name, s->name) &&
            (!s->glob || (!s->labels && !q->labels))) {
            errors_add(c->errors, s->at, "a second sandbox '%.*s', the first is in %s",
                       VIEW_ARG(s->name), PLACE_TEXT(q->at, s->at));
            return;
        }
}

/* ---- globs ---- */

/* Whether one name matches both. */
static bool globs_meet(struct view a, struct view b) {
    bool meets[POLICY_NAME_MAX + 1][POLICY_NAME_MAX + 1] = {{true}};
    for (size_t i = 0; i <= a.n; i++)
        for (size_t k = 0; k <= b.n; k++) {
            bool star_a = i > 0 && a.p[i - 1] == '*', star_b = k > 0 && b.p[k - 1] == '*';
            if (star_a && (meets[i - 1][k] || (k > 0 && meets[i][k - 1])))
                meets[i][k] = true;
            if (star_b && (meets[i][k - 1] || (i > 0 && meets[i - 1][k])))
                meets[i][k] = true;
            if (i > 0 && k > 0 && a.p[i - 1] == b.p[k - 1] && meets[i - 1][k - 1])
                meets[i][k] = true;
        }
    return meets[a.n][b.n];
}

static void check_glob(struct checker *c, const struct sandbox *s) {
    for (const struct sandbox *q = c->p->sandboxes; q != s; q = q->next)
        if (q->glob && !q->labels && q->layer == s->layer && !view_equal(q->name, s->name) &&
            glob_weight(q->name) == glob_weight(s->name) && globs_meet(q->name, s->name)) {
            errors_add(c->errors, s->at,
                       "a sandbox may match this and '%.*s' in %s, and neither says more of it",
                       VIEW_ARG(q->name), PLACE_TEXT(q->at, s->at));
            return;
        }
}

static int gather_globs(struct checker *c) {
    struct policy *p = c->p;
    p->globs = arena_array(&p->arena, p->n_sandboxes, sizeof(struct sandbox *));
    if (!p->globs)
        return ERR_MEMORY;
    for (struct sandbox *s = p->sandboxes; s; s = s->next)
        if (s->glob && !s->labels) {
            check_glob(c, s);
            p->globs[p->n_globs++] = s;
        }
    return 0;
}

/* ---- sandboxes by name ---- */

static int compare_identities(const void *left, const void *right, const void *ctx) {
    (void)ctx;
    const struct identity *a = left, *b = right;
    return view_compare(a->name, b->name);
}

static int gather_identities(struct policy *p) {
    p->by_name = arena_array(&p->arena, p->n_sandboxes, sizeof(struct identity));
    if (!p->by_name)
        return ERR_MEMORY;
    size_t n = 0, kept = 0;
    for (const struct sandbox *s = p->sandboxes; s; s = s->next)
        if (!s->glob)
            p->by_name[n++] = (struct identity){.name = s->name, .at = s->at};
    sort_items(p->by_name, n, sizeof(struct identity), compare_identities, NULL);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !view_equal(p->by_name[kept - 1].name, p->by_name[i].name))
            p->by_name[kept++] = p->by_name[i];
    p->n_identities = kept;
    return 0;
}

/* Whether one of its own blocks, of any layer, has the label. */
static bool has_label(const struct policy *p, const struct identity *id, struct view label) {
    for (const struct sandbox *s = p->sandboxes; s; s = s->next) {
        if (s->glob || !view_equal(s->name, id->name))
            continue;
        for (const struct mention *m = s->labels; m; m = m->next)
            if (view_equal(m->name, label))
                return true;
    }
    return false;
}

static bool is_labelled_for(const struct policy *p, const struct identity *id,
                            const struct sandbox *s) {
    if (!s->glob || !s->labels || !glob_match(s->name, id->name))
        return false;
    for (const struct mention *m = s->labels; m; m = m->next)
        if (!has_label(p, id, m->name))
            return false;
    return true;
}

static const struct sandbox *glob_for(const struct policy *p, const struct identity *id,
                                      enum layer layer) {
    const struct sandbox *best = NULL;
    for (size_t i = 0; i < p->n_globs; i++)
        if (p->globs[i]->layer == layer && glob_match(p->globs[i]->name, id->name) &&
            (!best || glob_weight(p->globs[i]->name) > glob_weight(best->name)))
            best = p->globs[i];
    return best;
}

/* The blocks of a layer that apply: its own, else a glob's, and those of its labels. */
static size_t blocks_of(const struct policy *p, const struct identity *id, enum layer layer,
                        const struct sandbox **out) {
    size_t n = 0;
    for (const struct sandbox *s = p->sandboxes; s; s = s->next)
        if (s->layer == layer && !s->glob && view_equal(s->name, id->name))
            out[n++] = s;
    const struct sandbox *glob = n == 0 ? glob_for(p, id, layer) : NULL;
    if (glob)
        out[n++] = glob;
    for (const struct sandbox *s = p->sandboxes; s; s = s->next)
        if (s->layer == layer && is_labelled_for(p, id, s))
            out[n++] = s;
    return n;
}

static void narrow(struct policy *p, struct identity *id, const struct sandbox *const *blocks,
                   size_t n, bool first) {
    for (size_t i = 0; i < bit_words(p->n_operations); i++) {
        uint64_t granted = 0;
        for (size_t k = 0; k < n; k++)
            granted |= blocks[k]->rights.operations[i];
        id->rights.operations[i] = first ? granted : id->rights.operations[i] & granted;
    }
}

/* Of the services that a block reaches, those of which something is left. */
static void keep_services(const struct policy *p, struct identity *id,
                          const struct sandbox *block) {
    for (const struct service *s = p->services; s; s = s->next) {
        const struct operation *o =
            bit_is_set(block->rights.services, s->index) ? s->operations : NULL;
        while (o && !bit_is_set(id->rights.operations, o->index))
            o = o->next;
        if (o)
            bit_set(id->rights.services, s->index);
    }
}

static int settle(struct checker *c, struct identity *id, const struct sandbox **memory) {
    struct policy *p = c->p;
    bool first = true;
    if (rights_new(p, &id->rights) != 0)
        return ERR_MEMORY;
    for (int layer = 0; layer < LAYERS_MAX; layer++) {
        size_t n = blocks_of(p, id, (enum layer)layer, memory + id->n_blocks);
        if (n == 0 && p->layered[layer] && first)
            errors_add(c->errors, id->at,
                       "a layer above has sandboxes, and '%.*s' is not among them",
                       VIEW_ARG(id->name));
        if (n == 0)
            continue;
        narrow(p, id, memory + id->n_blocks, n, first);
        id->n_blocks += n;
        first = false;
    }
    for (size_t i = 0; i < id->n_blocks; i++)
        keep_services(p, id, memory[i]);
    id->blocks = arena_array(&p->arena, id->n_blocks, sizeof(const struct sandbox *));
    if (!id->blocks)
        return ERR_MEMORY;
    for (size_t i = 0; i < id->n_blocks; i++)
        id->blocks[i] = memory[i];
    return 0;
}

int policy_check_sandboxes(struct policy *p, struct policy_errors *errors) {
    struct checker c = {.p = p, .errors = errors};
    const struct sandbox **memory =
        arena_array(&p->arena, p->n_sandboxes + 1, sizeof(const struct sandbox *));
    p->grants = arena_array(&p->arena, p->n_grants, sizeof(struct grant *));
    if (!memory || !p->grants)
        return ERR_MEMORY;
    for (struct sandbox *s = p->sandboxes; s; s = s->next) {
        p->layered[s->layer] = true;
        check_repeated(&c, s);
        if (check_block(&c, s) != 0)
            return ERR_MEMORY;
    }
    if (policy_rank_grants(p, errors) != 0 || gather_globs(&c) != 0 || gather_identities(p) != 0)
        return ERR_MEMORY;
    for (size_t i = 0; i < p->n_identities; i++)
        if (settle(&c, &p->by_name[i], memory) != 0)
            return ERR_MEMORY;
    return 0;
}

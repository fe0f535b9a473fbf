#include "policy/graphql.h"

#include "policy/graphql_token.h"

#include <stdlib.h>

/* What stands in the outermost selection set of a definition. */
struct root {
    bool spread;
    struct view name; /* of the field, or of the fragment */
};

struct definition {
    bool fragment;
    bool entered, left; /* while roots are gathered */
    enum graphql_kind kind;
    struct view name; /* empty: an operation without one */
    size_t first, n;  /* of roots */
};

struct graphql {
    struct view rest;
    struct graphql_token now; /* the token that is next */
    size_t n_tokens;
    unsigned depth;
    int error;
    struct definition definitions[GRAPHQL_DEFINITIONS_MAX];
    size_t n_definitions;
    struct root roots[GRAPHQL_ROOTS_MAX];
    size_t n_roots;
    const struct definition *selected;
    struct view fields[GRAPHQL_ROOTS_MAX];
    size_t n_fields;
};

/* ---- tokens ---- */

static bool fail(struct graphql *g, int error) {
    if (g->error == 0)
        g->error = error;
    return false;
}

static bool next(struct graphql *g) {
    if (g->n_tokens++ == GRAPHQL_TOKENS_MAX)
        return fail(g, ERR_LIMIT);
    g->now = graphql_token_take(&g->rest);
    return g->now.kind != GRAPHQL_WRONG || fail(g, ERR_BAD);
}

static bool is_sign(const struct graphql *g, char sign) {
    return graphql_token_is(g->now, sign);
}

static bool is_word(const struct graphql *g, const char *word) {
    return g->now.kind == GRAPHQL_NAME && view_equal(g->now.text, view_str(word));
}

static bool take_sign(struct graphql *g, char sign) {
    return is_sign(g, sign) ? next(g) : fail(g, ERR_BAD);
}

static bool take_name(struct graphql *g, struct view *name) {
    if (g->now.kind != GRAPHQL_NAME)
        return fail(g, ERR_BAD);
    *name = g->now.text;
    return next(g);
}

static bool enter(struct graphql *g) {
    return ++g->depth <= GRAPHQL_DEPTH_MAX || fail(g, ERR_LIMIT);
}

static bool leave(struct graphql *g) {
    g->depth--;
    return true;
}

/* ---- values, types, arguments, directives ---- */

static bool read_value(struct graphql *g);

static bool read_list(struct graphql *g) {
    if (!next(g))
        return false;
    while (!is_sign(g, ']'))
        if (!read_value(g))
            return false;
    return next(g);
}

/* `name: value` as long as there are any, and what ends them; at least `least` of them. */
static bool read_pairs(struct graphql *g, char end, size_t least) {
    struct view name;
    size_t n = 0;
    if (!next(g))
        return false;
    for (; !is_sign(g, end); n++)
        if (!take_name(g, &name) || !take_sign(g, ':') || !read_value(g))
            return false;
    return n >= least ? next(g) : fail(g, ERR_BAD);
}

static bool read_value(struct graphql *g) {
    struct view name;
    if (g->now.kind == GRAPHQL_NAME || g->now.kind == GRAPHQL_NUMBER ||
        g->now.kind == GRAPHQL_STRING)
        return next(g);
    if (is_sign(g, '$'))
        return next(g) && take_name(g, &name);
    if (is_sign(g, '['))
        return enter(g) && read_list(g) && leave(g);
    if (is_sign(g, '{'))
        return enter(g) && read_pairs(g, '}', 0) && leave(g);
    return fail(g, ERR_BAD);
}

static bool read_arguments(struct graphql *g) {
    return !is_sign(g, '(') || read_pairs(g, ')', 1);
}

static bool read_directives(struct graphql *g) {
    struct view name;
    while (is_sign(g, '@'))
        if (!next(g) || !take_name(g, &name) || !read_arguments(g))
            return false;
    return true;
}

static bool read_type(struct graphql *g) {
    struct view name;
    if (is_sign(g, '[')) {
        if (!enter(g) || !next(g) || !read_type(g) || !take_sign(g, ']') || !leave(g))
            return false;
    } else if (!take_name(g, &name)) {
        return false;
    }
    return !is_sign(g, '!') || next(g);
}

static bool read_variable(struct graphql *g) {
    struct view name;
    if (!take_sign(g, '$') || !take_name(g, &name) || !take_sign(g, ':') || !read_type(g))
        return false;
    if (is_sign(g, '=') && !(next(g) && read_value(g)))
        return false;
    return read_directives(g);
}

static bool read_variables(struct graphql *g) {
    if (!is_sign(g, '('))
        return true;
    if (!next(g))
        return false;
    do {
        if (!read_variable(g))
            return false;
    } while (!is_sign(g, ')'));
    return next(g);
}

/* ---- selections ---- */

static bool add_root(struct graphql *g, bool spread, struct view name) {
    if (g->n_roots == GRAPHQL_ROOTS_MAX)
        return fail(g, ERR_LIMIT);
    g->roots[g->n_roots++] = (struct root){spread, name};
    return true;
}

static bool read_selections(struct graphql *g, bool root);

static bool read_field(struct graphql *g, bool root) {
    struct view name;
    if (!take_name(g, &name))
        return false;
    if (is_sign(g, ':') && !(next(g) && take_name(g, &name)))
        return false;
    if (root && !add_root(g, false, name))
        return false;
    return read_arguments(g) && read_directives(g) &&
           (!is_sign(g, '{') || read_selections(g, false));
}

/* A spread, or an inline fragment, whose fields are those of what it stands in. */
static bool read_fragment(struct graphql *g, bool root) {
    struct view name;
    if (!next(g))
        return false;
    if (g->now.kind == GRAPHQL_NAME && !is_word(g, "on"))
        return take_name(g, &name) && (!root || add_root(g, true, name)) && read_directives(g);
    if (is_word(g, "on") && !(next(g) && take_name(g, &name)))
        return false;
    return read_directives(g) && read_selections(g, root);
}

static bool read_selections(struct graphql *g, bool root) {
    if (!enter(g) || !take_sign(g, '{'))
        return false;
    do {
        bool fragment = g->now.kind == GRAPHQL_SPREAD;
        if (!(fragment ? read_fragment(g, root) : read_field(g, root)))
            return false;
    } while (!is_sign(g, '}'));
    return next(g) && leave(g);
}

/* ---- definitions ---- */

static bool read_operation(struct graphql *g, struct definition *d) {
    static const char *const words[] = {"query", "mutation", "subscription"};
    if (is_sign(g, '{'))
        return read_selections(g, true);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!is_word(g, words[i]))
            continue;
        d->kind = (enum graphql_kind)i;
        if (!next(g) || (g->now.kind == GRAPHQL_NAME && !take_name(g, &d->name)))
            return false;
        return read_variables(g) && read_directives(g) && read_selections(g, true);
    }
    return fail(g, ERR_BAD);
}

static bool read_fragment_definition(struct graphql *g, struct definition *d) {
    struct view type;
    d->fragment = true;
    if (!next(g) || is_word(g, "on"))
        return fail(g, ERR_BAD);
    return take_name(g, &d->name) && (is_word(g, "on") ? next(g) : fail(g, ERR_BAD)) &&
           take_name(g, &type) && read_directives(g) && read_selections(g, true);
}

static bool read_definition(struct graphql *g) {
    if (g->n_definitions == GRAPHQL_DEFINITIONS_MAX)
        return fail(g, ERR_LIMIT);
    struct definition *d = &g->definitions[g->n_definitions++];
    d->first = g->n_roots;
    if (!(is_word(g, "fragment") ? read_fragment_definition(g, d) : read_operation(g, d)))
        return false;
    d->n = g->n_roots - d->first;
    return true;
}

/* Names are unique among operations, and among fragments; an operation without one is alone. */
static bool check_names(struct graphql *g) {
    size_t operations = 0, unnamed = 0;
    for (size_t i = 0; i < g->n_definitions; i++) {
        const struct definition *d = &g->definitions[i];
        operations += !d->fragment;
        unnamed += d->name.n == 0;
        for (size_t k = 0; k < i; k++)
            if (d->fragment == g->definitions[k].fragment &&
                view_equal(d->name, g->definitions[k].name))
                return fail(g, ERR_BAD);
    }
    return operations > 0 && (unnamed == 0 || operations == 1) ? true : fail(g, ERR_BAD);
}

static bool read_document(struct graphql *g) {
    if (!next(g))
        return false;
    do {
        if (!read_definition(g))
            return false;
    } while (g->now.kind != GRAPHQL_END);
    return check_names(g);
}

/* ---- the request ---- */

static struct definition *find(struct graphql *g, bool fragment, const struct view *name) {
    struct definition *found = NULL;
    for (size_t i = 0; i < g->n_definitions; i++) {
        struct definition *d = &g->definitions[i];
        if (d->fragment != fragment || (name && !view_equal(d->name, *name)))
            continue;
        if (found)
            return NULL;
        found = d;
    }
    return found;
}

static bool gather(struct graphql *g, struct definition *d) {
    if (d->left)
        return true;
    if (d->entered)
        return fail(g, ERR_BAD); /* it spreads itself */
    d->entered = true;
    for (size_t i = d->first; i < d->first + d->n; i++) {
        const struct root *r = &g->roots[i];
        if (!r->spread) {
            g->fields[g->n_fields++] = r->name;
            continue;
        }
        struct definition *spread = find(g, true, &r->name);
        if (!spread || !enter(g) || !gather(g, spread))
            return fail(g, ERR_BAD);
        leave(g);
    }
    d->left = true;
    return true;
}

static bool select_operation(struct graphql *g, const struct view *operation) {
    struct definition *d = find(g, false, operation);
    /* An empty name is none to some, and one that does not exist to others. */
    if (!d || (operation && operation->n == 0))
        return fail(g, ERR_BAD);
    g->selected = d;
    return gather(g, d);
}

int graphql_read(struct view document, const struct view *operation, struct graphql **out) {
    struct graphql *g = calloc(1, sizeof *g);
    if (!g)
        return ERR_MEMORY;
    g->rest = document;
    if (read_document(g) && select_operation(g, operation)) {
        *out = g;
        return 0;
    }
    int error = g->error;
    free(g);
    return error;
}

void graphql_free(struct graphql *g) {
    free(g);
}

struct graphql_facts graphql_facts(const struct graphql *g) {
    return (struct graphql_facts){
        .known = true, .kind = g->selected->kind, .fields = g->fields, .n_fields = g->n_fields};
}

#include "policy/condition.h"

#include "policy/credential_name.h"

enum { NAME_DECODED = 256, VALUE_DECODED = 4096 };

/* ---- what was found of a name ---- */

struct tally {
    size_t named;   /* occurrences of the very name */
    bool all_pass;  /* strictly */
    bool any_pass;  /* widely, of names that are taken for it as well */
    bool ambiguous; /* something may be taken for one */
};

static struct tally tally_new(void) {
    return (struct tally){.all_pass = true};
}

static bool tally_holds(const struct tally *t, bool once, bool widely) {
    if (widely)
        return t->any_pass;
    return t->named > 0 && t->all_pass && !t->ambiguous && (!once || t->named == 1);
}

enum likeness { UNLIKE, ALIKE, THE_SAME };

/* ---- the query ---- */

static enum likeness name_likeness(struct view raw, struct view wanted) {
    uint8_t memory[NAME_DECODED];
    struct view name;
    if (!percent_decode_into(raw, true, memory, sizeof memory, &name))
        return ALIKE;
    if (view_equal(name, wanted))
        return THE_SAME;
    return credential_name_same_parameter(name, wanted) ? ALIKE : UNLIKE;
}

static void count_parameter(struct tally *t, const struct condition *c, struct view name,
                            struct view raw, bool whole) {
    uint8_t memory[VALUE_DECODED];
    struct view value;
    enum likeness like = name_likeness(name, c->name);
    if (like == UNLIKE)
        return;
    bool legible = percent_decode_into(raw, true, memory, sizeof memory, &value);
    t->any_pass = t->any_pass || !legible || test_text(&c->test, value, true);
    if (like == ALIKE || !whole || !legible) {
        t->ambiguous = true;
        return;
    }
    t->named++;
    t->all_pass = t->all_pass && test_text(&c->test, value, false);
}

/* Some servers part pairs at ';' as well. */
static bool query_holds(const struct condition *c, const struct target *target, bool widely) {
    struct tally t = tally_new();
    struct view rest = target->has_query ? target->query : (struct view){NULL, 0}, name, value;
    while (target_pair(&rest, &name, &value)) {
        bool whole = view_find(name, ';') == name.n && view_find(value, ';') == value.n;
        count_parameter(&t, c, name, value, whole);
        if (whole)
            continue;
        struct view pair = view_of(name.p, (size_t)(value.p + value.n - name.p));
        while (pair.n > 0) {
            struct view piece = view_cut(&pair, ';'), piece_name = view_cut(&piece, '=');
            count_parameter(&t, c, piece_name, piece, false);
        }
    }
    return tally_holds(&t, c->once, widely);
}

static enum likeness is_named(const struct condition *all, struct view name) {
    enum likeness best = UNLIKE;
    for (const struct condition *c = all; c; c = c->next) {
        enum likeness like = c->kind == CONDITION_QUERY ? name_likeness(name, c->name) : UNLIKE;
        if (like > best)
            best = like;
    }
    return best;
}

static bool only_named(const struct condition *all, const struct target *target, bool widely) {
    struct view rest = target->has_query ? target->query : (struct view){NULL, 0}, name, value;
    while (target_pair(&rest, &name, &value)) {
        enum likeness like = is_named(all, name);
        if (like == UNLIKE || (!widely && like == ALIKE))
            return false;
        if (!widely && view_find(value, ';') < value.n)
            return false;
    }
    return true;
}

/* ---- fields ---- */

/* A field may be a list, and a server look at one of its members. */
static bool member_passes(const struct test *test, struct view value) {
    while (value.n > 0)
        if (test_text(test, view_trim(view_cut(&value, ',')), true))
            return true;
    return false;
}

static bool header_holds(const struct condition *c, const struct request_facts *f, bool widely) {
    struct tally t = tally_new();
    if (!f->fields)
        return widely;
    for (size_t i = 0; i < f->n_fields; i++) {
        const struct field *field = &f->fields[i];
        bool same = view_equal_nocase(field->name, c->name);
        if (!same && !credential_name_same(field->name, c->name))
            continue;
        t.any_pass = t.any_pass || test_text(&c->test, field->value, true) ||
                     member_passes(&c->test, field->value);
        t.ambiguous = t.ambiguous || !same;
        t.named += same;
        t.all_pass = t.all_pass && test_text(&c->test, field->value, false);
    }
    return tally_holds(&t, false, widely);
}

static bool view_is_among(struct view v, const struct view *names, size_t n, bool fold) {
    for (size_t i = 0; i < n; i++)
        if (fold ? view_equal_nocase(v, names[i]) : view_equal(v, names[i]))
            return true;
    return false;
}

static bool type_holds(const struct condition *c, const struct request_facts *f, bool widely) {
    size_t n = 0;
    bool all = true, any = false;
    if (!f->fields)
        return widely;
    for (size_t i = 0; i < f->n_fields; i++) {
        struct view value = f->fields[i].value;
        if (!credential_name_same(f->fields[i].name, VIEW("content-type")))
            continue;
        bool among = view_is_among(view_trim(view_cut(&value, ';')), c->names, c->n_names, true);
        n++;
        all = all && among && view_equal_nocase(f->fields[i].name, VIEW("content-type"));
        any = any || among;
    }
    return widely ? any || n != 1 : all && n == 1;
}

/* ---- the body ---- */

static bool is_empty(const struct request_facts *f) {
    return f->length_known && f->length == 0 && !f->body;
}

static bool size_holds(const struct condition *c, const struct request_facts *f, bool widely) {
    if (f->length_known)
        return f->length <= c->limit;
    if (!f->body || f->body->unclear)
        return widely;
    return f->body->size <= c->limit;
}

static bool body_holds(const struct condition *c, const struct request_facts *f, bool widely) {
    struct tally t = tally_new();
    if (is_empty(f))
        return false;
    if (!f->body || f->body->unclear)
        return widely;
    for (size_t i = 0; i < f->body->n_values; i++) {
        const struct body_value *v = &f->body->values[i];
        if (v->pointer != c->pointer)
            continue;
        t.named += !v->alike;
        t.ambiguous = t.ambiguous || v->alike;
        t.all_pass = t.all_pass && test_body_value(&c->test, v, false);
        t.any_pass = t.any_pass || test_body_value(&c->test, v, true);
    }
    return tally_holds(&t, false, widely);
}

static bool graphql_holds(const struct condition *c, const struct request_facts *f, bool widely) {
    const struct graphql_facts *g = f->body && !f->body->unclear ? &f->body->graphql : NULL;
    if (!g || !g->known)
        return widely;
    if (g->kind != c->graphql)
        return false;
    if (c->n_names == 0)
        return true;
    bool all = g->n_fields > 0, any = false;
    for (size_t i = 0; i < g->n_fields; i++) {
        all = all && view_is_among(g->fields[i], c->names, c->n_names, false);
        any = any || view_is_among(g->fields[i], c->names, c->n_names, true);
    }
    return widely ? any : all;
}

static bool call_matches(const struct condition *c, const struct rpc_call *call, bool fold) {
    if (c->kind == CONDITION_RPC)
        return view_is_among(call->method, c->names, c->n_names, fold);
    return view_is_among(call->method, &c->name, 1, fold) &&
           (c->n_names == 0 || view_is_among(call->tool, c->names, c->n_names, fold));
}

/* MCP has no batches (AP-03). */
static bool rpc_holds(const struct condition *c, const struct request_facts *f, bool widely) {
    const struct rpc_facts *r = f->body && !f->body->unclear ? &f->body->rpc : NULL;
    if (!r || !r->known)
        return widely;
    bool all = r->n_calls > 0 && !(c->kind == CONDITION_MCP && r->batch), any = false;
    for (size_t i = 0; i < r->n_calls; i++) {
        all = all && call_matches(c, &r->calls[i], false);
        any = any || call_matches(c, &r->calls[i], true);
    }
    return widely ? any : all;
}

/* ---- protocols that the head tells ---- */

static bool is_grpc(const struct condition *c, const struct request_facts *f, bool widely) {
    struct view path = f->target->path;
    bool any_method = view_ends(c->name, VIEW("/"));
    if (any_method ? !view_starts(path, c->name) : !view_equal(path, c->name))
        return false;
    if (!f->fields)
        return widely;
    for (size_t i = 0; i < f->n_fields; i++)
        if (view_equal_nocase(f->fields[i].name, VIEW("content-type")))
            return view_starts(f->fields[i].value, VIEW("application/grpc"));
    return widely;
}

/* ---- all of them ---- */

static bool test(const struct condition *c, const struct condition *all,
                 const struct request_facts *f, bool widely) {
    switch (c->kind) {
    case CONDITION_QUERY:
        return query_holds(c, f->target, widely);
    case CONDITION_QUERY_ONLY:
        return only_named(all, f->target, widely);
    case CONDITION_HEADER:
        return header_holds(c, f, widely);
    case CONDITION_TYPE:
        return type_holds(c, f, widely);
    case CONDITION_SIZE:
        return size_holds(c, f, widely);
    case CONDITION_BODY:
        return body_holds(c, f, widely);
    case CONDITION_GRAPHQL:
        return graphql_holds(c, f, widely);
    case CONDITION_RPC:
    case CONDITION_MCP:
        return rpc_holds(c, f, widely);
    case CONDITION_WEBSOCKET:
        return f->websocket;
    case CONDITION_GRPC:
        return is_grpc(c, f, widely);
    }
    return widely;
}

bool condition_holds(const struct condition *c, const struct condition *all,
                     const struct request_facts *f, bool widely) {
    return c->no ? !test(c, all, f, !widely) : test(c, all, f, widely);
}

bool condition_wants_body(const struct condition *c, const struct request_facts *f) {
    if (f->body)
        return false;
    switch (c->kind) {
    case CONDITION_BODY:
        return !is_empty(f);
    case CONDITION_SIZE:
        return !f->length_known;
    case CONDITION_GRAPHQL:
        /* By GET it stands in the query. */
        return !is_empty(f) || (view_equal(f->method, VIEW("GET")) && f->target->has_query);
    case CONDITION_RPC:
    case CONDITION_MCP:
        return !is_empty(f);
    default:
        return false;
    }
}

/* ---- two conditions ---- */

static bool names_are_apart(const struct condition *a, const struct condition *b) {
    for (size_t i = 0; i < a->n_names; i++)
        if (view_is_among(a->names[i], b->names, b->n_names, true))
            return false;
    return a->n_names > 0 && b->n_names > 0;
}

static bool speaks_of_the_same(const struct condition *a, const struct condition *b) {
    switch (a->kind) {
    case CONDITION_QUERY:
        return view_equal(a->name, b->name);
    case CONDITION_HEADER:
        return view_equal_nocase(a->name, b->name);
    case CONDITION_BODY:
        return a->pointer == b->pointer;
    default:
        return false;
    }
}

bool conditions_exclude(const struct condition *a, const struct condition *b) {
    if (a->kind != b->kind)
        return false;
    if (speaks_of_the_same(a, b) && a->no != b->no)
        return (a->no ? a : b)->test.kind == TEST_PRESENT;
    if (a->no || b->no)
        return false;
    switch (a->kind) {
    case CONDITION_TYPE:
    case CONDITION_RPC:
        return names_are_apart(a, b);
    case CONDITION_GRAPHQL:
        return a->graphql != b->graphql || names_are_apart(a, b);
    case CONDITION_MCP:
        return !view_equal_nocase(a->name, b->name) || names_are_apart(a, b);
    default:
        return speaks_of_the_same(a, b) && tests_exclude(&a->test, &b->test);
    }
}

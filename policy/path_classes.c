#include "policy/path_classes.h"

#include <stdlib.h>

/*
 * The patterns are one automaton: a state is a pattern and how many of its parts have been taken. A set of states
 * is what a path leads to, and paths that lead to the same set are a class. Only segments that some
 * state tells from others are tried: literals, what is read as them, a number, and one that nobody wrote.
 */

struct state {
    enum part_kind kind; /* 0: all parts were taken */
    struct view text;
    const struct class_rule *rule;
};

struct set {
    uint32_t *states;
    size_t n;
};

struct search {
    struct path_classes *out;
    struct state *states;
    struct set *sets; /* one for each class */
    uint32_t *slots;  /* class + 1 by hash of its set; 0: free */
    size_t mask;
    struct set next; /* being made */
    struct view *segments;
    size_t n_segments, room;
    bool failed;
};

static void *make(struct search *s, size_t n, size_t size) {
    void *p = arena_array(&s->out->arena, n, size);
    s->failed = s->failed || !p;
    return p;
}

/* ---- states ---- */

static size_t count_parts(const struct rule *r) {
    struct view rest = r->path.text, part;
    enum part_kind kind;
    size_t n = 0;
    while (path_pattern_part(&r->path, &rest, &part, &kind))
        n++;
    return n;
}

static void add_states(struct search *s, const struct class_rule *r, size_t *n) {
    struct view rest = r->rule->path.text;
    struct state state = {.rule = r};
    s->next.states[s->next.n++] = (uint32_t)*n;
    while (path_pattern_part(&r->rule->path, &rest, &state.text, &state.kind))
        s->states[(*n)++] = state;
    s->states[(*n)++] = (struct state){.rule = r};
}

/* ---- sets ---- */

static size_t hash(const struct set *set) {
    size_t h = 1469598103u;
    for (size_t i = 0; i < set->n; i++)
        h = (h ^ set->states[i]) * 1099511628211u;
    return h ^ h >> 29;
}

static bool same_set(const struct set *a, const struct set *b) {
    return a->n == b->n &&
           (a->n == 0 || memcmp(a->states, b->states, a->n * sizeof *a->states) == 0);
}

static void add_rules(struct search *s, struct path_class *c, const struct set *set) {
    c->rules = make(s, set->n + 1, sizeof(struct class_rule *));
    for (size_t i = 0; i < set->n && c->rules; i++)
        if (s->states[set->states[i]].kind == 0)
            c->rules[c->n_rules++] = s->states[set->states[i]].rule;
}

/* The class of s->next, if it is a new one. */
static void add_class(struct search *s, struct view above, struct view segment) {
    struct path_classes *out = s->out;
    size_t i = hash(&s->next) & s->mask;
    for (; s->slots[i] != 0; i = (i + 1) & s->mask)
        if (same_set(&s->sets[s->slots[i] - 1], &s->next))
            return;
    if (out->n == PATH_CLASSES_MAX) {
        out->whole = false;
        return;
    }
    uint8_t *path = make(s, above.n + segment.n + 1, 1);
    uint32_t *states = make(s, s->next.n + 1, sizeof *states);
    if (!path || !states)
        return;
    view_copy(above, path);
    path[above.n] = '/';
    view_copy(segment, path + above.n + 1);
    memcpy(states, s->next.states, s->next.n * sizeof *states);
    struct path_class *c = &out->at[out->n];
    s->sets[out->n] = (struct set){states, s->next.n};
    s->slots[i] = (uint32_t)++out->n;
    c->path = view_of(path, above.n + segment.n + 1);
    add_rules(s, c, &s->next);
}

/* Keeps s->next in order; what is added is at most one less than what was added last. */
static void add_state(struct search *s, uint32_t state) {
    struct set *set = &s->next;
    size_t i = set->n;
    while (i > 0 && set->states[i - 1] > state)
        i--;
    if (i > 0 && set->states[i - 1] == state)
        return;
    for (size_t k = set->n++; k > i; k--)
        set->states[k] = set->states[k - 1];
    set->states[i] = state;
}

static void step(struct search *s, const struct set *from, struct view segment) {
    s->next.n = 0;
    for (size_t i = 0; i < from->n; i++) {
        uint32_t at = from->states[i];
        const struct state *state = &s->states[at];
        if (state->kind == 0 || !path_part_match(&state->rule->rule->path, state->kind, state->text,
                                                 segment, state->rule->widely))
            continue;
        if (state->kind == PART_MANY)
            add_state(s, at);
        add_state(s, at + 1);
    }
}

/* ---- segments ---- */

static void add_segment(struct search *s, struct view segment) {
    for (size_t i = 0; i < s->n_segments; i++)
        if (view_equal(s->segments[i], segment))
            return;
    if (s->n_segments == s->room) {
        s->room = s->room ? 2 * s->room : 64;
        struct view *more = make(s, s->room, sizeof *more);
        if (!more)
            return;
        for (size_t i = 0; i < s->n_segments; i++)
            more[i] = s->segments[i];
        s->segments = more;
    }
    s->segments[s->n_segments++] = segment;
}

/* What a server may take for the literal: its letters in the other case, and with a format behind it. */
static void add_variants(struct search *s, struct view literal) {
    struct view format = VIEW(".zq9");
    uint8_t *other = make(s, literal.n, 1), *longer = make(s, literal.n + format.n, 1);
    if (!other || !longer)
        return;
    for (size_t i = 0; i < literal.n; i++) {
        bool hexadecimal =
            (i >= 1 && literal.p[i - 1] == '%') || (i >= 2 && literal.p[i - 2] == '%');
        other[i] = is_alpha(literal.p[i]) && !hexadecimal ? literal.p[i] ^ 0x20 : literal.p[i];
    }
    view_copy(literal, longer);
    view_copy(format, longer + literal.n);
    add_segment(s, view_of(other, literal.n));
    add_segment(s, view_of(longer, literal.n + format.n));
}

static void find_segments(struct search *s, const struct set *set) {
    s->n_segments = 0;
    add_segment(s, VIEW("zq9"));
    for (size_t i = 0; i < set->n; i++) {
        const struct state *state = &s->states[set->states[i]];
        bool variants = state->rule->widely || state->rule->rule->path.fold;
        if (state->kind == PART_LITERAL)
            add_segment(s, state->text);
        if (state->kind == PART_LITERAL && variants)
            add_variants(s, state->text);
        if (state->kind == PART_NUMBER)
            add_segment(s, VIEW("70007"));
        if (state->kind == PART_NUMBER && variants)
            add_segment(s, VIEW("70007.zq9"));
    }
}

/* ---- the search ---- */

static void expand(struct search *s, size_t i) {
    struct view above = i > 0 ? s->out->at[i].path : (struct view){NULL, 0};
    find_segments(s, &s->sets[i]);
    for (size_t k = 0; k < s->n_segments && !s->failed; k++) {
        step(s, &s->sets[i], s->segments[k]);
        add_class(s, above, s->segments[k]);
    }
}

static int begin(struct search *s, const struct class_rule *rules, size_t n) {
    size_t n_states = 0, slots = 1;
    for (size_t i = 0; i < n; i++)
        n_states += count_parts(rules[i].rule) + 1;
    while (slots < 2 * PATH_CLASSES_MAX)
        slots *= 2;
    s->mask = slots - 1;
    s->states = make(s, n_states + 1, sizeof *s->states);
    s->sets = make(s, PATH_CLASSES_MAX, sizeof *s->sets);
    s->slots = make(s, slots, sizeof *s->slots);
    s->out->at = make(s, PATH_CLASSES_MAX, sizeof *s->out->at);
    s->next.states = make(s, n_states + 1, sizeof(uint32_t));
    if (s->failed)
        return ERR_MEMORY;
    n_states = 0;
    for (size_t i = 0; i < n; i++)
        add_states(s, &rules[i], &n_states);
    return 0;
}

int path_classes_find(const struct class_rule *rules, size_t n, struct path_classes *out) {
    *out = (struct path_classes){.whole = true};
    struct search s = {.out = out};
    if (begin(&s, rules, n) != 0)
        return ERR_MEMORY;
    add_class(&s, (struct view){NULL, 0}, (struct view){NULL, 0});
    for (size_t i = 0; i < out->n && !s.failed; i++)
        expand(&s, i);
    return s.failed ? ERR_MEMORY : 0;
}

void path_classes_free(struct path_classes *c) {
    arena_free(&c->arena);
}

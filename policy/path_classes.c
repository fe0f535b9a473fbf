#include "policy/path_classes.h"

#include <stdlib.h>

/*
 * The patterns are one automaton: a state is a pattern and how many of its parts have been taken. A set of states
 * is what a path leads to, and paths that lead to the same set are a class. Only segments that some
 * state tells from others are tried: literals, what is read as them, a number, and one that nobody wrote. Where
 * slashes may be encoded, a segment is also made of several pieces, which rules that decode take one by one.
 */

enum { JOINTS_MAX = 4096 };

struct state {
    enum part_kind kind; /* 0: all parts were taken */
    struct view text;
    const struct class_rule *rule;
};

struct set {
    uint32_t *states;
    size_t n;
    struct path_words has; /* the paths that lead here */
};

/* Pieces of a segment, and where they lead those rules that decode. */
struct joint {
    struct view text;
    struct set set;
};

struct search {
    struct path_classes *out;
    struct state *states;
    struct set *sets; /* one for each class */
    uint32_t *slots;  /* class + 1 by hash of its set; 0: free */
    size_t mask;
    struct set next; /* being made */
    struct path_words words;
    struct arena scratch; /* for the joints of one class */
    struct set pieces[2]; /* of a segment being taken piece by piece */
    struct joint *joints;
    size_t n_joints;
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
    h += set->has.parameters + 2u * set->has.encoded_slash;
    return h ^ h >> 29;
}

static bool same_set(const struct set *a, const struct set *b) {
    return a->n == b->n && a->has.parameters == b->has.parameters &&
           a->has.encoded_slash == b->has.encoded_slash &&
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
    s->sets[out->n] = (struct set){states, s->next.n, s->next.has};
    s->slots[i] = (uint32_t)++out->n;
    c->path = view_of(path, above.n + segment.n + 1);
    add_rules(s, c, &s->next);
}

/* Keeps the set in order. */
static void add_state(struct set *set, uint32_t state) {
    size_t i = set->n;
    while (i > 0 && set->states[i - 1] > state)
        i--;
    if (i > 0 && set->states[i - 1] == state)
        return;
    for (size_t k = set->n++; k > i; k--)
        set->states[k] = set->states[k - 1];
    set->states[i] = state;
}

/* What the segment leads to for the rules that decode, or for the others. */
static void step_some(const struct search *s, const struct set *from, struct view segment,
                      bool decoded, struct set *to) {
    for (size_t i = 0; i < from->n; i++) {
        uint32_t at = from->states[i];
        const struct state *state = &s->states[at];
        if (state->rule->decoded != decoded || state->kind == 0 ||
            !path_part_match(&state->rule->rule->path, state->kind, state->text, segment,
                             state->rule->widely))
            continue;
        if (state->kind == PART_MANY)
            add_state(to, at);
        add_state(to, at + 1);
    }
}

static const struct set *step_pieces(struct search *s, const struct set *from,
                                     struct view segment) {
    for (unsigned turn = 0; segment.n > 0; turn ^= 1) {
        struct view piece = view_head(segment, view_search(segment, VIEW("%2F")));
        struct set *to = &s->pieces[turn];
        to->n = 0;
        step_some(s, from, piece, true, to);
        segment = view_skip(segment, piece.n + 3);
        from = to;
    }
    return from;
}

static bool holds(struct view segment, const char *text) {
    return view_search(segment, view_str(text)) < segment.n;
}

static void step(struct search *s, const struct set *from, struct view segment) {
    s->next.n = 0;
    s->next.has = from->has;
    s->next.has.encoded_slash |= holds(segment, "%2F");
    s->next.has.parameters |= holds(segment, ";") || holds(segment, "%3B");
    step_some(s, from, segment, false, &s->next);
    const struct set *decoded = step_pieces(s, from, segment);
    for (size_t i = 0; i < decoded->n; i++)
        add_state(&s->next, decoded->states[i]);
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

static struct view join(struct search *s, struct view a, const char *between, struct view b) {
    struct view middle = view_str(between);
    uint8_t *p = make(s, a.n + middle.n + b.n, 1);
    if (!p)
        return (struct view){NULL, 0};
    view_copy(a, p);
    view_copy(middle, p + a.n);
    view_copy(b, p + a.n + middle.n);
    return view_of(p, a.n + middle.n + b.n);
}

static struct view other_case(struct search *s, struct view literal) {
    uint8_t *other = make(s, literal.n, 1);
    for (size_t i = 0; other && i < literal.n; i++) {
        bool hexadecimal =
            (i >= 1 && literal.p[i - 1] == '%') || (i >= 2 && literal.p[i - 2] == '%');
        other[i] = is_alpha(literal.p[i]) && !hexadecimal ? literal.p[i] ^ 0x20 : literal.p[i];
    }
    return view_of(other, other ? literal.n : 0);
}

/* What a server may take for it: with a format, or with parameters behind it. */
static void add_longer(struct search *s, struct view segment, bool format) {
    const struct view nothing = {NULL, 0};
    if (format)
        add_segment(s, join(s, segment, ".zq9", nothing));
    if (s->words.parameters)
        add_segment(s, join(s, segment, ";zq9", nothing));
}

/* Of the states of rules that decode: pieces between encoded slashes. */
static void find_segments(struct search *s, const struct set *set) {
    s->n_segments = 0;
    add_segment(s, VIEW("zq9"));
    add_longer(s, VIEW("zq9"), false);
    for (size_t i = 0; i < set->n; i++) {
        const struct state *state = &s->states[set->states[i]];
        bool variants = state->rule->widely || state->rule->rule->path.fold;
        struct view text = state->kind == PART_NUMBER ? VIEW("70007") : state->text;
        if (state->kind != PART_LITERAL && state->kind != PART_NUMBER)
            continue;
        add_segment(s, text);
        if (variants && state->kind == PART_LITERAL)
            add_segment(s, other_case(s, text));
        if (variants)
            add_longer(s, text, true);
    }
}

/* ---- segments of several pieces ---- */

static bool is_known_joint(const struct search *s, const struct joint *j) {
    for (size_t i = 1; i < s->n_joints; i++)
        if (same_set(&s->joints[i].set, &j->set))
            return true;
    return false;
}

/* True: it is the first of those that lead there. */
static bool add_joint(struct search *s, struct view text, const struct set *set) {
    struct joint j = {.text = text, .set = *set};
    j.set.has.parameters = holds(text, ";") || holds(text, "%3B");
    if (s->failed || is_known_joint(s, &j))
        return false;
    if (s->n_joints == JOINTS_MAX) {
        s->out->whole = false;
        return false;
    }
    j.set.states = arena_array(&s->scratch, set->n + 1, sizeof(uint32_t));
    s->failed = s->failed || !j.set.states;
    if (!j.set.states)
        return false;
    memcpy(j.set.states, set->states, set->n * sizeof(uint32_t));
    s->joints[s->n_joints++] = j;
    return true;
}

/*
 * All that begin with this piece. For the rules that do not decode it is settled by the first piece and that
 * there is another one; the others tell apart what leads to different sets.
 */
static void find_joints(struct search *s, const struct set *from, struct view first) {
    s->n_joints = 0;
    (void)add_joint(s, first, step_pieces(s, from, first));
    for (size_t i = 0; i < s->n_joints && !s->failed; i++) {
        find_segments(s, &s->joints[i].set);
        for (size_t k = 0; k < s->n_segments; k++)
            if (!holds(s->segments[k], "%2F"))
                (void)add_joint(s, join(s, s->joints[i].text, "%2F", s->segments[k]),
                                step_pieces(s, &s->joints[i].set, s->segments[k]));
    }
}

/* ---- the search ---- */

static void take(struct search *s, size_t i, struct view segment) {
    struct view above = i > 0 ? s->out->at[i].path : (struct view){NULL, 0};
    step(s, &s->sets[i], segment);
    add_class(s, above, segment);
}

static void expand_joints(struct search *s, size_t i, const struct view *first, size_t n) {
    for (size_t k = 0; k < n && !s->failed; k++) {
        find_joints(s, &s->sets[i], first[k]);
        for (size_t j = 1; j < s->n_joints && !s->failed; j++)
            take(s, i, s->joints[j].text);
        arena_free(&s->scratch);
        s->scratch = (struct arena){.chunks = NULL};
    }
}

static void expand(struct search *s, size_t i) {
    find_segments(s, &s->sets[i]);
    size_t n = s->n_segments;
    struct view *segments = make(s, n, sizeof *segments);
    for (size_t k = 0; k < n && !s->failed; k++) {
        segments[k] = s->segments[k];
        take(s, i, segments[k]);
    }
    if (s->words.encoded_slash && !s->failed)
        expand_joints(s, i, segments, n);
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
    s->pieces[0].states = make(s, n_states + 1, sizeof(uint32_t));
    s->pieces[1].states = make(s, n_states + 1, sizeof(uint32_t));
    s->joints = make(s, JOINTS_MAX, sizeof *s->joints);
    if (s->failed)
        return ERR_MEMORY;
    n_states = 0;
    for (size_t i = 0; i < n; i++)
        add_states(s, &rules[i], &n_states);
    return 0;
}

int path_classes_find(const struct class_rule *rules, size_t n, struct path_words words,
                      struct path_classes *out) {
    *out = (struct path_classes){.whole = true};
    struct search s = {.out = out, .words = words};
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

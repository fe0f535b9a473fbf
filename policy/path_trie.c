#include "policy/path_trie.h"

#include "policy/path_segment.h"
#include "policy/rules.h"

/* ---- hashes ---- */

static uint32_t hash_start(uint32_t from) {
    return (2166136261u ^ from) * 16777619u;
}

static uint32_t hash_byte(uint32_t hash, uint8_t c) {
    return (hash ^ c) * 16777619u;
}

static uint32_t hash_exact(uint32_t from, struct view v) {
    uint32_t hash = hash_start(from);
    for (size_t i = 0; i < v.n; i++)
        hash = hash_byte(hash, v.p[i]);
    return hash;
}

static uint32_t hash_folded(uint32_t from, struct view v) {
    uint32_t hash = hash_start(from);
    for (size_t i = 0; i < v.n; i++)
        hash = hash_byte(hash, to_lower(v.p[i]));
    return hash;
}

static uint32_t hash_decoded(uint32_t from, struct view v) {
    uint32_t hash = hash_start(from);
    while (v.n > 0)
        hash = hash_byte(hash, to_lower(path_segment_decoded(&v)));
    return hash;
}

/* Whether the first n decoded bytes of v, all of them where n is larger, are those of text. */
static bool equal_decoded(struct view text, struct view v, size_t n) {
    for (; n > 0 && text.n > 0 && v.n > 0; n--)
        if (to_lower(path_segment_decoded(&text)) != to_lower(path_segment_decoded(&v)))
            return false;
    return text.n == 0 && (n == 0 || v.n == 0);
}

/* ---- building ---- */

int path_trie_init(struct path_trie *t, struct arena *a, size_t n, size_t n_roots) {
    size_t slots = 16, nodes = n + n_roots + 1;
    while (slots < 2 * n)
        slots *= 2;
    *t = (struct path_trie){.n_nodes = 1, .mask = slots - 1, .max_nodes = (uint32_t)nodes};
    t->nodes = arena_array(a, nodes, sizeof *t->nodes);
    t->edges = arena_array(a, slots, sizeof *t->edges);
    t->states = arena_alloc(a, sizeof *t->states);
    if (!t->nodes || !t->edges || !t->states)
        return ERR_MEMORY;
    t->states->seen = arena_array(a, nodes, sizeof(uint32_t));
    t->states->set[0] = arena_array(a, nodes, sizeof(uint32_t));
    t->states->set[1] = arena_array(a, nodes, sizeof(uint32_t));
    return t->states->seen && t->states->set[0] && t->states->set[1] ? 0 : ERR_MEMORY;
}

static uint32_t new_node(struct path_trie *t) {
    return t->n_nodes++;
}

uint32_t path_trie_root(struct path_trie *t) {
    return new_node(t);
}

/* The literal edges of exact tries are looked up exactly or folded, those of wide ones decoded. */
static uint32_t add_literal(struct path_trie *t, uint32_t from, struct view part, bool fold,
                            bool widely) {
    uint32_t hash = widely ? hash_decoded(from, part)
                    : fold ? hash_folded(from, part)
                           : hash_exact(from, part);
    size_t i = hash & t->mask;
    for (; t->edges[i].to != 0; i = (i + 1) & t->mask) {
        const struct path_edge *e = &t->edges[i];
        if (e->from == from && e->hash == hash && e->fold == fold &&
            (widely ? equal_decoded(e->text, part, part.n)
             : fold ? view_equal_nocase(e->text, part)
                    : view_equal(e->text, part)))
            return e->to;
    }
    t->edges[i] = (struct path_edge){from, new_node(t), hash, fold, part};
    t->nodes[from].literals = true;
    t->folds = t->folds || fold;
    return t->edges[i].to;
}

static uint32_t add_part(struct path_trie *t, uint32_t from, enum part_kind kind, struct view part,
                         bool fold, bool widely) {
    if (kind == PART_LITERAL)
        return add_literal(t, from, part, fold && !widely, widely);
    struct path_node *node = &t->nodes[from];
    uint32_t *to = kind == PART_ONE      ? &node->one
                   : kind == PART_NUMBER ? &node->number
                                         : &node->many;
    if (*to == 0)
        *to = new_node(t);
    t->nodes[*to].loops = kind == PART_MANY;
    return *to;
}

void path_trie_add(struct path_trie *t, uint32_t root, struct rule *r, bool widely) {
    struct view rest = r->path.text, part;
    enum part_kind kind;
    uint32_t at = root;
    while (path_pattern_part(&r->path, &rest, &part, &kind))
        at = add_part(t, at, kind, part, r->path.fold, widely);
    r->same = t->nodes[at].rules;
    t->nodes[at].rules = r;
}

/* ---- walking ---- */

struct walk {
    const struct path_trie *t;
    struct path_states *states;
    uint32_t *to;
    size_t n_to;
};

static void enter(struct walk *w, uint32_t node) {
    if (node == 0 || w->states->seen[node] == w->states->round)
        return;
    w->states->seen[node] = w->states->round;
    w->to[w->n_to++] = node;
}

/* n: so many decoded bytes of the segment; the exact readings take all of it. */
static void follow(struct walk *w, uint32_t from, uint32_t hash, struct view segment, size_t n,
                   bool fold, bool widely) {
    for (size_t i = hash & w->t->mask; w->t->edges[i].to != 0; i = (i + 1) & w->t->mask) {
        const struct path_edge *e = &w->t->edges[i];
        if (e->from == from && e->hash == hash && e->fold == fold &&
            (widely ? equal_decoded(e->text, segment, n)
             : fold ? view_equal_nocase(e->text, segment)
                    : view_equal(e->text, segment))) {
            enter(w, e->to);
            return;
        }
    }
}

/* Every beginning of the segment behind which servers strip the rest. */
static void follow_stripped(struct walk *w, uint32_t from, struct view segment) {
    uint32_t hash = hash_start(from);
    struct view rest = segment;
    struct path_tails tails = {.behind = NULL};
    for (size_t n = 1; rest.n > 0; n++) {
        hash = hash_byte(hash, to_lower(path_segment_decoded(&rest)));
        if (path_tails_next_is_stripped(&tails, rest))
            follow(w, from, hash, segment, n, false, true);
    }
}

static void follow_widely(struct walk *w, uint32_t from, struct view segment) {
    struct view unpadded = path_segment_unpadded(segment);
    follow_stripped(w, from, segment);
    if (unpadded.n < segment.n)
        follow_stripped(w, from, unpadded);
}

static void step(struct walk *w, uint32_t from, struct view segment, bool widely) {
    const struct path_node *node = &w->t->nodes[from];
    if (node->loops)
        enter(w, from);
    enter(w, node->one);
    enter(w, node->many);
    if (node->number != 0 && path_segment_is_number(segment, widely))
        enter(w, node->number);
    if (!node->literals)
        return;
    if (widely) {
        follow_widely(w, from, segment);
        return;
    }
    follow(w, from, hash_exact(from, segment), segment, 0, false, false);
    if (w->t->folds)
        follow(w, from, hash_folded(from, segment), segment, 0, true, false);
}

/* The next segment; decoded: an encoded slash ends it as well. */
static bool take_segment(struct view *path, bool decoded, struct view *segment) {
    if (path->n < 2)
        return false;
    struct view rest = view_skip(*path, path->p[0] == '/' ? 1 : 3);
    size_t end = view_find(rest, '/'), encoded = decoded ? view_search(rest, VIEW("%2F")) : rest.n;
    if (encoded < end)
        end = encoded;
    *segment = view_head(rest, end);
    *path = view_skip(rest, end);
    return segment->n > 0;
}

/* Rounds are numbered so that no set has to be cleared. */
static void next_round(struct walk *w, uint32_t *to) {
    if (++w->states->round == 0) {
        memset(w->states->seen, 0, w->t->max_nodes * sizeof *w->states->seen);
        w->states->round = 1;
    }
    w->to = to;
    w->n_to = 0;
}

void path_trie_walk(const struct path_trie *t, uint32_t root, const struct target *target,
                    bool widely, bool decoded, bool (*found)(void *ctx, const struct rule *rules),
                    void *ctx) {
    struct walk w = {.t = t, .states = t->states};
    struct view path = target->path, segment;
    size_t turn = 0;
    if (path.n == 0 || path.p[0] != '/')
        return;
    next_round(&w, t->states->set[0]);
    enter(&w, root);
    while (w.n_to > 0 && take_segment(&path, decoded, &segment)) {
        const uint32_t *from = w.to;
        size_t n = w.n_to;
        turn ^= 1;
        next_round(&w, t->states->set[turn]);
        for (size_t i = 0; i < n; i++)
            step(&w, from[i], segment, widely);
    }
    for (size_t i = 0; i < w.n_to; i++)
        if (t->nodes[w.to[i]].rules && !found(ctx, t->nodes[w.to[i]].rules))
            return;
}

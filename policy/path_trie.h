/*
 * Path patterns as tries of segments: which rules of a service match a path, in
 * time that depends on the path and on what matches, not on how many rules there
 * are. All tries of a policy share one table of nodes and one of edges. Internal to policy/.
 *
 * A trie is asked in one reading: exactly (operations), or widely (never lines), as path_pattern_match
 * has it. The literals of its edges are kept for that reading.
 */
#ifndef POLICY_PATH_TRIE_H
#define POLICY_PATH_TRIE_H

#include "policy/arena.h"
#include "policy/pattern.h"

struct rule;

struct path_node {
    uint32_t one, number, many; /* nodes behind `*`, `{n:int}`, `**`; 0: none */
    bool loops;                 /* it stands behind `**`, and takes further segments */
    bool literals;              /* it has literal edges */
    const struct rule *rules;   /* whose pattern ends here */
};

struct path_edge {
    uint32_t from, to, hash; /* to 0: a free slot */
    bool fold;
    struct view text;
};

/* The states of a walk, two sets, and in which round a node was last put into one. */
struct path_states {
    uint32_t *set[2], *seen;
    uint32_t round;
};

struct path_trie {
    struct path_node *nodes; /* node 0 is none */
    uint32_t n_nodes, max_nodes;
    struct path_edge *edges;
    size_t mask;
    bool folds;                 /* some edge compares without case */
    struct path_states *states; /* changes while the policy does not */
};

/* Takes room for patterns of n segments in all, and n_roots tries. ERR_MEMORY. */
MUST_USE int path_trie_init(struct path_trie *t, struct arena *a, size_t n, size_t n_roots);
uint32_t path_trie_root(struct path_trie *t);
/* Puts the rule, with its path, below root. */
void path_trie_add(struct path_trie *t, uint32_t root, struct rule *r, bool widely);
/*
 * Calls found for the lists of rules whose paths end where this path ends, until it returns false. Rules of a
 * list are linked by `same`; whether their final slash fits is left to be asked (path_pattern_ends). Widely,
 * decoded says that "%2F" parts segments, as a server that decodes first would have it. Not reentrant: the policy's own memory holds the states.
 */
void path_trie_walk(const struct path_trie *t, uint32_t root, const struct target *target,
                    bool widely, bool decoded, bool (*found)(void *ctx, const struct rule *rules),
                    void *ctx);

#endif

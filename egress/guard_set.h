/*
 * The secrets that guard.c looks for, and the count of their fragments (guard_set.c); the functions of
 * guard.h on sets are there, too.
 */
#ifndef EGRESS_GUARD_SET_H
#define EGRESS_GUARD_SET_H

#include "egress/fragments.h"
#include "egress/guard.h"
#include "egress/guard_index.h"
#include "egress/spelling.h"

/* Released bytes that are kept: the longest run's spelling, and as much again for its folds. */
enum { GUARD_CONTEXT = 2 * GUARD_RUN_MAX * SPELLING_GROWTH };

/* A secret with its spellings, all of it in the arena. */
struct lent {
    uint64_t until;
    size_t prefix; /* the longest that guard_set_add was told */
    char name[GUARD_NAME_MAX + 1];
    struct fragments fragments;
    size_t n;             /* of the value, which is patterns[0].text */
    const uint8_t *small; /* the value in small letters */
    size_t n_patterns;
    struct guard_pattern patterns[2 * SPELLINGS];
    uint8_t text[];
};

struct guard_set {
    unsigned references;
    size_t max, run;
    uint64_t random;
    struct lent **lent;
    size_t n;
    struct guard_index index;
    size_t hold;
    bool token[256];
    size_t most_fragments;
    uint64_t fragments_time;
    uint64_t look; /* counts them */
    char exceeded[GUARD_NAME_MAX + 1];
    uint64_t exceeded_until; /* 0: not yet known */
};

/* Fragments were counted: finds whether they exceed the set. */
void guard_set_judge(struct guard_set *set);

/* ---- the bench on which guard.c looks at a text: one for all sets, gone with the last ---- */
void guard_bench_open(void);
void guard_bench_close(void);
/* False: there is no memory to look at n bytes. */
bool guard_bench_fits(size_t n);

#endif

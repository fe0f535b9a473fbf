/*
 * The guard's search: all spellings of all secrets of a set, compiled so that
 * plain text is passed over at memory's speed. Only egress/guard.c uses it.
 *
 * Every run that must be masked holds, wherever it begins, eight bytes that
 * start at a multiple of `step`; so only those positions are looked at, and
 * those eight bytes are looked up, first in a bitmap, then in a table. A hit is
 * extended to the longest run that text and spelling share. Pure but for its
 * memory, which lies in the locked arena.
 */
#ifndef EGRESS_GUARD_INDEX_H
#define EGRESS_GUARD_INDEX_H

#include "base/bytes.h"

enum { GUARD_GRAM = 8, GUARD_PATTERNS_MAX = 65000, GUARD_PATTERN_MAX = 65535 };

/* One spelling; text lies in the arena and outlives the index. */
struct guard_pattern {
    const uint8_t *text;
    size_t n;
    size_t head; /* this many bytes at its beginning do not count (see guard.h) */
    size_t need; /* this many bytes of the rest make a run; GUARD_GRAM to n - head */
    bool leans_before, leans_after; /* base64: the neighbouring character is masked as well */
    bool small;                     /* of the secret in small letters: for the one who made it */
    size_t kind;                    /* of egress/spelling.h */
    void *secret;                   /* whose spelling it is: for the one who made it */
};

struct guard_index {
    struct guard_pattern *patterns; /* in the arena, owned */
    size_t n;
    uint32_t *table; /* (pattern + 1) << 16 | offset; 0 is free */
    uint8_t *bits;
    unsigned table_shift, bits_shift;
    size_t step;
    size_t
        reach; /* a run around any byte of it has a gram that begins less than this far from that byte */
    uint64_t factor; /* of the hash; odd and not known to a sandbox */
};

/*
 * Compiles n patterns, taking them over (arena memory). The factor is random:
 * with a known one, delays could tell which eight bytes share a bit with a
 * secret's. ERR_MEMORY or ERR_LIMIT: then nothing was taken over.
 */
MUST_USE int guard_index_build(struct guard_index *x, struct guard_pattern *patterns, size_t n,
                               uint64_t factor);
void guard_index_free(struct guard_index *x);

/* A run of text that must be masked: text and spelling share [from, to), which begins at `begin` of the spelling. */
struct guard_run {
    const struct guard_pattern *pattern;
    size_t from, to;
    size_t begin, end;
    bool whole;                     /* the whole spelling */
    bool leans_before, leans_after; /* the neighbour must be masked as well */
};

/* Calls found for every such run; runs may overlap and repeat. */
typedef void guard_found(void *ctx, const struct guard_run *run);
void guard_index_scan(const struct guard_index *x, struct view text, guard_found *found, void *ctx);
/* The same of runs that hold at least one of the bytes in [from, to) of the text, and perhaps of others. */
void guard_index_scan_at(const struct guard_index *x, struct view text, size_t from, size_t to,
                         guard_found *found, void *ctx);

#endif

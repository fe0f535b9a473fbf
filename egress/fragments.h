/*
 * Fragments: parts of one secret that answers have shown the guard. Each that tells something new is
 * a guess that was confirmed (docs/decisions/0006). Pure.
 */
#ifndef EGRESS_FRAGMENTS_H
#define EGRESS_FRAGMENTS_H

#include "base/bytes.h"

enum { FRAGMENTS_MAX = 64 };

struct fragment {
    uint16_t from, to; /* bytes of the secret */
    uint64_t until;    /* when it is forgotten; 0: not yet known */
};

struct fragments {
    struct fragment at[FRAGMENTS_MAX + 1];
    size_t n;
    uint64_t look; /* the last one that noted something, */
    size_t before; /* and how many were there before it */
};

/*
 * Notes [from, to), unless a noted one holds all of it. Those of one look that overlap are one. More than
 * FRAGMENTS_MAX count as one more, whatever comes then.
 */
void fragments_note(struct fragments *f, uint64_t look, size_t from, size_t to);
/* Those that have no time yet last until then. */
void fragments_date(struct fragments *f, uint64_t until);
/* Forgets those whose time is over. */
void fragments_forget(struct fragments *f, uint64_t now);
/* When the last of them is forgotten; 0: there is none. */
uint64_t fragments_last(const struct fragments *f);

#endif

/*
 * Fragments: parts of one secret that answers have shown the guard. Each that tells something new is
 * a guess that was confirmed (docs/decisions/0006). Pure.
 */
#ifndef EGRESS_FRAGMENTS_H
#define EGRESS_FRAGMENTS_H

#include "base/bytes.h"

enum { FRAGMENTS_MAX = 64 };

struct fragments {
    uint16_t from[FRAGMENTS_MAX + 1], to[FRAGMENTS_MAX + 1]; /* bytes of the secret */
    size_t n;
};

/* Notes [from, to), unless a noted one holds all of it. More than FRAGMENTS_MAX count as one more. */
void fragments_note(struct fragments *f, size_t from, size_t to);

#endif

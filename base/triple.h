/*
 * Search for places where three bytes in a row have a kind in common. What looks for many short
 * patterns in long texts looks closer only there; on processors that can, 32 places are looked at together.
 */
#ifndef BASE_TRIPLE_H
#define BASE_TRIPLE_H

#include "base/bytes.h"

enum { TRIPLE_LANES = 32 };

struct triple {
    uint8_t kinds[3][256]; /* a bit for each kind that the first, second and third byte may be of */
    /* Kinds by the low and by the high half of a byte, twice: one is in both when the byte is of it. */
    uint8_t low[3][TRIPLE_LANES], high[3][TRIPLE_LANES];
};

/* To be called once, when kinds are filled in. */
void triple_prepare(struct triple *t);
/* The kinds that p[0], p[1] and p[2] have in common. */
static inline unsigned triple_kinds(const struct triple *t, const uint8_t *p) {
    return t->kinds[0][p[0]] & t->kinds[1][p[1]] & t->kinds[2][p[2]];
}
/* The first place from `at` on with such kinds; v.n when there is none. at <= v.n. */
size_t triple_next(const struct triple *t, struct view v, size_t at);

#endif

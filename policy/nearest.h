/*
 * Which name somebody meant who wrote another. Pure.
 */
#ifndef POLICY_NEAREST_H
#define POLICY_NEAREST_H

#include "base/bytes.h"

enum { NEAREST_MAX = 64 }; /* what stands behind is not looked at */

/* How many bytes must be put in, taken out or replaced to make b of a (Levenshtein); the case of letters does not count. */
size_t nearest_distance(struct view a, struct view b);

#endif

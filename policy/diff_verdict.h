/*
 * How the verdicts of two policies on one request differ. For diff.c.
 */
#ifndef POLICY_DIFF_VERDICT_H
#define POLICY_DIFF_VERDICT_H

#include "policy/diff.h"

/* False: the request fares alike in both. */
bool verdicts_differ(const struct verdict v[2], enum diff_kind *kind);
/* Whether the limits differ by whose grants both are allowed, and how. */
bool verdict_limits_differ(const struct verdict v[2], enum diff_kind *kind);

#endif

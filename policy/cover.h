/*
 * Which lines of a policy cover others. Internal to policy/. Pure. All may say
 * false where a yes is hard to see, never the other way round.
 */
#ifndef POLICY_COVER_H
#define POLICY_COVER_H

#include "policy/rules.h"

bool condition_same(const struct condition *a, const struct condition *b);
/* Whether every request that line b of an operation takes is one that a takes; widely: a is a never line. */
bool rule_covers(const struct rule *a, const struct rule *b, bool widely);
/* Whether a covers each host and port of b. */
bool service_covers(const struct service *a, const struct service *b);

#endif

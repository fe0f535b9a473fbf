/*
 * Suspensions that outlive their lane (docs/decisions/0006). What the guard has counted goes with
 * egress; the parent keeps who is suspended, and tells the next egress of the lane. That one does
 * not know what was counted: for guard-time the first part is one too many.
 */
#ifndef EGRESS_SUSPENSION_H
#define EGRESS_SUSPENSION_H

#include "egress/lane.h"

/* The guard's set of that sandbox is exceeded: that holds for LIMIT_GUARD_TIME, and the parent is told. */
void suspension_begin(struct lane *l, struct view sandbox);
/* From the parent: who was suspended by the egress before. ERR_BAD, ERR_MEMORY. */
MUST_USE int suspension_take(struct lane *l, struct view list);
/* It is suspended: by what the guard has counted, or it was, by this egress or the one before, and that counts still. */
bool suspension_holds(const struct lane *l, struct view sandbox);
size_t suspension_count(const struct lane *l);
/*
 * Within LIMIT_GUARD_TIME of the beginning of a lane that begins again: what was lent and counted
 * before is not known.
 */
bool suspension_is_unknown(const struct lane *l);
/* How many parts of a secret are too few to suspend: LIMIT_GUARD_FRAGMENTS, or none. */
size_t suspension_fragments(const struct lane *l);

#endif

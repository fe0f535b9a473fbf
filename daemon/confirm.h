/*
 * Whether a new policy allows something that the running one does not: that takes an operator's word. Role load.
 */
#ifndef DAEMON_CONFIRM_H
#define DAEMON_CONFIRM_H

#include "policy/policy.h"

/* The descriptor with the sealed text of the running generation, or -1. Before anything is opened. */
int confirm_running(void);
/*
 * Compares the new policy, whose packed text is given, with that of the text in the descriptor. 0 when it allows nothing more;
 * ERR_DENIED with examples in why, also when not all could be compared. ERR_MEMORY, ERR_BAD.
 */
MUST_USE int confirm_policy(int running, struct view packed, const struct policy *policy,
                            struct buf *why);

#endif

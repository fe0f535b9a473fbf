/*
 * What sandboxes have used of their grants with limits (egress/tally.h), kept beyond their lanes: a lane that
 * has the same sandboxes as one that ended counts on where that one was, so that nobody has more by attaching
 * again.
 */
#ifndef DAEMON_LEDGERS_H
#define DAEMON_LEDGERS_H

#include "daemon/state.h"

/*
 * How many are kept at most, and no more than this part of the descriptors that the parent may have: each is one, and the names of
 * attached lanes are what attach says.
 */
enum { LEDGERS_MAX = 4096, LEDGERS_SHARE = 4 };

/* A lane ends: its egress' ledger, if there is one and there is room, is kept for those whom the lane's own line names. */
void ledgers_keep(const struct lane *l, const struct process *egress);
/* Of a lane that begins: -1, or the kept one of the same sandboxes. */
int ledgers_take(const struct lane *l);

#endif

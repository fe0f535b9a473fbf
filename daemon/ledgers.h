/*
 * What sandboxes have used of their grants with limits (egress/tally.h), kept beyond their lanes: a lane that
 * has the same sandboxes as one that ended counts on where that one was, so that nobody has more by attaching
 * again.
 */
#ifndef DAEMON_LEDGERS_H
#define DAEMON_LEDGERS_H

#include "daemon/state.h"

/* A lane ends: its egress' ledger, if there is one, is kept for those whom the lane's own line names. */
void ledgers_keep(const struct lane *l, const struct process *egress);
/* Of a lane that begins: -1, or the kept one of the same sandboxes. */
int ledgers_take(const struct lane *l);

#endif

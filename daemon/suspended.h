/*
 * Who is suspended in a lane (docs/decisions/0006): its egress tells the parent, who keeps it for
 * the next egress, so that nobody is free again by ending a lane.
 */
#ifndef DAEMON_SUSPENDED_H
#define DAEMON_SUSPENDED_H

#include "daemon/state.h"

/* From this egress. ERR_BAD: not from another, or not in form. */
MUST_USE int suspended_take(struct process *egress, struct view body);
/* To an egress that follows another: what counts still, perhaps nothing. */
void suspended_send(struct process *egress);

#endif

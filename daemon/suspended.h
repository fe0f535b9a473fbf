/*
 * Who is suspended in a lane (docs/decisions/0006): its egress tells the parent, who keeps it for
 * the next egress, so that nobody is free again by ending a lane; also when the lane is another one that
 * has the same sandbox.
 */
#ifndef DAEMON_SUSPENDED_H
#define DAEMON_SUSPENDED_H

#include "daemon/state.h"

/* From this egress. ERR_BAD: not from another, or not in form. A sandbox that its lane does not have changes nothing. */
MUST_USE int suspended_take(struct process *egress, struct view body);
/*
 * To an egress that follows another, or whose lane follows another of its sandboxes, or may do so since there was no
 * room to note all: what counts still, perhaps nothing.
 */
void suspended_send(struct process *egress);
/* A lane ends whose sandboxes another one may have later. */
void suspended_note_end(struct lane *l);

#endif

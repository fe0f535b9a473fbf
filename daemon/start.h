/*
 * When processes are started, and started again: at once, with a back-off that doubles up to ten seconds
 * and is forgotten after a steady minute, or, inspect, when its egress has work for it. Proxy and
 * egress of a lane are born with a channel between them and die together; inspect comes back alone.
 */
#ifndef DAEMON_START_H
#define DAEMON_START_H

#include "daemon/state.h"

enum { LANE_ROLES = 3 };
/* Of a lane, in the order in which they are started. */
extern const enum role lane_roles[LANE_ROLES];

/*
 * A process of no lane, or inspect. A failure is tried again; a file of its own that cannot be
 * opened ends the start of exeatd, and later the process.
 */
void start_process(struct process *of);
/* After its back-off, with the rest of its lane. */
void start_again_later(struct process *of);
/* Proxy and egress, and a sleeping inspect. */
void start_lane(struct parent *p, uint32_t lane);
/* A sleeping inspect whose egress has given up its end of the channel gets another. */
void start_asleep_again(struct process *inspect);
/* A sleeping inspect is down, and is not woken. */
void start_cancel(struct process *inspect);
/* Ends the rest of the lane of a process that has ended. */
void lane_end(struct process *of);

#endif

/*
 * Generations: loading a text in a child, numbering it, and putting it into use everywhere or
 * nowhere: all processes acknowledge number N before any is told to use it.
 */
#ifndef DAEMON_ROLLOUT_H
#define DAEMON_ROLLOUT_H

#include "daemon/state.h"

/* Begins when something new is wanted and everything for it is there. */
void rollout_begin(struct parent *p);
/*
 * Starts reading configuration and policy anew (start, SIGHUP, `exeat reload`). Unless it is confirmed, a policy that allows more
 * than the running one is refused (daemon/load.h).
 */
void rollout_load(struct parent *p, bool confirmed);
/* The broker has issued or ended something; state: of its vault. left: it was the end of a lane's that has ended. */
void rollout_registry(struct parent *p, uint64_t state, struct view registry, bool left);
/* A lane has ended, and nobody waits for a generation without it. */
void rollout_leave(struct parent *p);
/* A process is up: it gets the generation in use, or takes part in the one that is rolled out. */
void rollout_greet(struct process *of);
/* A process is gone: nobody waits for it. */
void rollout_lost(struct process *of);
/* Its answers. Anything but 0 drops its channel. */
MUST_USE int rollout_ready(struct process *of, uint32_t number);
MUST_USE int rollout_confirmed(struct process *of, uint32_t number);
MUST_USE int rollout_refused(struct process *of, uint32_t number, struct view why);

#endif

/*
 * One child process: forked, given its uid and its descriptors, and executed as this same binary
 * with its role on the command line.
 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

#include "daemon/state.h"

/* Adds a row to the process table. NULL for want of memory or descriptors. */
struct process *process_add(struct parent *p, enum role role, uint32_t lane);
/* Removes the row of a process that does not run. */
void process_free(struct process *of);
/*
 * Another audit stream for a process that has spoiled its own, and is killed. Without one, for want of
 * descriptors, nothing is allowed to it.
 */
void process_renew_records(struct process *of);
struct process *process_find(struct parent *p, enum role role, uint32_t lane);
/* NULL unless that process of ours runs. */
struct process *process_by_pid(struct parent *p, pid_t pid);
/* As many descriptors as may be, for the parent's own: each lane takes about ten. -1 after saying that they are too few to begin with. */
int process_raise_descriptors(void);
/* There is a process, which has not been reaped. */
bool process_runs(const struct process *of);
/* SIGKILL, if it runs. */
void process_kill(struct process *of);
/*
 * Starts it. rules and ctx are those of its channel. lane_fd is taken over. False with a line in
 * the log.
 */
bool process_start(struct process *of, const struct channel_rule *rules, size_t n_rules,
                   channel_closed *closed);
/*
 * Starts the load child, which writes to the returned descriptor. running: the text of the generation that its policy is
 * compared with; -1: none. -1 on failure.
 */
int process_start_loader(struct parent *p, int running);

#endif

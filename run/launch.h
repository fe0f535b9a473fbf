/*
 * A command in a sandbox of namespaces, made by an ordinary user: the outer side. In order:
 * launch_begin makes the namespaces and gives the listening sockets in them; somebody begins to serve
 * them; launch_go starts the command; launch_wait ends with it. Every signal is held back from
 * launch_begin on.
 */
#ifndef RUN_LAUNCH_H
#define RUN_LAUNCH_H

#include "base/bytes.h"
#include "run/network.h"
#include "run/plan.h"

#include <signal.h>
#include <sys/types.h>

struct launch {
    pid_t init; /* the sandbox's first process, whose end is the sandbox's */
    int listeners
        [NETWORK_LISTENERS]; /* of its network (network.h), from the first; the caller's to close */
    size_t n_listeners;
    int talk;         /* with the first process (talk.h) */
    sigset_t signals; /* blocked before */
    pid_t foreground; /* the terminal's process group before, or -1 */
};

/* -1 after saying why not; nothing is left then. */
int launch_begin(struct launch *l, const struct run_plan *plan);
/* Starts the command; environment: blocks "NAME=value" that are added to ours. -1: it has ended already, and said why. */
int launch_go(struct launch *l, struct view environment);
/* Until the command's end: its status as waitpid(2) has it. -1: there is none, a process of the sandbox has said why. */
int launch_wait(struct launch *l, int *status);
/* Ends a sandbox whose command was not started. */
void launch_abandon(struct launch *l);

/* Parts of the above that a command without a sandbox (unenforced.h) has as well: holding signals back; the end of l->init. */
void launch_hold(struct launch *l);
int launch_await(const struct launch *l);

#endif

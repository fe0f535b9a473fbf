/*
 * A command without a sandbox, where its user says so: it is told of exeat by its environment, and nothing
 * forces it to go there. In the order of launch.h, launch_hold first: unenforced_begin gives the one listening socket, on this machine's
 * loopback; unenforced_go starts the command; unenforced_wait ends with it. What it leaves running goes on.
 */
#ifndef RUN_UNENFORCED_H
#define RUN_UNENFORCED_H

#include "run/launch.h"

/* -1 after saying why not. */
int unenforced_begin(struct launch *l, uint16_t *port);
/* Starts the command; environment: blocks "NAME=value" that are added to ours. -1 after saying why not. */
int unenforced_go(struct launch *l, char **argv, struct view environment);
/* The command's status as waitpid(2) has it. */
int unenforced_wait(struct launch *l);

#endif

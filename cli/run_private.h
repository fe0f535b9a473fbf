/*
 * An exeatd of a sandbox's own, for its lifetime: configuration, CA, vault and audit trail in a
 * directory that nobody else has, and that is gone afterwards.
 */
#ifndef CLI_RUN_PRIVATE_H
#define CLI_RUN_PRIVATE_H

#include "base/bytes.h"
#include "cli/run_options.h"

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

struct run_private {
    char directory[PATH_MAX];   /* "": there is none */
    char public[PATH_MAX + 16]; /* the files that the sandbox is given */
    pid_t daemon;               /* 0: not started */
};

/* Makes the directory with all that a start needs. 0, or -1 after saying why not. */
int run_private_make(struct run_private *p, const struct run_options *o);
/* Starts exeatd on a listening socket, with these signals blocked, and waits until it is ready. -1 after saying why not. */
int run_private_start(struct run_private *p, int listener, const sigset_t *signals);
/* Puts the secrets into its vault, and appends what was issued to the sandbox (environment.h). -1 after saying why not. */
int run_private_issue(struct run_private *p, const struct run_options *o, struct buf *answer);
/* Ends exeatd, appends its audit trail to the file `log` unless that is "", and removes the directory. -1: the trail could not be kept. */
int run_private_end(struct run_private *p, const char *log);

#endif

/*
 * An exeatd of a sandbox's own, for its lifetime: configuration, CA, vault and audit trail in a
 * directory that nobody else has.
 */
#ifndef CLI_RUN_PRIVATE_H
#define CLI_RUN_PRIVATE_H

#include "cli/run_folder.h"
#include "cli/run_options.h"
#include "run/launch.h"

#include <stdbool.h>
#include <sys/types.h>

struct run_private {
    const char *directory; /* borrowed */
    pid_t daemon;          /* 0: not started */
    bool serves;           /* it was connected to */
    int keeper;            /* who ends exeatd when we are killed listens there; -1: there is none */
    int notify;            /* where it says that it is ready */
    int log;               /* where its trail is to be kept; -1: nowhere */
};

/* Makes all that a start needs in the directory. 0, or -1 after saying why not. */
int run_private_make(struct run_private *p, const char *directory, const struct run_options *o);
/* The state folder that was made; valid until the next call of any of these. */
const char *run_private_state(const struct run_private *p);
/*
 * Starts exeatd, with the signals blocked that were before, and its keeper: a process in a session of its own, since the command is of the
 * launcher's process group and can have all of that killed. When we say so it ends exeatd and keeps its trail (`log` is the name); when we are gone it
 * removes the folder as well, which is locked until then. -1 after saying why not.
 */
int run_private_start(struct run_private *p, const struct launch *l, struct run_folder *folder,
                      const char *log);
/* Waits until it is ready, puts the secrets into its vault, and connects to be attached. -1 after saying why not. */
int run_private_connect(struct run_private *p, const struct run_options *o, struct launch *l,
                        int *connection);
/* Ends exeatd, tells a terminal what it refused (run_told.h), and has its audit trail appended to p->log, which is closed; `log` is its
 * name. -1: the trail could not be kept. */
int run_private_end(struct run_private *p, const char *log);

#endif

/*
 * The processes inside of a sandbox: the first one, which makes it and then is its init, and the
 * command's, until it is the command.
 */
#ifndef RUN_INNER_H
#define RUN_INNER_H

#include "run/plan.h"

#include <signal.h>
#include <sys/types.h>

/* Whom the command runs as, with which signals blocked and which umask: the caller's. */
struct inner_caller {
    uid_t uid;
    gid_t gid;
    sigset_t signals;
    mode_t mask;
};

/* The ends of the talk (talk.h) in there. */
struct inner_talk {
    int s, line;
};

/* The first process, right after clone(2). Never returns. */
_Noreturn void inner_main(const struct run_plan *plan, const struct inner_caller *caller,
                          const struct inner_talk *talk);

#endif

/*
 * How a sandbox is attached to an exeatd (base/attach.h), one that runs or one of its own: the lane is there for as
 * long as the connection is.
 */
#ifndef CLI_RUN_ATTACH_H
#define CLI_RUN_ATTACH_H

#include "cli/command.h"
#include "cli/run_options.h"
#include "cli/run_public.h"
#include "run/launch.h"

enum { RUN_WHY_SIZE = 4352 }; /* a path, and some words */

struct run_attach {
    int connection;       /* -1: there is none */
    char state[PATH_MAX]; /* of the exeatd of the configuration, "" without one */
    /* The end of a sentence, if there is something to say of that there is no connection. */
    char why[RUN_WHY_SIZE];
};

/*
 * Connects to the exeatd of the configuration, if there is a configuration, it has `attach`, somebody
 * listens, and no private one is wanted. Appends where that exeatd keeps what it has to what is hidden of o, and
 * what it is told to what is kept; for a private one also out of a configuration that has errors. -1 after saying what is wrong: with the configuration, or that we may not.
 */
int run_attach_find(const struct cli *cli, bool wanted_private, struct run_options *o,
                    struct run_attach *out);
/* Asks for a lane that serves the listeners as the sandbox's. -1 after saying why not. */
int run_attach_ask(int connection, const char *sandbox, const struct launch *l);
/* Waits for the answer, writes the public files, and appends what was issued (environment.h). -1 after saying why not. */
int run_attach_receive(int connection, struct launch *l, struct run_public *public,
                       struct buf *issued);

/*
 * Tells what the probes found (run/report.h); 0 when all of it is contained and exeatd serves from now on. -1 after saying why
 * not.
 */
int run_attach_report(int connection, struct launch *l, struct view report);

#endif

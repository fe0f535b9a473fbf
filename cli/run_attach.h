/*
 * How a sandbox is attached to an exeatd (base/attach.h), one that runs or one of its own: the lane is there for as
 * long as the connection is.
 */
#ifndef CLI_RUN_ATTACH_H
#define CLI_RUN_ATTACH_H

#include "cli/command.h"
#include "cli/public.h"
#include "run/launch.h"

enum { RUN_WHY_SIZE = 4352 }; /* a path, and some words */

/*
 * Connects to the exeatd of the configuration, if there is a configuration, it has `attach`, and somebody
 * listens; otherwise, and when a private one is wanted, *connection is -1, and why has the end of a sentence if there
 * is something to say of that. Appends where that exeatd
 * keeps what it has to hidden (run/plan.h). -1 after saying what is wrong: with the configuration, or
 * that we may not.
 */
int run_attach_find(const struct cli *cli, bool wanted_private, struct buf *hidden, int *connection,
                    char why[RUN_WHY_SIZE]);
/* Asks for a lane that serves the listeners as the sandbox's. -1 after saying why not. */
int run_attach_ask(int connection, const char *sandbox, const struct launch *l);
/*
 * Waits for the answer, fills the folder of the public files (run_public.h), which the command sees at `seen`, and appends what was
 * issued (environment.h); takes roots. -1 after saying why not.
 */
int run_attach_receive(int connection, const char *folder, const char *seen,
                       struct public_roots *roots, struct buf *issued);

/*
 * Tells what the probes found (run/report.h); 0 when all of it is contained and exeatd serves from now on. -1 after saying why
 * not.
 */
int run_attach_report(int connection, struct view report);

#endif

/*
 * Signals of a launcher that is not there, as far as its user can see: what is sent to it reaches the
 * command, what the terminal sends to the whole process group is left to the group, and it stops and
 * goes on with the command.
 */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

#include <signal.h>
#include <sys/types.h>

/* From here on every signal waits for signals_wait; what was blocked before is in *before. */
void signals_hold(sigset_t *before);
/*
 * The launcher's side: passes on what comes to the first process of the sandbox until one of the
 * caller's children has ended. The child is not reaped.
 */
void signals_relay(pid_t init);
/* The first process' side: the same for the command, until a child has ended; only the launcher is heard. */
void signals_deliver(pid_t command);

#endif

/*
 * Signals of a launcher that is not there, as far as its user can see: what is sent to it reaches the
 * command, what the terminal sends to the whole process group is left to the group, and it stops and
 * goes on with the command.
 */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

#include <signal.h>
#include <sys/types.h>

/* From here on every signal waits to be taken; what was blocked before is in *before. */
void signals_hold(sigset_t *before);
/* A descriptor (signalfd(2)) that is readable while one waits, or -1 after saying why not. */
int signals_open(void);
/* The launcher's side while there is no command: takes what waits; the first that would have ended it, or 0. */
int signals_ending(int signals);
/* The launcher's side: passes on what waits to the first process of the sandbox. */
void signals_relay(int signals, pid_t init);
/* The first process' side: the same for the command; only the launcher is heard. */
void signals_deliver(int signals, pid_t command);

#endif

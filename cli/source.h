/*
 * Where a secret's value comes from: a file, standard input, or a prompt. The
 * command never reads it: the descriptor goes to broker, which does.
 *
 * For a prompt the terminal is opened anew, for reading only, so that what
 * broker does to its descriptor does not touch the user's shell; its echo is
 * off until source_close or the end of the process, also by a signal. Broker
 * reads one line, and stops at once when this process is gone.
 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include <stdbool.h>

/* file: a path, "-" for standard input, or NULL: a prompt when standard input is a terminal. An exit code. */
int source_open(const char *file, const char *prompt, int *fd);
/* Puts the terminal back and closes the descriptor. */
void source_close(int fd);

#endif

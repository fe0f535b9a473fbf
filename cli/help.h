/*
 * What the options of each command do, a line each: the second half of `exeat COMMAND --help`. One table.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdbool.h>
#include <stdio.h>

/* Those of one command (verb NULL: the noun alone), with a title; nothing of one that has none. */
void help_options(FILE *to, const char *noun, const char *verb);
/* The i-th of them: "--like PREFIX", and what it does. False: there are no more. */
bool help_option(const char *noun, const char *verb, size_t i, const char **option,
                 const char **what);

#endif

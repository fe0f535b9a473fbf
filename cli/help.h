/*
 * What the options of each command do, a line each: the second half of `exeat COMMAND --help`. One table.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

/* Those of one command (verb NULL: the noun alone), with a title; nothing of one that has none. */
void help_options(FILE *to, const char *noun, const char *verb);

#endif

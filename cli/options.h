/*
 * A command's own arguments: options from a table, the rest by position.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>

struct option_spec {
    const char *name;   /* "--file" */
    const char **value; /* takes the next argument, or what stands behind "--file=" */
    bool *flag;         /* or is set to true */
};

/*
 * Fills in the options and exactly n positional arguments; specs end with a
 * NULL name. EXIT_YES, or EXIT_USAGE after saying what is wrong. "--" ends the options.
 */
int options_read(int argc, char **argv, const struct option_spec *specs, const char **positional,
                 int n);
/* The same with least to most positional arguments; *n of them there are. */
int options_read_some(int argc, char **argv, const struct option_spec *specs,
                      const char **positional, int least, int most, int *n);

#endif

/*
 * The user's own lines of the configuration of an exeatd that `exeat run` starts: they stand first in it, so that a
 * line of that text has the number that it has in the user's file.
 */
#ifndef CLI_RUN_SETTINGS_H
#define CLI_RUN_SETTINGS_H

#include "base/bytes.h"

/* Appends the file's lines to the empty out; none of no file (""). -1 after saying why not. */
int run_settings_read(const char *file, struct buf *out);
/*
 * Whether the whole text, of which the first `own` bytes are the file's, is a configuration. -1 after telling all errors,
 * each with the file's name and its place there.
 */
int run_settings_check(const char *file, struct view text, size_t own);
/* Appends what exeatd says of its configuration (a file of ours), with the user's file, if there is one, in its place. */
void run_settings_quote(const char *file, const char *configuration, struct view said,
                        struct buf *out);

#endif

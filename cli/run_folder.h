/*
 * A directory for the lifetime of one sandbox, outside of what the sandbox sees: in the user's runtime
 * directory, else in memory when it stays small, else in /tmp.
 */
#ifndef CLI_RUN_FOLDER_H
#define CLI_RUN_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { RUN_FOLDER_BASES = 4 };

/* Its path into out, or -1 after saying why not; out is "" then. */
int run_folder_make(bool small, char out[PATH_MAX]);
/* Where this user's sandboxes may have theirs, whatever this one's is: the i-th place, without links. False: it is not there. */
bool run_folder_base(size_t i, char out[PATH_MAX]);
/* Removes it with all that is in it, as far as that goes. "" is none. */
void run_folder_remove(const char *path);

#endif

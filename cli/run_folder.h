/*
 * A directory for the lifetime of one sandbox, outside of what the sandbox sees: in the user's runtime
 * directory, else in memory when it stays small, else in /tmp.
 */
#ifndef CLI_RUN_FOLDER_H
#define CLI_RUN_FOLDER_H

#include <limits.h>
#include <stdbool.h>

/* Its path into out, or -1 after saying why not; out is "" then. */
int run_folder_make(bool small, char out[PATH_MAX]);
/* Removes it with all that is in it, as far as that goes. "" is none. */
void run_folder_remove(const char *path);

#endif

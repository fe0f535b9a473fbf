/*
 * A directory for the lifetime of one sandbox, outside of what the sandbox sees: in the user's runtime
 * directory, else in memory when it stays small, else in /tmp. It is locked for as long as its launcher is there, so that the
 * next one removes what one that was killed has left.
 */
#ifndef CLI_RUN_FOLDER_H
#define CLI_RUN_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* What their names begin with. */
#define RUN_FOLDER_PREFIX "exeat-run-"

enum { RUN_FOLDER_BASES = 4 };

struct run_folder {
    char path[PATH_MAX]; /* "": there is none */
    int lock;
};

/* -1 after saying why not; there is none then. */
int run_folder_make(struct run_folder *f, bool small);
/* Where this user's sandboxes may have theirs, whatever this one's is: the i-th place, without links. False: it is not there. */
bool run_folder_base(size_t i, char out[PATH_MAX]);
/* Removes it with all that is in it, as far as that goes. */
void run_folder_remove(struct run_folder *f);

#endif

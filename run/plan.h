/*
 * What a sandbox is to be, as the user said it. Borrowed throughout, and copied into the sandbox's
 * processes by fork.
 */
#ifndef RUN_PLAN_H
#define RUN_PLAN_H

#include "base/bytes.h"

#include <limits.h>
#include <stdbool.h>

/* Where the files that clients need to trust exeat are found inside (cli/public.h). */
#define RUN_PUBLIC "/run/exeat"

enum { RUN_PATHS_MAX = 64, RUN_PLACE_MAX = 2 * PATH_MAX };

struct run_bind {
    const char *from, *to;
};

struct run_plan {
    char **argv;        /* the command; ends with NULL */
    const char *public; /* the directory that is seen at RUN_PUBLIC */
    const char *folder; /* the working directory */
    const char
        *runtime; /* the session's, without links in it where it is there; NULL: there is none */
    struct view
        hidden; /* paths, each with a NUL: files and folders that the command does not have */
    struct view sockets; /* the same of sockets: what else is at these paths it has */
    struct view kept;    /* the same of files: they are read-only, and stay where they are */
    struct view links;   /* the same of symbolic links: they stay as they are */
    const char *read_only[RUN_PATHS_MAX]; /* "/": everything */
    size_t n_read_only;
    struct run_bind
        binds[RUN_PATHS_MAX]; /* shown writable, also inside of what is hidden or read-only */
    size_t n_binds;
    bool strict_trust; /* none of the system's roots are left where programs look for them */
};

/* Where path, which has no links in it, is seen inside of what the bind shows; false when it is not below bind->from. */
bool run_bind_place(const struct run_bind *bind, const char *path, char out[RUN_PLACE_MAX]);

#endif

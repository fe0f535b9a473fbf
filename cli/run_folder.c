#include "cli/run_folder.h"

#include "run/say.h"

#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_AT_ONCE = 16 };

static bool is_ours(const char *path) {
    struct stat st;
    return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

static const char *find_base(bool small) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (geteuid() != 0 && is_ours(runtime))
        return runtime;
    return small && access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

/* The users that root's daemon gives its roles pass through it; nobody else may list it either way. */
int run_folder_make(bool small, char out[PATH_MAX]) {
    int n = snprintf(out, PATH_MAX, "%s/exeat-run-XXXXXX", find_base(small));
    if (n < PATH_MAX && mkdtemp(out) && (geteuid() != 0 || chmod(out, 0711) == 0))
        return 0;
    run_say("a directory for the sandbox: %s: %s", out, strerror(errno));
    out[0] = 0;
    return -1;
}

bool run_folder_base(size_t i, char out[PATH_MAX]) {
    char usual[64];
    snprintf(usual, sizeof usual, "/run/user/%u", geteuid());
    const char *const bases[RUN_FOLDER_BASES] = {"/tmp", "/dev/shm", usual,
                                                 getenv("XDG_RUNTIME_DIR")};
    return bases[i] && realpath(bases[i], out);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

void run_folder_remove(const char *path) {
    if (*path)
        nftw(path, remove_one, OPEN_AT_ONCE, FTW_DEPTH | FTW_PHYS);
}

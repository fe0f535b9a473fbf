#include "cli/run_folder.h"

#include "run/say.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TEMPLATE RUN_FOLDER_PREFIX "XXXXXX"

enum { OPEN_AT_ONCE = 16, TRIES = 100, SOCKET_NAME_MAX = sizeof "/control.sock" };

static bool is_ours(const char *path) {
    struct stat st;
    return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

/* unix(7) */
static bool has_room_for_sockets(const char *base) {
    return strlen(base) + sizeof "/" TEMPLATE + SOCKET_NAME_MAX <=
           sizeof((struct sockaddr_un *)NULL)->sun_path;
}

static const char *find_base(bool small) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (geteuid() != 0 && is_ours(runtime) && has_room_for_sockets(runtime))
        return runtime;
    return small && access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
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

static void remove_all(const char *path) {
    nftw(path, remove_one, OPEN_AT_ONCE, FTW_DEPTH | FTW_PHYS);
}

/* Whoever has it ends with its launcher. */
static void remove_left(const char *base, const char *name) {
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", base, name);
    int fd = n < PATH_MAX ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    /* Into one that others may write to they may have moved what is not theirs, or moved it there. */
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0 &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        remove_all(path);
    close(fd);
}

/* As mkdtemp makes it: what somebody has called so by himself is as good as never of this length. */
static bool is_name_of_one(const char *name) {
    return strncmp(name, RUN_FOLDER_PREFIX, sizeof RUN_FOLDER_PREFIX - 1) == 0 &&
           strlen(name) == sizeof TEMPLATE - 1;
}

static void remove_all_left(const char *base) {
    DIR *all = opendir(base);
    for (const struct dirent *one = all ? readdir(all) : NULL; one; one = readdir(all))
        if (is_name_of_one(one->d_name))
            remove_left(base, one->d_name);
    if (all)
        closedir(all);
}

/* 0, or an errno: ENOENT when somebody has removed it before it was locked. */
static int lock(struct run_folder *f) {
    struct stat st;
    f->lock = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->lock < 0)
        return errno;
    int why = flock(f->lock, LOCK_EX) != 0 || fstat(f->lock, &st) != 0 ? errno
              : st.st_nlink == 0                                       ? ENOENT
                                                                       : 0;
    if (why != 0)
        close(f->lock);
    return why;
}

/* 0, or an errno. The users that root's daemon gives its roles pass through it; nobody else may list it either way. */
static int make(struct run_folder *f, const char *base) {
    int n = snprintf(f->path, sizeof f->path, "%s/" TEMPLATE, base);
    if (n >= PATH_MAX)
        return ENAMETOOLONG;
    if (!mkdtemp(f->path) || (geteuid() == 0 && chmod(f->path, 0711) != 0))
        return errno;
    return lock(f);
}

int run_folder_make(struct run_folder *f, bool small) {
    const char *base = find_base(small);
    remove_all_left(base);
    int tries = 0, why;
    do
        why = make(f, base);
    while (why == ENOENT && ++tries < TRIES);
    if (why == 0)
        return 0;
    run_say("a directory for the sandbox: %s: %s", f->path, strerror(why));
    f->path[0] = 0;
    return -1;
}

void run_folder_remove(struct run_folder *f) {
    if (!*f->path)
        return;
    remove_all(f->path);
    close(f->lock);
    f->path[0] = 0;
}

#include "run/covers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* File systems that cover_folder made: in them, and nowhere else, may something be created. */
enum { MADE_MAX = 128 };
static dev_t made[MADE_MAX];
static size_t n_made;

int cover_keep(const char *path) {
    return open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

int cover_folder(const char *path, mode_t mode) {
    char options[32];
    struct stat st;
    snprintf(options, sizeof options, "mode=%o", (unsigned)mode);
    if (n_made == MADE_MAX) {
        errno = ENOSPC;
        return -1;
    }
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0 || stat(path, &st) != 0)
        return -1;
    made[n_made++] = st.st_dev;
    return 0;
}

static bool is_made(dev_t device) {
    for (size_t i = 0; i < n_made; i++)
        if (made[i] == device)
            return true;
    return false;
}

bool cover_has(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && is_made(st.st_dev);
}

/* What path names may change under our hands: others of the user's processes have the same folders. */
int cover_open(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &st) == 0 && is_made(st.st_dev)))
        return fd;
    close(fd);
    errno = ENOENT;
    return -1;
}

/* The folder that path is in, which must be there or be made; *name: within it. -1 with errno. */
static int open_parent(const char *path, const char **name) {
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (path[0] != '/' || strlen(path) >= PATH_MAX) {
        errno = EINVAL;
        return -1;
    }
    *name = slash + 1;
    snprintf(parent, sizeof parent, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return cover_make_folder(parent) == 0 ? cover_open(parent) : -1;
}

static int done_in(int folder, int result) {
    int why = errno;
    if (folder >= 0)
        close(folder);
    errno = why;
    return result;
}

int cover_make_folder(const char *path) {
    const char *name;
    if (access(path, F_OK) == 0)
        return 0;
    int folder = open_parent(path, &name);
    return done_in(folder, folder < 0 ? -1 : mkdirat(folder, name, 0755));
}

int cover_link(const char *to, const char *path) {
    const char *name;
    int folder = open_parent(path, &name);
    return done_in(folder, folder < 0 ? -1 : symlinkat(to, folder, name));
}

static int make_file(const char *path) {
    const char *name;
    if (access(path, F_OK) == 0)
        return 0;
    int folder = open_parent(path, &name);
    int fd = folder < 0 ? -1 : openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return done_in(folder, fd < 0 ? -1 : close(fd));
}

int cover_show(int fd, const char *path) {
    struct stat st;
    if (fd < 0)
        return -1;
    int result = fstat(fd, &st);
    if (result == 0)
        result = S_ISDIR(st.st_mode) ? cover_make_folder(path) : make_file(path);
    if (result == 0)
        result = move_mount(fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
    int why = errno;
    close(fd);
    errno = why;
    return result;
}

static bool is_mounted(const char *path) {
    struct statx st;
    return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0, &st) == 0 &&
           (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Whose it is can let himself write to it. */
static bool may_be_changed(const char *folder) {
    struct stat st;
    return access(folder, W_OK) == 0 ||
           (errno == EACCES && stat(folder, &st) == 0 && st.st_uid == geteuid());
}

int cover_pin(const char *path) {
    char at[PATH_MAX];
    snprintf(at, sizeof at, "%s", path);
    bool movable = may_be_changed("/");
    for (char *slash = strchr(at + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (movable && !is_mounted(at) && mount(at, at, NULL, MS_BIND | MS_REC, NULL) != 0)
            return -1;
        movable = may_be_changed(at);
        *slash = '/';
    }
    return 0;
}

static bool may_be_replaced(const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return may_be_changed(folder);
}

int cover_pin_link(const char *path) {
    if (cover_pin(path) != 0)
        return -1;
    if (!may_be_replaced(path) || is_mounted(path))
        return 0;
    int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    if (fd < 0)
        return -1;
    return done_in(fd, move_mount(fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH));
}

int cover_read_only(const char *path) {
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
    /* A mount of its own first, so that only what is below path changes. */
    if (strcmp(path, "/") != 0 && mount(path, path, NULL, MS_BIND | MS_REC, NULL) != 0)
        return -1;
    return mount_setattr(AT_FDCWD, path, AT_RECURSIVE, &attributes, sizeof attributes);
}

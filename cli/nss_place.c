#include "cli/nss_place.h"

#include "cli/nss_store.h"
#include "run/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char name[] = "nssdb";

/* What no user gives a folder of his: whoever comes next knows by it that it was made for sandboxes. */
enum { MARK = S_ISVTX | 0700 };

/* Milliseconds for one that is being removed; nobody is waited for longer: a sandbox can lock what it sees. */
enum { TRIES = 20 };

static bool is_marked(int fd) {
    struct stat st;
    /* Below a folder with S_ISGID every new one has it, too. */
    return fstat(fd, &st) == 0 && (st.st_mode & (S_ISUID | S_ISVTX | 0777)) == MARK;
}

/* Whoever used it last may have removed it before it was locked. */
static bool is_there(int fd, int at, const char *path) {
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && fstatat(at, path, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* A link is none. False: once more. */
static bool folder_take(struct nss_folder *f, int at, const char *path) {
    mkdirat(at, path, MARK);
    f->fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool marked = f->fd >= 0 && is_marked(f->fd);
    f->ours = marked && flock(f->fd, LOCK_SH | LOCK_NB) == 0 && is_there(f->fd, at, path);
    return f->fd >= 0 ? f->ours || !marked : errno != ENOENT;
}

/* One that somebody keeps locked is used as it is. */
static void folder_make(struct nss_folder *f, int at, const char *path) {
    const struct timespec pause = {0, 1000000};
    for (int i = 1; !folder_take(f, at, path) && i < TRIES; i++) {
        if (f->fd >= 0)
            close(f->fd);
        nanosleep(&pause, NULL);
    }
}

static void folder_remove(struct nss_folder *f, int at, const char *path) {
    if (f->fd < 0)
        return;
    if (f->ours && flock(f->fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(at, path, AT_REMOVEDIR);
    close(f->fd);
    f->fd = -1;
}

void nss_place_make(struct nss_place *p) {
    char parent[PATH_MAX], place[PATH_MAX];
    if (!nss_store_can_be_made() || !trust_nss_place(parent, place))
        return;
    folder_make(&p->parent, AT_FDCWD, parent);
    if (p->parent.fd >= 0)
        folder_make(&p->place, p->parent.fd, name);
}

void nss_place_remove(struct nss_place *p) {
    char parent[PATH_MAX], place[PATH_MAX];
    if (p->parent.fd < 0 || !trust_nss_place(parent, place))
        return;
    folder_remove(&p->place, p->parent.fd, name);
    folder_remove(&p->parent, AT_FDCWD, parent);
}

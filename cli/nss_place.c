#include "cli/nss_place.h"

#include "cli/nss_store.h"
#include "run/trust.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char name[] = "nssdb";

/* The user's own is locked by nobody; one that another sandbox made is. */
static bool is_users(int fd) {
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* A link is none. Nobody is waited for: a sandbox can lock what it sees. */
static void folder_make(struct nss_folder *f, int at, const char *path) {
    bool made = mkdirat(at, path, 0700) == 0;
    f->fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd >= 0)
        f->ours = (made || !is_users(f->fd)) && flock(f->fd, LOCK_SH | LOCK_NB) == 0;
    if (f->fd >= 0 && !f->ours)
        flock(f->fd, LOCK_UN);
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

#include "cli/nss_place.h"

#include "cli/nss_store.h"
#include "run/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The user's own is locked by nobody; one that another sandbox made is. */
static bool is_users(int fd) {
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* False: there is no folder, but a link or nothing. Nobody is waited for: a sandbox can lock what it sees. */
static bool folder_make(struct nss_folder *f) {
    bool made = mkdir(f->path, 0700) == 0;
    int fd = made || errno == EEXIST
                 ? open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    if (fd >= 0 && (made || !is_users(fd)) && flock(fd, LOCK_SH | LOCK_NB) == 0)
        f->fd = fd;
    else if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void folder_remove(struct nss_folder *f) {
    if (f->fd < 0)
        return;
    if (flock(f->fd, LOCK_EX | LOCK_NB) == 0)
        rmdir(f->path);
    close(f->fd);
    f->fd = -1;
}

void nss_place_make(struct nss_place *p) {
    if (nss_store_can_be_made() && trust_nss_place(p->parent.path, p->place.path) &&
        folder_make(&p->parent))
        (void)folder_make(&p->place);
}

void nss_place_remove(struct nss_place *p) {
    folder_remove(&p->place);
    folder_remove(&p->parent);
}

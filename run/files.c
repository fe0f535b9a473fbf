#include "run/files.h"

#include "run/covers.h"
#include "run/refusal.h"
#include "run/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- /proc and /sys ---- */

/* Of use to real root only, who has them by being root and not by a capability. */
static const char *const kernel_settings[] = {
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/sys"};

static int cover_proc(void) {
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
        return run_say("a fresh /proc: %s", refusal_proc(errno));
    for (size_t i = 0; i < sizeof kernel_settings / sizeof *kernel_settings; i++)
        if (cover_read_only(kernel_settings[i]) != 0 && errno != ENOENT)
            return run_say("%s cannot be made read-only: %s", kernel_settings[i], strerror(errno));
    return 0;
}

/* ---- /dev ---- */

static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                      "/dev/random", "/dev/urandom", "/dev/tty"};
enum { N_DEVICES = sizeof devices / sizeof *devices };

/* The terminal that the command has, or NULL. */
static const char *terminal(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (isatty(fd))
            return ttyname(fd);
    return NULL;
}

static int make_dev_links(void) {
    return symlink("pts/ptmx", "/dev/ptmx") == 0 && symlink("/proc/self/fd", "/dev/fd") == 0 &&
                   symlink("/proc/self/fd/0", "/dev/stdin") == 0 &&
                   symlink("/proc/self/fd/1", "/dev/stdout") == 0 &&
                   symlink("/proc/self/fd/2", "/dev/stderr") == 0
               ? 0
               : -1;
}

/* Terminals of its own: the user's others would tell what is typed into them. */
static int make_dev_folders(void) {
    return mkdir("/dev/pts", 0755) == 0 &&
                   mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                         "newinstance,ptmxmode=0666,mode=0620") == 0 &&
                   mkdir("/dev/shm", 0777) == 0 && chmod("/dev/shm", 01777) == 0
               ? 0
               : -1;
}

static int cover_dev(void) {
    int fds[N_DEVICES + 1];
    const char *tty = terminal();
    for (size_t i = 0; i < N_DEVICES; i++)
        fds[i] = cover_keep(devices[i]);
    fds[N_DEVICES] = tty ? cover_keep(tty) : -1;
    int result = cover_folder("/dev", 0755);
    for (size_t i = 0; i < N_DEVICES && result == 0; i++)
        result = cover_show(fds[i], devices[i]);
    if (result == 0 && tty)
        result = cover_show(fds[N_DEVICES], "/dev/console");
    if (result == 0)
        result = make_dev_folders() == 0 && make_dev_links() == 0 ? 0 : -1;
    return result == 0 ? 0 : run_say("a /dev of its own: %s", strerror(errno));
}

/* ---- folders that everybody writes to ---- */

static int cover_shared_folder(const char *path, mode_t mode) {
    /* Of two names for one folder (/var/run), the second finds it covered. */
    if (access(path, F_OK) != 0 || cover_has(path))
        return 0;
    return cover_folder(path, mode) == 0 ? 0 : run_say("%s of its own: %s", path, strerror(errno));
}

/* At its old path, so that the variable still says the truth. One that is nowhere stays so. */
static int cover_runtime_folder(const char *path) {
    if (!path)
        return 0;
    if (access(path, F_OK) == 0 && !cover_has(path))
        return cover_shared_folder(path, 0700);
    return (cover_make_folder(path) == 0 && chmod(path, 0700) == 0) || errno == ENOENT
               ? 0
               : run_say("XDG_RUNTIME_DIR (%s): %s", path, strerror(errno));
}

static int cover_shared(const struct run_plan *plan) {
    return cover_shared_folder("/tmp", 01777) == 0 && cover_shared_folder("/run", 0755) == 0 &&
                   cover_shared_folder("/var/run", 0755) == 0 &&
                   cover_runtime_folder(plan->runtime) == 0
               ? 0
               : -1;
}

/* ---- what is hidden ---- */

static int cannot_hide(const char *path) {
    return run_say("%s cannot be hidden: %s", path, strerror(errno));
}

/* The command, with a shorter way to it or more room, may reach it. */
static bool is_there_all_the_same(int why) {
    return why == ENAMETOOLONG || why == EMFILE || why == ENFILE || why == ENOMEM;
}

static int cover(const char *path, bool is_folder) {
    return is_folder ? cover_folder(path, 0555) : mount("/dev/null", path, NULL, MS_BIND, NULL);
}

/* What the user cannot reach is not there for the command either. Nor does another thing get the name. */
static int hide(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0)
        return is_there_all_the_same(errno) ? cannot_hide(path) : 0;
    int result = cover_pin(path) == 0 ? cover(path, S_ISDIR(st.st_mode)) : -1;
    /* It may have ended meanwhile. */
    return result == 0 || errno == ENOENT ? 0 : cannot_hide(path);
}

/* Other users may have chosen the path, and what it leads to may change: it is the socket that was looked at which is covered. */
static int hide_socket(const char *path) {
    char at[64];
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return is_there_all_the_same(errno) ? cannot_hide(path) : 0;
    snprintf(at, sizeof at, "/proc/self/fd/%d", fd);
    int result = fstat(fd, &st);
    if (result == 0 && S_ISSOCK(st.st_mode))
        result = mount("/dev/null", at, NULL, MS_BIND, NULL);
    int why = errno;
    close(fd);
    errno = why;
    return result == 0 || why == ENOENT ? 0 : cannot_hide(path);
}

static int do_each(struct view paths, int (*one)(const char *path)) {
    while (paths.n > 0)
        if (one((const char *)view_cut(&paths, 0).p) != 0)
            return -1;
    return 0;
}

static int hide_all(const struct run_plan *plan) {
    return do_each(plan->hidden, hide) == 0 ? do_each(plan->sockets, hide_socket) : -1;
}

/* ---- --ro and --bind ---- */

static int narrow_at(const char *path) {
    return cover_pin(path) == 0 && cover_read_only(path) == 0
               ? 0
               : run_say("%s cannot be made read-only: %s", path, strerror(errno));
}

/* As with what is hidden, what cannot be reached is not there; what its owner has but locked up is. */
static int keep(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 || is_there_all_the_same(errno) ? narrow_at(path) : 0;
}

static int pin_link(const char *path) {
    return cover_pin_link(path) == 0
               ? 0
               : run_say("the link %s cannot be kept: %s", path, strerror(errno));
}

static int narrow(const struct run_plan *plan) {
    for (size_t i = 0; i < plan->n_read_only; i++)
        if (narrow_at(plan->read_only[i]) != 0)
            return -1;
    return do_each(plan->kept, keep) == 0 ? do_each(plan->links, pin_link) : -1;
}

static int do_in_bind(const struct run_bind *bind, struct view paths,
                      int (*one)(const char *path)) {
    char place[RUN_PLACE_MAX];
    while (paths.n > 0)
        if (run_bind_place(bind, (const char *)view_cut(&paths, 0).p, place) && one(place) != 0)
            return -1;
    return 0;
}

/* What is hidden or read-only inside of what a bind shows is so there too. */
static int cover_in_bind(const struct run_plan *plan, const struct run_bind *bind) {
    char place[RUN_PLACE_MAX];
    for (size_t i = 0; i < plan->n_read_only; i++)
        if (run_bind_place(bind, plan->read_only[i], place) && narrow_at(place) != 0)
            return -1;
    return do_in_bind(bind, plan->kept, keep) == 0 &&
                   do_in_bind(bind, plan->links, pin_link) == 0 &&
                   do_in_bind(bind, plan->hidden, hide) == 0
               ? do_in_bind(bind, plan->sockets, hide_socket)
               : -1;
}

static int keep_binds(const struct run_plan *plan, int fds[]) {
    for (size_t i = 0; i < plan->n_binds; i++) {
        fds[i] = cover_keep(plan->binds[i].from);
        if (fds[i] < 0)
            return run_say("--bind %s: %s", plan->binds[i].from, strerror(errno));
    }
    return 0;
}

static int show_binds(const struct run_plan *plan, const int fds[]) {
    for (size_t i = 0; i < plan->n_binds; i++) {
        if (cover_show(fds[i], plan->binds[i].to) != 0)
            return run_say("--bind %s: it cannot be shown at %s: %s", plan->binds[i].from,
                           plan->binds[i].to, strerror(errno));
        if (cover_in_bind(plan, &plan->binds[i]) != 0)
            return -1;
    }
    return 0;
}

/* ---- all of it ---- */

static int show_public(int fd) {
    return cover_show(fd, RUN_PUBLIC) == 0 && cover_read_only(RUN_PUBLIC) == 0
               ? 0
               : run_say("%s: %s", RUN_PUBLIC, strerror(errno));
}

int files_cover(const struct run_plan *plan) {
    int binds[RUN_PATHS_MAX] = {0}, public;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return run_say("the mounts of the new namespace: %s", refusal_reason("", errno));
    if (keep_binds(plan, binds) != 0)
        return -1;
    public = cover_keep(plan->public);
    if (public < 0)
        return run_say("%s: %s", plan->public, strerror(errno));
    return narrow(plan) == 0 && cover_proc() == 0 && cover_dev() == 0 && cover_shared(plan) == 0 &&
                   hide_all(plan) == 0 && show_binds(plan, binds) == 0 && show_public(public) == 0
               ? 0
               : -1;
}

int files_enter(const struct run_plan *plan) {
    if (chdir(plan->folder) == 0)
        return 0;
    return run_say("the working directory %s is not there for the command: %s (`--bind %s` "
                   "shows it)",
                   plan->folder, strerror(errno), plan->folder);
}

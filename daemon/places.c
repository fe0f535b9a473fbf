#include "daemon/places.h"

#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The shared roles' places at the beginning of the uid range. */
enum { SHARED_UIDS = 8, LANES_MOST = 4096 };

bool places_separate(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0)
        return getuid() == 0;
    return (data[0].effective >> CAP_SETUID & 1) != 0;
}

uid_t place_uid(const struct parent *p, enum role role, uint32_t lane) {
    static const enum role shared[SHARED_UIDS] = {ROLE_BROKER, ROLE_CA,      ROLE_DIALER,
                                                  ROLE_AUDIT,  ROLE_CONTROL, ROLE_ATTACH};
    if (!places_separate())
        return getuid();
    if (lane > 0)
        return p->config.first_uid + SHARED_UIDS + lane - 1;
    for (uid_t i = 0; i < SHARED_UIDS; i++)
        if (shared[i] == role)
            return p->config.first_uid + i;
    return getuid();
}

uint32_t places_lanes(const struct parent *p) {
    uint64_t uids = (uint64_t)p->config.last_uid - p->config.first_uid + 1;
    if (!places_separate())
        return LANES_MOST;
    return uids <= SHARED_UIDS               ? 0
           : uids - SHARED_UIDS < LANES_MOST ? (uint32_t)(uids - SHARED_UIDS)
                                             : LANES_MOST;
}

const char *place_directory(const struct parent *p, enum role role, char *out, size_t size) {
    const char *name = role == ROLE_BROKER ? "vault" : role == ROLE_AUDIT ? "audit" : NULL;
    if (!name)
        return NULL;
    snprintf(out, size, "%s/%s", p->config.state, name);
    return out;
}

static bool complain(const char *path, const char *what) {
    log_fatal("%s: %s: %s", path, what, strerror(errno));
    return false;
}

/* Something of the state is not there yet. */
static bool lack(const char *path) {
    log_fatal(
        "%s: is not there yet: `exeat ca init` and `exeat vault init` make what exeatd starts with",
        path);
    return false;
}

/* A role with a uid of its own must be able to walk to its directory. */
static bool check_way(const char *path) {
    char way[4096];
    struct stat st;
    snprintf(way, sizeof way, "%s", path);
    for (char *slash = strrchr(way, '/'); slash && slash != way; slash = strrchr(way, '/')) {
        *slash = 0;
        if (stat(way, &st) == 0 && (st.st_mode & 001) == 0) {
            log_fatal("%s: is closed to others, and the roles that own folders in %s run as users "
                      "of their own: "
                      "`chmod o+x` it, or move the state directory",
                      way, path);
            return false;
        }
    }
    return true;
}

/* Who may write there may put another key or trail in the place of ours. What is missing shows later. */
static bool check_owner(const char *path) {
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT || complain(path, "cannot be looked at");
    if (st.st_uid != 0 && st.st_uid != getuid()) {
        log_fatal("%s: belongs to user %u, and exeatd runs as user %u: run it as that user, or "
                  "`chown -R %u %s`",
                  path, (unsigned)st.st_uid, (unsigned)getuid(), (unsigned)getuid(), path);
        return false;
    }
    if ((st.st_mode & 022) != 0) {
        log_fatal("%s: others than its owner may write to it (mode %04o): `chmod go-w %s`", path,
                  (unsigned)st.st_mode & 07777, path);
        return false;
    }
    return true;
}

static bool give(int dir, const char *path, const char *name, uid_t uid) {
    struct stat st;
    int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    /* A second name may be that of a file elsewhere, which is not ours to give. */
    bool good = fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid == uid ||
                (st.st_nlink == 1 && fchownat(fd, "", uid, uid, AT_EMPTY_PATH) == 0);
    if (fd >= 0)
        close(fd);
    if (good)
        return true;
    log_fatal("%s/%s: belongs to user %u, and user %u works with it here (line `uids`): `chown -R "
              "%u:%u %s`",
              path, name, (unsigned)st.st_uid, (unsigned)uid, (unsigned)uid, (unsigned)uid, path);
    return false;
}

/* Files of an earlier owner (the daemon ran as somebody else) are given to the present one. */
static bool give_files(const char *path, uid_t uid) {
    DIR *d = opendir(path);
    bool ok = true;
    /* Who may not look into the folder of another user is no one who could give it away. */
    if (!d)
        return errno == EACCES || complain(path, "cannot be read");
    for (const struct dirent *e; ok && (e = readdir(d));)
        ok = give(dirfd(d), path, e->d_name, uid);
    closedir(d);
    return ok;
}

static bool make_directory(const struct parent *p, enum role role) {
    char path[4096];
    struct stat st;
    place_directory(p, role, path, sizeof path);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return errno == ENOENT ? lack(path) : complain(path, "cannot make the directory");
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return complain(path, "is not a directory");
    uid_t uid = place_uid(p, role, 0);
    if (uid != getuid() && !check_way(path))
        return false;
    if (st.st_uid != uid && (!places_separate() || lchown(path, uid, uid) != 0)) {
        log_fatal("%s: belongs to user %u, and %s runs as user %u: `chown -R %u:%u %s`", path,
                  (unsigned)st.st_uid, role_name(role), (unsigned)uid, (unsigned)uid, (unsigned)uid,
                  path);
        return false;
    }
    if ((st.st_mode & 077) != 0 && chmod(path, 0700) != 0)
        return complain(path, "cannot change the mode");
    return give_files(path, uid);
}

bool places_check(const struct parent *p) {
    char ca[4096];
    snprintf(ca, sizeof ca, "%s/ca", p->config.state);
    return check_owner(p->config.state) && check_owner(ca);
}

/* A lock of the process, not of the descriptor: the roles do not inherit it, and it ends with us. */
bool places_claim(const struct parent *p) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET}, holder = lock;
    char path[4096], who[32] = "";
    snprintf(path, sizeof path, "%s/lock", p->config.state);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno == ENOENT ? lack(p->config.state) : complain(path, "cannot be opened");
    if (fcntl(fd, F_SETLK, &lock) == 0)
        return true;
    if (errno != EAGAIN && errno != EACCES)
        return complain(path, "cannot be locked");
    /* None that can be told: in another pid namespace. */
    if (fcntl(fd, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0)
        snprintf(who, sizeof who, " (process %d)", (int)holder.l_pid);
    log_fatal("another exeatd%s runs on the state directory %s: end it with `exeat stop`, or give "
              "this one a `state` and a `control` of its own",
              who, p->config.state);
    close(fd);
    return false;
}

bool places_prepare(const struct parent *p) {
    uint64_t needed = SHARED_UIDS + p->config.n_lanes;
    if (places_separate() &&
        (p->config.first_uid == 0 || p->config.last_uid - p->config.first_uid + 1 < needed)) {
        if (p->config.first_uid != 0)
            log_fatal("%s: its line `uids` names too few", p->config_file);
        log_fatal("%s: as root (with CAP_SETUID) exeatd gives every shared role and every lane a "
                  "uid of its own: it needs a line `uids FIRST - LAST` with at least %llu uids "
                  "that nothing else uses",
                  p->config_file, (unsigned long long)needed);
        return false;
    }
    return make_directory(p, ROLE_BROKER) && make_directory(p, ROLE_AUDIT);
}

/* ---- files ---- */

static void send_file(struct process *of, const char *name, int fd) {
    struct buf b;
    buf_init(&b, 256);
    buf_put_block(&b, view_str(name));
    channel_send_fd(of->channel, PARENT_FILE, 0, 0, buf_view(&b), fd);
    buf_free(&b);
}

/* A key that others could read or put there is no key. That group root may read it adds nobody. */
static bool check_file(const char *path, const struct stat *st, bool secret) {
    mode_t none = !secret ? 022 : st->st_gid == 0 ? 037 : 077;
    if (S_ISREG(st->st_mode) && (st->st_mode & none) == 0 &&
        (st->st_uid == 0 || st->st_uid == getuid()))
        return true;
    log_fatal(
        "%s: must be a file of user %u or root that only its owner can %s, and is one of user "
        "%u with mode %04o: `chown %u %s; chmod %s %s`",
        path, (unsigned)getuid(), secret ? "read" : "write", (unsigned)st->st_uid,
        (unsigned)st->st_mode & 07777, (unsigned)getuid(), path, secret ? "0600" : "0644", path);
    return false;
}

/* A descriptor, or -1 with a line in the log. */
static int open_key(const char *path, bool secret) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        (void)(errno == ENOENT ? lack(path) : complain(path, "cannot be opened"));
        return -1;
    }
    if (fstat(fd, &st) == 0 && check_file(path, &st, secret))
        return fd;
    close(fd);
    return -1;
}

static bool send_key(struct process *of, const char *name, const char *path, bool secret) {
    int fd = open_key(path, secret);
    if (fd >= 0)
        send_file(of, name, fd);
    return fd >= 0;
}

/* All of them or none: a key without its certificate would spoil the next generation. */
static bool send_ca(const struct parent *p, struct process *of) {
    static const struct {
        const char *name, *file;
        bool secret, optional;
    } files[] = {{"ca-key", "ca.key", true, false},
                 {"ca-cert", "ca.pem", false, false},
                 {"ca-previous", "previous.pem", false, true}};
    char path[4096];
    int fds[sizeof files / sizeof *files];
    size_t n = 0;
    bool ok = true;
    for (; ok && n < sizeof files / sizeof *files; n++) {
        snprintf(path, sizeof path, "%s/ca/%s", p->config.state, files[n].file);
        bool there = !files[n].optional || access(path, F_OK) == 0;
        fds[n] = there ? open_key(path, files[n].secret) : -1;
        ok = !there || fds[n] >= 0;
    }
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0 && ok)
            send_file(of, files[i].name, fds[i]);
        else if (fds[i] >= 0)
            close(fds[i]);
    return ok;
}

static bool send_control_uids(const struct parent *p, struct process *of) {
    int fd = memfd_create("control-uids", MFD_CLOEXEC);
    if (fd < 0)
        return complain("control-uids", "cannot be made");
    dprintf(fd, "%u\n", (unsigned)getuid());
    for (size_t i = 0; i < p->config.n_control_uids; i++)
        dprintf(fd, "%u\n", (unsigned)p->config.control_uids[i]);
    lseek(fd, 0, SEEK_SET);
    send_file(of, "control-uids", fd);
    return true;
}

/* Nobody but egress reads or writes it; that it has its size is all that others rely on. */
static int make_ledger(void) {
    int fd = memfd_create("grants", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)CHILD_LEDGER_SIZE) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The same for each egress of the lane, so that a death forgets nothing. */
static bool send_ledger(struct process *of) {
    if (of->ledger < 0)
        of->ledger = make_ledger();
    int fd = of->ledger >= 0 ? fcntl(of->ledger, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0)
        return complain("the memory for the uses of grants", "cannot be made");
    send_file(of, "grants", fd);
    return true;
}

bool place_files(const struct parent *p, struct process *of) {
    if (of->role == ROLE_EGRESS)
        return send_ledger(of);
    if (of->role == ROLE_CA)
        return send_ca(p, of);
    if (of->role == ROLE_BROKER)
        return send_key(of, "vault-key", p->config.vault_key, true);
    if (of->role == ROLE_CONTROL)
        return send_control_uids(p, of);
    if (of->role == ROLE_ATTACH) {
        char path[4096];
        snprintf(path, sizeof path, "%s/public/ca.pem", p->config.state);
        return send_key(of, "public-ca", path, false);
    }
    return true;
}

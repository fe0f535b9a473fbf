#include "run/probe_host.h"

#include "base/file.h"
#include "run/host_sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { TABLE_MAX = 16 << 20 };

/* ---- whose a socket is ---- */

/* The first process namespace of a machine has this number in every kernel (PROC_PID_INIT_INO). */
static bool has_own_processes(void) {
    char name[64] = "";
    return readlink("/proc/self/ns/pid", name, sizeof name - 1) > 0 &&
           strcmp(name, "pid:[4026531836]") != 0;
}

static bool is_daemon(int pid) {
    char path[64], name[16] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, name, sizeof name - 1) : -1;
    if (fd >= 0)
        close(fd);
    return n > 0 && strcmp(name, "exeatd\n") == 0;
}

/* A listener's process is numbered in the namespace of who connects: 0 is outside of it. */
static bool is_ours(int fd) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.pid > 0 &&
           has_own_processes() && !is_daemon(peer.pid);
}

static int connect_by(int type, const struct sockaddr_un *a, socklen_t n) {
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)a, n) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* path begins with '@' for an abstract name. */
static int connect_to(struct view path) {
    static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    bool abstract = path.n > 0 && path.p[0] == '@';
    if (path.n >= sizeof a.sun_path)
        return -1;
    view_copy(path, a.sun_path);
    if (abstract)
        a.sun_path[0] = 0;
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.n + !abstract);
    int fd = -1;
    for (size_t i = 0; i < sizeof types / sizeof *types && fd < 0; i++) {
        fd = connect_by(types[i], &a, n);
        if (fd < 0 && errno != EPROTOTYPE)
            return -1;
    }
    return fd;
}

/* Whether the socket is one of outside; says so. */
static bool try_socket(const struct probe *p, const char *probe, struct view path,
                       const char *fix) {
    char what[PATH_MAX];
    int fd = connect_to(path);
    if (fd < 0)
        return false;
    bool outside = !is_ours(fd);
    close(fd);
    snprintf(what, sizeof what, "%.*s", VIEW_ARG(path));
    if (outside)
        probe_tell(p, probe, what, PROBE_ESCAPED, fix, "a process outside takes the connection");
    return outside;
}

/* ---- sockets with a path ---- */

void probe_known_sockets(struct buf *out) {
    static const char *const absolute[] = {"/run/docker.sock",
                                           "/run/containerd/containerd.sock",
                                           "/run/podman/podman.sock",
                                           "/run/crio/crio.sock",
                                           "/run/buildkit/buildkitd.sock",
                                           "/run/dbus/system_bus_socket",
                                           "/run/systemd/private",
                                           "/run/systemd/journal/stdout",
                                           "/run/snapd.socket",
                                           "/tmp/.X11-unix/X0",
                                           "/run/exeat/control.sock",
                                           "/run/exeat/attach.sock",
                                           "/var/lib/exeat/control.sock"};
    static const char *const of_user[] = {"bus", "docker.sock", "podman/podman.sock", "wayland-0",
                                          "systemd/private"};
    for (size_t i = 0; i < sizeof absolute / sizeof *absolute; i++)
        buf_put(out, view_of(absolute[i], strlen(absolute[i]) + 1));
    for (size_t i = 0; i < sizeof of_user / sizeof *of_user; i++) {
        buf_printf(out, "/run/user/%u/%s", getuid(), of_user[i]);
        buf_put_u8(out, 0);
    }
    /* A table that cannot be read names nobody; what is known stands above all the same. */
    int result = host_sockets(out, out);
    (void)result;
}

/* Before path itself, which is one of the list. */
static bool is_named_before(struct view paths, struct view path) {
    for (;;) {
        struct view each = view_cut(&paths, 0);
        if (each.p == path.p || view_equal(each, path))
            return each.p != path.p;
    }
}

void probe_socket_files(const struct probe *p, struct view paths) {
    size_t tried = 0, outside = 0;
    for (struct view rest = paths; rest.n > 0;) {
        struct view path = view_cut(&rest, 0);
        if (is_named_before(paths, path) || view_equal(path, view_str(getenv("EXEAT_SOCKET"))))
            continue;
        tried++;
        outside += try_socket(p, "socket", path,
                              "keep the socket's folder out of the sandbox: `exeat run` does, "
                              "elsewhere mount less");
    }
    if (outside == 0)
        probe_tell(p, "socket", "agents, engines, buses", PROBE_CONTAINED, NULL,
                   "none of %zu that are known or bound here leads outside", tried);
}

/* ---- abstract ones ---- */

/* The path is the last of eight columns. */
static struct view path_of(struct view line) {
    struct view path = view_skip(line, view_find(line, '@'));
    return view_starts(path, VIEW("@")) ? path : (struct view){NULL, 0};
}

static bool is_earlier(struct view text, struct view name) {
    while (text.n > 0) {
        struct view path = path_of(view_cut(&text, '\n'));
        if (path.p == name.p)
            return false;
        if (view_equal(path, name))
            return true;
    }
    return false;
}

static size_t try_abstract(const struct probe *p, struct view text) {
    size_t outside = 0;
    for (struct view rest = text; rest.n > 0;) {
        struct view name = path_of(view_cut(&rest, '\n'));
        if (name.n > 0 && !is_earlier(text, name))
            outside +=
                try_socket(p, "abstract", name, "give the sandbox a network namespace of its own");
    }
    return outside;
}

void probe_abstract(const struct probe *p) {
    struct buf text;
    buf_init(&text, TABLE_MAX);
    int fd = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
    int result = fd < 0 ? ERR_SYSTEM : file_read(fd, TABLE_MAX, &text);
    if (result != 0)
        probe_tell(p, "abstract", "all", PROBE_UNSURE, "show the sandbox its /proc for this test",
                   "/proc/net/unix: %s", err_why(result));
    else if (try_abstract(p, buf_view(&text)) == 0)
        probe_tell(p, "abstract", "all", PROBE_CONTAINED, NULL, "none of outside can be reached");
    buf_free(&text);
}

/* ---- processes ---- */

/* 0: none. */
static int pid_of(const char *name) {
    uint64_t pid;
    return view_number(view_str(name), INT_MAX, &pid) == 0 ? (int)pid : 0;
}

static bool can_open(int pid, const char *name, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static const char *touch_of(int pid) {
    if (kill(pid, 0) == 0)
        return "it can be sent signals";
    if (can_open(pid, "mem", O_RDWR) || can_open(pid, "environ", O_RDONLY))
        return "its memory can be read";
    return can_open(pid, "root/", O_RDONLY | O_DIRECTORY) ? "its files can be reached" : NULL;
}

/* Numbers that /proc shows mean nothing where it is another namespace's. */
static bool is_own_proc(void) {
    char self[16] = "";
    return readlink("/proc/self", self, sizeof self - 1) > 0 && pid_of(self) == getpid();
}

static bool try_daemons(const struct probe *p, DIR *processes) {
    static const char fix[] = "give the sandbox a process namespace and a /proc of its own, and "
                              "another uid than exeatd's";
    bool touched = false;
    for (struct dirent *e; !touched && (e = readdir(processes)) != NULL;) {
        int pid = pid_of(e->d_name);
        const char *how = pid > 0 && is_daemon(pid) ? touch_of(pid) : NULL;
        touched = how != NULL;
        if (touched)
            probe_tell(p, "process", "exeatd", PROBE_ESCAPED, fix, "process %d: %s", pid, how);
    }
    return touched;
}

void probe_processes(const struct probe *p) {
    DIR *processes = opendir("/proc");
    if (processes && access("/proc/1", F_OK) == 0 && !is_own_proc())
        probe_tell(p, "process", "/proc", PROBE_ESCAPED, "mount a /proc of the sandbox's own",
                   "it shows the processes of another namespace");
    else if (!processes || !try_daemons(p, processes))
        probe_tell(p, "process", "exeatd", PROBE_CONTAINED, NULL,
                   "no process of exeat can be touched");
    if (processes)
        closedir(processes);
}

/* ---- files ---- */

void probe_known_files(struct buf *out) {
    const char *home = getenv("HOME");
    buf_put(out, VIEW("/etc/exeat\0"));
    buf_put(out, VIEW("/var/lib/exeat\0"));
    if (home && home[0] == '/') {
        buf_printf(out, "%s/.config/exeat", home);
        buf_put_u8(out, 0);
    }
}

/* An empty file is one that something was put over. */
static bool is_readable(int at, const char *name) {
    struct stat st;
    int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    bool has = fd >= 0 && fstat(fd, &st) == 0 && (S_ISDIR(st.st_mode) || st.st_size > 0);
    if (fd >= 0)
        close(fd);
    return has;
}

/* The first that can be read in the folder, or NULL. */
static const char *find_readable(DIR *folder) {
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        bool other = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                     strcmp(e->d_name, "public") == 0;
        if (!other && is_readable(dirfd(folder), e->d_name))
            return e->d_name;
    }
    return NULL;
}

static bool try_file(const struct probe *p, const char *path) {
    static const char fix[] =
        "keep exeat's folders out of the sandbox, but for `public` in the state";
    DIR *folder = opendir(path);
    const char *found = folder ? find_readable(folder) : NULL;
    bool had = found || (!folder && is_readable(AT_FDCWD, path));
    if (had)
        probe_tell(p, "file", path, PROBE_ESCAPED, fix, "%s can be read", found ? found : "it");
    if (folder)
        closedir(folder);
    return had;
}

void probe_files(const struct probe *p, struct view paths) {
    size_t tried = 0, had = 0;
    for (; paths.n > 0; tried++)
        had += try_file(p, (const char *)view_cut(&paths, 0).p);
    if (had == 0)
        probe_tell(p, "file", "exeat's own", PROBE_CONTAINED, NULL,
                   "nothing in %zu places can be read", tried);
}

#include "daemon/process.h"

#include "base/log.h"
#include "cli/policy_files.h"
#include "daemon/places.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FDS_MAX = LISTENER_FD + LISTENERS_MAX,
    HIGH_FD = 200,
    ARGUMENTS_MAX = 24,
    DESCRIPTORS_MIN = 512, /* those of a lane are above HIGH_FD for a moment */
    DESCRIPTORS_MAX = 65536,
    ADMIT_MAX = 96 << 10 /* one argument of a program has at most 128 KiB */
};

/* ---- the table ---- */

/* The channel of its audit records holds some thousands, so that a burst is not refused while audit is busy. */
static int record_pair(int pair[2]) {
    const int size = 4 << 20;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return ERR_SYSTEM;
    if (setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0)
        setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return 0;
}

struct process *process_add(struct parent *p, enum role role, uint32_t lane) {
    struct process *of = calloc(1, sizeof *of), **at = &p->processes;
    int pair[2] = {-1, -1};
    bool records = role != ROLE_PROXY && role != ROLE_INSPECT && role != ROLE_AUDIT;
    if (!of || (records && record_pair(pair) != 0)) {
        free(of);
        return NULL;
    }
    of->parent = p;
    of->role = role;
    of->lane = lane;
    of->lane_fd = of->ledger = -1;
    of->audit_read = pair[0];
    of->audit_write = pair[1];
    buf_init(&of->admit, ADMIT_MAX);
    buf_init(&of->key, 1024);
    buf_init(&of->status, 16384);
    if (lane)
        snprintf(of->origin, sizeof of->origin, "%s %u", role_name(role), lane);
    else
        snprintf(of->origin, sizeof of->origin, "%s", role_name(role));
    while (*at)
        at = &(*at)->next;
    *at = of;
    return of;
}

static void close_records(struct process *of) {
    if (of->audit_read >= 0)
        close(of->audit_read);
    if (of->audit_write >= 0)
        close(of->audit_write);
    of->audit_read = of->audit_write = -1;
}

void process_free(struct process *of) {
    struct process **at = &of->parent->processes;
    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
    assert(!process_runs(of));
    channel_free(of->channel);
    if (of->restart)
        event_free(of->restart);
    close_records(of);
    if (of->ledger >= 0)
        close(of->ledger);
    buf_free(&of->admit);
    buf_free(&of->key);
    buf_free(&of->status);
    free(of);
}

void process_renew_records(struct process *of) {
    int pair[2] = {-1, -1};
    close_records(of);
    if (record_pair(pair) != 0)
        log_warn("%s: no descriptors for its audit records: it can have none", of->origin);
    of->audit_read = pair[0];
    of->audit_write = pair[1];
}

struct process *process_find(struct parent *p, enum role role, uint32_t lane) {
    struct process *of = p->processes;
    while (of && (of->role != role || of->lane != lane))
        of = of->next;
    return of;
}

struct process *process_by_pid(struct parent *p, pid_t pid) {
    struct process *of = p->processes;
    while (of && !(process_runs(of) && of->pid == pid))
        of = of->next;
    return of;
}

bool process_runs(const struct process *of) {
    return of->state != PROCESS_DOWN && of->state != PROCESS_ASLEEP;
}

void process_kill(struct process *of) {
    if (process_runs(of))
        kill(of->pid, SIGKILL);
}

/* ---- the child's side, between fork and exec ---- */

/* Puts fds[i] at PARENT_FD + i (-1: nothing there) and closes all others. */
static void place_descriptors(int *fds, size_t n) {
    /* First out of the way, so that no target is overwritten before it is moved. */
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0 && (fds[i] = fcntl(fds[i], F_DUPFD, HIGH_FD)) < 0)
            _exit(1);
    for (size_t i = 0; i < n; i++) {
        close(PARENT_FD + (int)i);
        if (fds[i] >= 0 && dup2(fds[i], PARENT_FD + (int)i) < 0)
            _exit(1);
    }
    syscall(SYS_close_range, PARENT_FD + (unsigned)n, ~0u, 0);
}

/* Root of a container may have no right to go beyond the hard limit (CAP_SYS_RESOURCE). */
static void raise_limit(__rlimit_resource_t which, rlim_t wanted) {
    struct rlimit r;
    if (getrlimit(which, &r) != 0)
        return;
    const struct rlimit most = {wanted, r.rlim_max < wanted ? wanted : r.rlim_max};
    r.rlim_cur = r.rlim_max < wanted ? r.rlim_max : wanted;
    if (setrlimit(which, &most) != 0)
        setrlimit(which, &r);
}

int process_raise_descriptors(void) {
    struct rlimit r;
    raise_limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur >= DESCRIPTORS_MIN)
        return 0;
    log_fatal("the limit of open files (RLIMIT_NOFILE, `ulimit -Hn`) is %llu: raise it to %d at "
              "least",
              (unsigned long long)r.rlim_cur, DESCRIPTORS_MIN);
    return -1;
}

static void drop_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 ||
        syscall(SYS_capset, &header, none) != 0)
        _exit(1);
}

static void become(uid_t uid) {
    if (places_separate() &&
        (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0))
        _exit(1);
    if (uid != 0)
        drop_capabilities();
    /* After the change of identity, which clears it: nobody outlives the parent. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void execute(char **arguments) {
    static char share[1024 + sizeof "EXEAT_SHARE="];
    static char *environment[] = {"PATH=/usr/bin:/bin", share,
#ifdef EXEAT_SANITIZE
                                  "ASAN_OPTIONS=detect_leaks=0", "UBSAN_OPTIONS=print_stacktrace=1",
#endif
                                  NULL};
    int n = snprintf(share, sizeof share, "EXEAT_SHARE=%s", policy_share());
    if (n > 0 && (size_t)n < sizeof share)
        execve("/proc/self/exe", arguments, environment);
    _exit(127);
}

static pid_t run(char **arguments, int *fds, size_t n, uid_t uid) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Terminal signals are the parent's business: it stops its children in order. */
    setpgid(0, 0);
    raise_limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
    raise_limit(RLIMIT_MEMLOCK, 64 << 20);
    place_descriptors(fds, n);
    become(uid);
    execute(arguments);
    return -1;
}

/* ---- starting ---- */

struct arguments {
    char *at[ARGUMENTS_MAX];
    size_t n;
    char numbers[2][16], directory[4096];
};

static void add(struct arguments *a, const char *word) {
    assert(a->n + 1 < ARGUMENTS_MAX);
    a->at[a->n++] = (char *)(uintptr_t)word;
}

static void add_option(struct arguments *a, const char *option, const char *value) {
    if (!value)
        return;
    add(a, option);
    add(a, value);
}

static void describe(struct arguments *a, const struct process *of) {
    const struct parent *p = of->parent;
    snprintf(a->numbers[0], sizeof a->numbers[0], "%u", of->lane);
    snprintf(a->numbers[1], sizeof a->numbers[1], "%zu", of->n_listeners);
    add(a, "exeatd");
    add_option(a, "--role", role_name(of->role));
    add_option(a, "--lane", a->numbers[0]);
    add_option(a, "--listeners", a->numbers[1]);
    if (of->role == ROLE_PROXY) {
        add_option(a, "--ways", of->ways);
        add_option(a, "--admit", (const char *)buf_view(&of->admit).p);
    }
    add_option(a, "--directory", place_directory(p, of->role, a->directory, sizeof a->directory));
    if (of->role == ROLE_DIALER) {
        add_option(a, "--geo-country", p->config.geo_country);
        add_option(a, "--geo-asn", p->config.geo_asn);
    }
    add_option(a, "--misbehave", p->misbehave);
    if (p->debug || p->config.debug)
        add(a, "--debug");
}

static void close_lane_fd(struct process *of) {
    if (of->lane_fd >= 0)
        close(of->lane_fd);
    of->lane_fd = -1;
}

bool process_start(struct process *of, const struct channel_rule *rules, size_t n_rules,
                   channel_closed *closed) {
    struct arguments a = {.n = 0};
    int pair[2], fds[FDS_MAX];
    if (channel_pair(pair) != 0) {
        log_warn("%s: no descriptors to start it with", of->origin);
        close_lane_fd(of);
        return false;
    }
    size_t n = 0;
    fds[n++] = pair[1];
    fds[n++] = of->lane_fd;
    for (size_t i = 0; i < of->n_listeners; i++)
        fds[n++] = of->listeners[i];
    describe(&a, of);
    of->pid = run(a.at, fds, n, place_uid(of->parent, of->role, of->lane));
    close(pair[1]);
    close_lane_fd(of);
    of->channel = channel_new(of->parent->loop, pair[0], rules, n_rules, 0, closed, of);
    if (of->pid < 0 || !of->channel) {
        log_warn("%s: cannot be started: %s", of->origin, strerror(errno));
        return false;
    }
    of->state = PROCESS_STARTING;
    of->started = clock_mono();
    of->generation = of->prepared = 0;
    of->killed = false;
    return true;
}

int process_start_loader(struct parent *p, int running) {
    struct arguments a = {.n = 0};
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    add(&a, "exeatd");
    add_option(&a, "--role", role_name(ROLE_LOAD));
    add_option(&a, "--config", p->config_file);
    int given[2] = {fds[1], running};
    /* It reads files that may be the operator's alone. */
    p->loader = run(a.at, given, 2, getuid());
    close(fds[1]);
    if (p->loader < 0) {
        close(fds[0]);
        return -1;
    }
    evutil_make_socket_nonblocking(fds[0]);
    return fds[0];
}

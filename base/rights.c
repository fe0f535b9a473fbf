#include "base/rights.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * ---- the page ----
 *
 * Groups of system calls, then who has which. Nobody has exec, fork, ptrace,
 * signals to others, or memory that is writable and executable.
 */

enum group {
    ACCEPT = 1 << 0,     /* take connections from a listener it was given */
    RECEIVE_FD = 1 << 1, /* recvmsg: descriptors may arrive */
    SEND_FD = 1 << 2,    /* sendmsg: descriptors may be passed on */
    SEND = 1 << 3,       /* send to the connected peer only (no address) */
    CONNECT = 1 << 4,    /* make sockets and connect them */
    FILES = 1 << 5,      /* open, write, rename and remove, inside args->directory by Landlock */
    LOOK = 1 << 7,       /* where in a queue to look next (SO_PEEK_OFF) */
    OPTIONS =
        1 << 6, /* socket options of a short list, names of sockets, shutdown of the writing side */
};

static const struct {
    enum role role;
    unsigned groups;
    bool own_directory;
    const char *sentence;
} page[] = {
    {ROLE_PROXY, ACCEPT | OPTIONS, false,
     "accepts from its listeners; reads and writes what it holds"},
    {ROLE_COURIER, RECEIVE_FD | SEND_FD, false,
     "answers the datagrams of its sockets with what its proxy says"},
    {ROLE_EGRESS, RECEIVE_FD | SEND | OPTIONS, false, "uses the connections that dialer hands it"},
    {ROLE_INSPECT, RECEIVE_FD, false, "reads and writes its channel"},
    {ROLE_BROKER, RECEIVE_FD | SEND | FILES, true, "owns the vault's directory"},
    {ROLE_CA, RECEIVE_FD | SEND, false, "reads and writes its channels"},
    {ROLE_DIALER, RECEIVE_FD | SEND_FD | SEND | CONNECT | OPTIONS, false,
     "makes outward sockets and hands them on"},
    {ROLE_AUDIT, RECEIVE_FD | SEND | FILES | LOOK, true, "owns the audit directory"},
    {ROLE_CONTROL, ACCEPT | RECEIVE_FD | SEND_FD | SEND | OPTIONS, false,
     "accepts the operator's connections and passes descriptors to broker"},
    {ROLE_ATTACH, ACCEPT | RECEIVE_FD | SEND_FD | SEND | OPTIONS, false,
     "accepts users' connections and passes their listeners to the parent"},
};

/* Everybody: memory, time, the event loop, and what they already hold open. */
static const int common_calls[] = {
    SCMP_SYS(read),          SCMP_SYS(write),
    SCMP_SYS(readv),         SCMP_SYS(writev),
    SCMP_SYS(close),         SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait),   SCMP_SYS(epoll_pwait2),
    SCMP_SYS(epoll_ctl),     SCMP_SYS(epoll_create1),
    SCMP_SYS(pipe2),         SCMP_SYS(eventfd2),
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(gettimeofday),  SCMP_SYS(time),
    SCMP_SYS(nanosleep),     SCMP_SYS(futex),
    SCMP_SYS(brk),           SCMP_SYS(munmap),
    SCMP_SYS(mremap),        SCMP_SYS(madvise),
    SCMP_SYS(mlock),         SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigaction),  SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(sigaltstack),   SCMP_SYS(exit),
    SCMP_SYS(exit_group),    SCMP_SYS(getrandom),
    SCMP_SYS(getpid),        SCMP_SYS(gettid),
    SCMP_SYS(getuid),        SCMP_SYS(geteuid),
    SCMP_SYS(getgid),        SCMP_SYS(getegid),
    SCMP_SYS(fstat),         SCMP_SYS(restart_syscall),
    SCMP_SYS(sched_yield),   SCMP_SYS(rseq),
    SCMP_SYS(getrusage),     SCMP_SYS(sysinfo), /* qsort asks how much memory there is */
};

static const int file_calls[] = {
    SCMP_SYS(openat),     SCMP_SYS(open),     SCMP_SYS(lseek),     SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),   SCMP_SYS(fsync),    SCMP_SYS(fdatasync), SCMP_SYS(ftruncate),
    SCMP_SYS(unlink),     SCMP_SYS(unlinkat), SCMP_SYS(rename),    SCMP_SYS(renameat),
    SCMP_SYS(renameat2),  SCMP_SYS(stat),     SCMP_SYS(lstat),     SCMP_SYS(statx),
    SCMP_SYS(newfstatat), SCMP_SYS(access),   SCMP_SYS(faccessat), SCMP_SYS(readlink),
    SCMP_SYS(readlinkat), SCMP_SYS(getcwd),   SCMP_SYS(fchmod),    SCMP_SYS(fchown),
    SCMP_SYS(getdents64), SCMP_SYS(uname),    SCMP_SYS(fallocate), SCMP_SYS(flock),
    SCMP_SYS(fstatfs),
};

static const int connect_calls[] = {
    SCMP_SYS(connect),    SCMP_SYS(sendto),     SCMP_SYS(getsockname), SCMP_SYS(shutdown),
    SCMP_SYS(setsockopt), SCMP_SYS(getsockopt), SCMP_SYS(getpeername),
};

/* ---- seccomp ---- */

struct filter {
    scmp_filter_ctx ctx;
    bool failed;
};

/* Conditions on an argument: it is x; none of the bits is set in it. */
static struct scmp_arg_cmp equals(unsigned argument, scmp_datum_t x) {
    return (struct scmp_arg_cmp){.arg = argument, .op = SCMP_CMP_EQ, .datum_a = x};
}

static struct scmp_arg_cmp lacks(unsigned argument, scmp_datum_t bits) {
    return (struct scmp_arg_cmp){.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = bits};
}

static void allow(struct filter *f, int call) {
    /* A call this architecture does not have is no error: there is nothing to allow. */
    int result = seccomp_rule_add(f->ctx, SCMP_ACT_ALLOW, call, 0);
    if (result != 0 && result != -EDOM)
        f->failed = true;
}

static void allow_when(struct filter *f, int call, struct scmp_arg_cmp a) {
    if (seccomp_rule_add_array(f->ctx, SCMP_ACT_ALLOW, call, 1, &a) != 0)
        f->failed = true;
}

static void allow_both(struct filter *f, int call, struct scmp_arg_cmp a, struct scmp_arg_cmp b) {
    struct scmp_arg_cmp both[2] = {a, b};
    if (seccomp_rule_add_array(f->ctx, SCMP_ACT_ALLOW, call, 2, both) != 0)
        f->failed = true;
}

static void allow_all(struct filter *f, const int *calls, size_t n) {
    for (size_t i = 0; i < n; i++)
        allow(f, calls[i]);
}

static void allow_memory(struct filter *f) {
    allow_when(f, SCMP_SYS(mmap), lacks(2, PROT_EXEC));
    allow_when(f, SCMP_SYS(mprotect), lacks(2, PROT_EXEC));
}

static void allow_fcntl(struct filter *f) {
    static const int commands[] = {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        allow_when(f, SCMP_SYS(fcntl), equals(1, (scmp_datum_t)commands[i]));
}

static void allow_options(struct filter *f) {
    allow_both(f, SCMP_SYS(setsockopt), equals(1, IPPROTO_TCP), equals(2, TCP_NODELAY));
    allow_both(f, SCMP_SYS(setsockopt), equals(1, SOL_SOCKET), equals(2, SO_LINGER));
    allow_both(f, SCMP_SYS(setsockopt), equals(1, SOL_SOCKET), equals(2, SO_TIMESTAMPING));
    allow(f, SCMP_SYS(getsockopt));
    allow(f, SCMP_SYS(getpeername));
    allow(f, SCMP_SYS(getsockname));
    /* Only the writing side: shutting a listener down would make it a socket that can connect. */
    allow_when(f, SCMP_SYS(shutdown), equals(1, SHUT_WR));
}

static void allow_connecting(struct filter *f) {
    static const int families[] = {AF_INET, AF_INET6};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        allow_when(f, SCMP_SYS(socket), equals(0, (scmp_datum_t)families[i]));
    allow_all(f, connect_calls, sizeof connect_calls / sizeof *connect_calls);
}

static void allow_groups(struct filter *f, unsigned groups) {
    if (groups & ACCEPT) {
        allow(f, SCMP_SYS(accept4));
        allow(f, SCMP_SYS(setitimer)); /* so that it does not block for long */
    }
    if (groups & RECEIVE_FD) {
        allow(f, SCMP_SYS(recvmsg));
        allow(f, SCMP_SYS(lseek)); /* how long a sealed text is */
        allow(f, SCMP_SYS(recvfrom));
        allow(f, SCMP_SYS(recvmmsg));
    }
    if (groups & SEND_FD)
        allow(f, SCMP_SYS(sendmsg));
    if ((groups & SEND) && !(groups & CONNECT))
        allow_when(f, SCMP_SYS(sendto), equals(4, 0));
    if (groups & LOOK)
        allow_both(f, SCMP_SYS(setsockopt), equals(1, SOL_SOCKET), equals(2, SO_PEEK_OFF));
    if (groups & CONNECT)
        allow_connecting(f);
    else if (groups & OPTIONS)
        allow_options(f);
    if (groups & FILES) {
        allow_all(f, file_calls, sizeof file_calls / sizeof *file_calls);
        allow(f, SCMP_SYS(fcntl)); /* record locks */
    } else {
        allow_fcntl(f);
    }
}

#ifdef EXEAT_SANITIZE
/* A sanitizer reports before it exits; let the report out rather than die mute. */
#define REFUSE SCMP_ACT_ERRNO(EPERM)
#else
#define REFUSE SCMP_ACT_KILL_PROCESS
#endif

static int enter_seccomp(unsigned groups) {
    struct filter f = {seccomp_init(REFUSE), false};
    if (!f.ctx)
        return ERR_SYSTEM;
    allow_all(&f, common_calls, sizeof common_calls / sizeof *common_calls);
    allow_memory(&f);
    allow_groups(&f, groups);
    int result = f.failed || seccomp_load(f.ctx) != 0 ? ERR_SYSTEM : 0;
    seccomp_release(f.ctx);
    return result;
}

/* ---- Landlock: raw calls, since the library has none and old headers stop at ABI 2 ---- */

enum {
    LANDLOCK_CREATE = 444,
    LANDLOCK_ADD = 445,
    LANDLOCK_RESTRICT = 446,
    LANDLOCK_VERSION = 1, /* flag of CREATE: tell the ABI */
    LANDLOCK_BENEATH = 1, /* rule type: a file hierarchy */
};

/* All access rights of the file system that an ABI knows (linux/landlock.h): bits from 0. */
static const uint64_t fs_rights[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
static const uint64_t fs_execute = 1, fs_make_special = 1u << 6 | 1u << 9 | 1u << 10 | 1u << 11;

struct landlock_rules {
    uint64_t fs, net, scoped;
};

struct __attribute__((packed)) landlock_beneath {
    uint64_t allowed;
    int32_t fd;
};

static size_t rules_size(long abi) {
    return abi < 4 ? 8 : abi < 6 ? 16 : 24;
}

static int allow_directory(int rules, const char *directory, uint64_t rights) {
    struct landlock_beneath beneath = {rights & ~(fs_execute | fs_make_special),
                                       open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (beneath.fd < 0)
        return ERR_SYSTEM;
    long result = syscall(LANDLOCK_ADD, rules, LANDLOCK_BENEATH, &beneath, 0);
    close(beneath.fd);
    return result == 0 ? 0 : ERR_SYSTEM;
}

static int enter_landlock(const char *directory, bool connects) {
    long abi = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION);
    if (abi < 1) {
        log_warn("this kernel has no Landlock: seccomp and the uid separate alone");
        return 0;
    }
    uint64_t fs = fs_rights[abi < 5 ? abi : 5];
    /* Network: bind and connect of TCP (ABI 4). Scope: abstract sockets and signals (ABI 6). */
    struct landlock_rules attr = {fs, connects ? 0 : 3, 3};
    int rules = (int)syscall(LANDLOCK_CREATE, &attr, rules_size(abi), 0);
    if (rules < 0)
        return ERR_SYSTEM;
    int result = directory ? allow_directory(rules, directory, fs) : 0;
    if (result == 0 && syscall(LANDLOCK_RESTRICT, rules, 0) != 0)
        result = ERR_SYSTEM;
    close(rules);
    return result;
}

/* ---- entering ---- */

static int narrow(const struct role_args *args, unsigned groups, bool own_directory) {
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return ERR_SYSTEM;
    int result = enter_landlock(own_directory ? args->directory : NULL, (groups & CONNECT) != 0);
    return result != 0 ? result : enter_seccomp(groups);
}

int rights_enter(const struct role_args *args) {
    for (size_t i = 0; i < sizeof page / sizeof *page; i++) {
        if (page[i].role != args->role)
            continue;
        log_debug("from here on it only %s", page[i].sentence);
        int result = narrow(args, page[i].groups, page[i].own_directory);
        if (result != 0)
            log_fatal("%s: cannot give up rights: %s (errno %d)", role_name(args->role),
                      err_text(result), errno);
        return result;
    }
    log_fatal("%s: no rights are written down for this role", role_name(args->role));
    return ERR_MISSING;
}

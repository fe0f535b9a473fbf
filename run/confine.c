#include "run/confine.h"

#include "run/say.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- capabilities ---- */

/* Also those that root would be given anew by an execve. */
static int drop_capabilities(void) {
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                               SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability) != 0)
            return -1;
    return prctl(PR_SET_SECUREBITS, bits) == 0 && syscall(SYS_capset, &header, none) == 0 &&
                   prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) == 0
               ? 0
               : -1;
}

/* ---- seccomp ---- */

/* The kernel reads 32 bits of these arguments; what stands above them must not make a difference. */
static bool refuse_value(scmp_filter_ctx filter, int error, int call, unsigned argument,
                         unsigned value) {
    const struct scmp_arg_cmp is = {
        .arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = UINT32_MAX, .datum_b = value};
    return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((unsigned)error), call, 1, &is) == 0;
}

static bool refuse(scmp_filter_ctx filter, int error, int call) {
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned)error), call, 0) == 0;
}

static bool refuse_families(scmp_filter_ctx filter, int call) {
    for (unsigned family = 0; family < AF_MAX; family++) {
        bool permitted =
            family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
        if (!permitted && !refuse_value(filter, EAFNOSUPPORT, call, 0, family))
            return false;
    }
    /* Those that a later kernel adds. */
    const struct scmp_arg_cmp later = {.arg = 0, .op = SCMP_CMP_GE, .datum_a = AF_MAX};
    return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), call, 1, &later) == 0;
}

/*
 * Who has a mount namespace of his own could leave the covers behind in it: a name that is no mount
 * there can be renamed, with what covers it, and be looked at by way of another mount.
 */
static bool refuse_mounts(scmp_filter_ctx filter) {
    static const int calls[] = {
        SCMP_SYS(mount),      SCMP_SYS(umount),        SCMP_SYS(umount2), SCMP_SYS(pivot_root),
        SCMP_SYS(open_tree),  SCMP_SYS(fsopen),        SCMP_SYS(fspick),  SCMP_SYS(fsmount),
        SCMP_SYS(move_mount), SCMP_SYS(mount_setattr),
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!refuse(filter, EPERM, calls[i]))
            return false;
    return true;
}

static bool refuse_all(scmp_filter_ctx filter) {
    return refuse_mounts(filter) && refuse_families(filter, SCMP_SYS(socket)) &&
           refuse_families(filter, SCMP_SYS(socketpair)) &&
           refuse_value(filter, EPERM, SCMP_SYS(ioctl), 1, TIOCSTI) &&
           refuse_value(filter, EPERM, SCMP_SYS(ioctl), 1, TIOCLINUX) &&
           refuse(filter, ENOSYS, SCMP_SYS(io_uring_setup)) &&
           refuse(filter, ENOSYS, SCMP_SYS(add_key)) &&
           refuse(filter, ENOSYS, SCMP_SYS(request_key)) &&
           refuse(filter, ENOSYS, SCMP_SYS(keyctl)) &&
           refuse(filter, EAFNOSUPPORT, SCMP_SYS(socketcall));
}

/*
 * Calls that came after Linux 6.14, whose numbers are the same everywhere: open_tree_attr is the first
 * of them. libseccomp takes no numbers that it has no names for.
 */
static int refuse_later(void) {
    enum { FIRST = 467, LAST = 0xffff };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Programs of the second architecture that this one can execute, or 0. */
static uint32_t second_architecture(void) {
    switch (seccomp_arch_native()) {
    case SCMP_ARCH_X86_64:
        return SCMP_ARCH_X86;
    case SCMP_ARCH_AARCH64:
        return SCMP_ARCH_ARM;
    default:
        return 0;
    }
}

static int filter_calls(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    uint32_t second = second_architecture();
    bool ok = filter &&
              seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) == 0 &&
              (second == 0 || seccomp_arch_add(filter, second) == 0) && refuse_all(filter) &&
              seccomp_load(filter) == 0;
    seccomp_release(filter);
    return ok ? refuse_later() : -1;
}

/* ---- who gets what ---- */

int confine_command(void) {
    if (drop_capabilities() != 0)
        return run_say("capabilities cannot be given up: %s", strerror(errno));
    return filter_calls() == 0 ? 0 : run_say("the seccomp filter cannot be loaded");
}

int confine_init(void) {
    if (drop_capabilities() != 0 || prctl(PR_SET_DUMPABLE, 0UL) != 0)
        return run_say("capabilities cannot be given up: %s", strerror(errno));
    return 0;
}

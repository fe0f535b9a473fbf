#include "run/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char sentence[1024];

/* A small file's text, "" when there is none. */
static void read_text(const char *root, const char *path, char *out, size_t size) {
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s%s", root, path);
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : 0;
    out[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
}

static bool number_is(const char *root, const char *path, long wanted) {
    char text[32];
    read_text(root, path, text, sizeof text);
    return text[0] && strtol(text, NULL, 10) == wanted;
}

/* Whether this process is under a seccomp filter, as in a container. */
static bool is_filtered(const char *root) {
    char text[8192];
    read_text(root, "/proc/self/status", text, sizeof text);
    const char *line = strstr(text, "\nSeccomp:");
    return line && strtol(line + strlen("\nSeccomp:"), NULL, 10) == 2;
}

const char *refusal_within(const char *root) {
    if (!getenv("EXEAT_SANDBOX") || getenv("EXEAT_UNENFORCED") || !is_filtered(root))
        return NULL;
    return "this is inside of a sandbox of `exeat run` already (EXEAT_SANDBOX), where no other can "
           "be made: run the command as it is";
}

#define NONE_OF(namespaces)                                                                        \
    {                                                                                              \
        "/proc/sys/user/max_" namespaces, 0,                                                       \
            "the sysctl user.max_" namespaces " is 0; as root: `sysctl -w user.max_" namespaces    \
            "=10000`"                                                                              \
    }

/* The rules, in the order in which a system applies them. */
static const struct rule {
    const char *path;
    long refuses;
    const char *sentence;
} rules[] = {
    {"/proc/sys/kernel/unprivileged_userns_clone", 0,
     "the sysctl kernel.unprivileged_userns_clone is 0; as root: `sysctl -w "
     "kernel.unprivileged_userns_clone=1`"},
    NONE_OF("user_namespaces"),
    NONE_OF("net_namespaces"),
    NONE_OF("mnt_namespaces"),
    NONE_OF("pid_namespaces"),
    NONE_OF("ipc_namespaces"),
};

/* By the profile that we ship: then AppArmor's rule is not what refuses. */
static bool is_permitted_by_profile(const char *root) {
    char text[64];
    read_text(root, "/proc/self/attr/current", text, sizeof text);
    return strncmp(text, "exeat (", strlen("exeat (")) == 0;
}

static const char *find_reason(const char *root, int why) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (number_is(root, rules[i].path, rules[i].refuses))
            return rules[i].sentence;
    if (number_is(root, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1) &&
        !is_permitted_by_profile(root))
        return "AppArmor's rule for unprivileged user namespaces is in force (sysctl "
               "kernel.apparmor_restrict_unprivileged_userns=1); the profile "
               "share/exeat/apparmor/exeat permits exeat alone; as root: `apparmor_parser -r` that "
               "file";
    if (why == ENOSPC || why == EUSERS)
        return "the limit of user namespaces is reached (sysctl user.max_user_namespaces)";
    if (why == EINVAL)
        return "this kernel has no user namespaces (CONFIG_USER_NS)";
    const char *within = refusal_within(root);
    if (within)
        return within;
    if (is_filtered(root))
        return "a seccomp filter is in force, as containers have one: it must permit clone and "
               "unshare with CLONE_NEWUSER, and mount (docker run --security-opt "
               "seccomp=unconfined --security-opt systempaths=unconfined)";
    if (why == EPERM)
        return "as in a chroot, where the kernel makes none: enter its folder by pivot_root, as "
               "systemd-nspawn and bwrap do";
    return NULL;
}

const char *refusal_reason(const char *root, int why) {
    const char *reason = find_reason(root, why);
    snprintf(sentence, sizeof sentence, "%s%s%s", strerror(why), reason ? ": " : "",
             reason ? reason : "");
    return sentence;
}

const char *refusal_proc(int why) {
    snprintf(sentence, sizeof sentence,
             "%s: where parts of /proc are hidden, as in a container, the kernel gives no fresh "
             "one (docker run --security-opt systempaths=unconfined)",
             strerror(why));
    return sentence;
}

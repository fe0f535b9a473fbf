#include "daemon/listeners.h"

#include "base/log.h"
#include "daemon/activated.h"
#include "daemon/nflog.h"

#include <errno.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

bool listener_hears(int fd, const struct config_listener *l) {
    int is;
    socklen_t n = sizeof is;
    if (!l->interface[0])
        return true;
    return getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &is, &n) == 0 &&
           interface_is((unsigned)is, l->interface);
}

/* ---- addresses ---- */

static socklen_t tcp_address(const struct config_listener *l, struct sockaddr_storage *out) {
    memset(out, 0, sizeof *out);
    if (l->address.family == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)out;
        in->sin_family = AF_INET;
        in->sin_port = htons(l->port);
        memcpy(&in->sin_addr, l->address.bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(l->port);
    memcpy(&in6->sin6_addr, l->address.bytes, 16);
    return sizeof *in6;
}

/* Whatever CID this machine has for its guests. */
static socklen_t vsock_address(const struct config_listener *l, struct sockaddr_storage *out) {
    struct sockaddr_vm *vm = (struct sockaddr_vm *)out;
    memset(out, 0, sizeof *out);
    vm->svm_family = AF_VSOCK;
    vm->svm_cid = VMADDR_CID_ANY;
    vm->svm_port = l->vsock_port;
    return sizeof *vm;
}

static socklen_t unix_address(const char *path, struct sockaddr_storage *out) {
    struct sockaddr_un *un = (struct sockaddr_un *)out;
    memset(out, 0, sizeof *out);
    un->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof un->sun_path)
        return 0;
    memcpy(un->sun_path, path, strlen(path));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
}

const char *listener_name(const struct config_listener *l, char *out, size_t size) {
    char text[64];
    if (l->place == PLACE_UNIX) {
        snprintf(out, size, "%s", l->path);
        return out;
    }
    if (l->way == WAY_LOGGED) {
        snprintf(out, size, "nflog:%u", l->nflog);
        return out;
    }
    if (l->place == PLACE_VSOCK) {
        snprintf(out, size, "vsock:%u", l->vsock_port);
        return out;
    }
    address_format(&l->address, text);
    snprintf(out, size, l->address.family == 4 ? "%s:%u" : "[%s]:%u", text, l->port);
    return out;
}

/* ---- opening ---- */

/* A socket file that nobody listens on is left over from a crash. */
static bool remove_stale(const struct sockaddr_storage *to, socklen_t size, int type,
                         const char *path) {
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT;
    if (!S_ISSOCK(st.st_mode))
        return false;
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    bool alive = fd >= 0 && connect(fd, (const struct sockaddr *)to, size) == 0;
    if (fd >= 0)
        close(fd);
    return !alive && unlink(path) == 0;
}

/* TPROXY leads nothing to a socket without it. One that was passed to us may have it from who had the right to. */
static bool take_any_destination(int fd, int family, struct buf *why) {
    int is = 0, one = 1;
    socklen_t n = sizeof is;
    int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    int option = family == AF_INET ? IP_TRANSPARENT : IPV6_TRANSPARENT;
    if ((getsockopt(fd, level, option, &is, &n) == 0 && is == 1) ||
        setsockopt(fd, level, option, &one, sizeof one) == 0)
        return true;
    buf_printf(why, "`tproxy`: %s%s", strerror(errno),
               errno == EPERM ? " (exeatd needs the capability CAP_NET_RAW or CAP_NET_ADMIN for it)"
                              : "");
    return false;
}

/* A socket of the internet hears that interface alone, if its name is not empty. */
static bool prepare(int fd, int family, int type, const struct config_listener *l,
                    struct buf *why) {
    int one = 1;
    socklen_t n = (socklen_t)strlen(l->interface);
    if (type == SOCK_STREAM)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    /* Before it is bound: by TPROXY also loopback's addresses are reached from other interfaces. */
    return (n == 0 || setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, l->interface, n) == 0) &&
           (!l->tproxy || take_any_destination(fd, family, why));
}

/* of: NULL for what is none of the internet. */
static int open_socket(int type, const struct sockaddr_storage *to, socklen_t size,
                       const struct config_listener *of, struct buf *why) {
    int fd = socket(to->ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if ((!of || prepare(fd, to->ss_family, type, of, why)) &&
        bind(fd, (const struct sockaddr *)to, size) == 0 &&
        (type == SOCK_DGRAM || listen(fd, BACKLOG) == 0))
        return fd;
    int failed = errno;
    close(fd);
    errno = failed;
    return -1;
}

static int open_unix(const char *path, int type, mode_t mode, struct buf *why) {
    struct sockaddr_storage to;
    socklen_t size = unix_address(path, &to);
    if (size == 0) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = -1, taken = activated_take(&to, size, type, 0, &fd, why);
    if (taken != ERR_MISSING)
        return fd;
    if (!remove_stale(&to, size, type, path)) {
        errno = EADDRINUSE;
        return -1;
    }
    /* Not by chmod: in a folder of somebody else the path may name another file by then. */
    mode_t before = umask(~mode & 0777);
    fd = open_socket(type, &to, size, NULL, why);
    umask(before);
    return fd;
}

/* False with a sentence. */
static bool give_away(const struct config_listener *l, struct buf *why) {
    if ((l->owner == NOBODY && l->group == NOBODY) || lchown(l->path, l->owner, l->group) == 0)
        return true;
    buf_printf(why,
               "%s:%u:%u: the socket %s cannot be given to that owner or group: %s (who is not "
               "root can only give it to a group of his own)",
               l->at.file, l->at.line, l->at.column, l->path, strerror(errno));
    return false;
}

static bool is_own_name(const char *interface, struct buf *why) {
    char own[INTERFACE_SIZE];
    if (!interface[0] || !interface_own_name(interface, own) || strcmp(own, interface) == 0)
        return true;
    buf_printf(
        why,
        "%s is an alternative name (altname) of the interface %s, by which rules of nftables "
        "do not find it: write `interface %s`",
        interface, own, own);
    return false;
}

static int open_address(const struct config_listener *l, struct buf *why) {
    struct sockaddr_storage to;
    int fd = -1, type = l->way == WAY_DNS_UDP ? SOCK_DGRAM : SOCK_STREAM;
    unsigned interface = l->interface[0] ? if_nametoindex(l->interface) : 0;
    socklen_t size = l->place == PLACE_VSOCK ? vsock_address(l, &to) : tcp_address(l, &to);
    if ((l->interface[0] && interface == 0) || !is_own_name(l->interface, why))
        return -1;
    int taken = activated_take(&to, size, type, interface, &fd, why);
    if (taken == ERR_MISSING)
        return open_socket(type, &to, size, l->place == PLACE_INTERNET ? l : NULL, why);
    if (fd < 0 || !l->tproxy || take_any_destination(fd, to.ss_family, why))
        return fd;
    close(fd);
    return -1;
}

static int open_any(const struct config_listener *l, struct buf *why) {
    if (l->way == WAY_LOGGED)
        return nflog_open(l->nflog, why);
    return l->place == PLACE_UNIX ? open_unix(l->path, SOCK_STREAM, l->mode, why)
                                  : open_address(l, why);
}

/* What was found to say, or what the system says. */
static struct view reason(const struct buf *why) {
    return buf_len(why) ? buf_view(why) : view_str(strerror(errno));
}

int listener_open(const struct config_listener *l, struct buf *why) {
    char name[256];
    struct buf cause;
    buf_init(&cause, 1024);
    int fd = open_any(l, &cause);
    if (fd < 0) {
        buf_printf(why, "%s:%u:%u: cannot listen on %s%s%s: %.*s", l->at.file, l->at.line,
                   l->at.column, listener_name(l, name, sizeof name),
                   l->interface[0] ? " of interface " : "", l->interface, VIEW_ARG(reason(&cause)));
    } else if (l->place == PLACE_UNIX && !give_away(l, why)) {
        close(fd);
        fd = -1;
    }
    buf_free(&cause);
    return fd;
}

/* The process that listens at path; 0: nobody, or nobody that can be told. */
static pid_t listener_pid(const char *path) {
    struct sockaddr_storage to;
    struct ucred who = {.pid = 0};
    socklen_t size = sizeof who, n = unix_address(path, &to);
    int fd = n ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd < 0)
        return 0;
    if (connect(fd, (const struct sockaddr *)&to, n) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        who.pid = 0;
    close(fd);
    return who.pid;
}

int listener_open_control(const char *path, bool open) {
    struct buf cause;
    buf_init(&cause, 1024);
    int fd = open_unix(path, SOCK_STREAM, open ? 0666 : 0600, &cause);
    int why = errno;
    pid_t pid = fd < 0 && why == EADDRINUSE ? listener_pid(path) : 0;
    errno = why;
    if (pid > 0)
        log_fatal("process %d listens on the control socket %s already: end it with `exeat stop`, "
                  "or give this exeatd a `control` of its own",
                  (int)pid, path);
    else if (fd < 0)
        log_fatal("cannot listen on the control socket %s: %.*s", path, VIEW_ARG(reason(&cause)));
    buf_free(&cause);
    return fd;
}

int listener_open_attach(const struct config_attach *a) {
    struct buf cause;
    buf_init(&cause, 1024);
    int fd = open_unix(a->path, SOCK_SEQPACKET, a->mode, &cause);
    if (fd < 0)
        log_fatal("%s:%u:%u: cannot listen on the attach socket %s: %.*s", a->at.file, a->at.line,
                  a->at.column, a->path, VIEW_ARG(reason(&cause)));
    buf_free(&cause);
    return fd;
}

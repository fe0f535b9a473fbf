#include "daemon/activated.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST = 3, SOCKETS_MAX = 64 };

static int sockets[SOCKETS_MAX];
static size_t n_sockets;

void activated_note(void) {
    const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    if (!pid || !n || strtol(pid, NULL, 10) != (long)getpid())
        return;
    long count = strtol(n, NULL, 10);
    for (int i = 0; i < count && n_sockets < SOCKETS_MAX; i++) {
        /* Away from the low numbers that roles expect for themselves. */
        int fd = fcntl(FIRST + i, F_DUPFD_CLOEXEC, 100);
        close(FIRST + i);
        if (fd >= 0)
            sockets[n_sockets++] = fd;
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

static bool has_type(int fd, int type) {
    int is;
    socklen_t n = sizeof is;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &is, &n) == 0 && is == type;
}

static bool has_address(int fd, const struct sockaddr_storage *address, socklen_t size) {
    struct sockaddr_storage is;
    socklen_t n = sizeof is;
    memset(&is, 0, sizeof is);
    /* Unix names may or may not count their NUL. */
    return getsockname(fd, (struct sockaddr *)&is, &n) == 0 && memcmp(&is, address, size) == 0;
}

/* The number of the interface that it hears alone; 0: all. */
static unsigned interface_of(int fd) {
    int is = 0;
    socklen_t n = sizeof is;
    return getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &is, &n) == 0 ? (unsigned)is : 0;
}

static void explain(unsigned hears, struct buf *why) {
    char name[IF_NAMESIZE] = "that is no more";
    if (hears == 0) {
        buf_put_str(why, "the socket with this address that was passed for socket activation "
                         "hears every interface: its unit needs `BindToDevice=`");
        return;
    }
    if_indextoname(hears, name);
    buf_printf(why,
               "the socket with this address that was passed for socket activation hears the "
               "interface %s alone: name it by `interface`, or take `BindToDevice=` from its unit",
               name);
}

int activated_take(const struct sockaddr_storage *address, socklen_t size, int type,
                   unsigned interface, int *fd, struct buf *why) {
    size_t found = SOCKETS_MAX;
    for (size_t i = 0; i < n_sockets; i++) {
        if (sockets[i] < 0 || !has_type(sockets[i], type) ||
            !has_address(sockets[i], address, size))
            continue;
        unsigned hears = interface_of(sockets[i]);
        if (hears != interface && (hears == 0 || interface == 0)) {
            explain(hears, why);
            return ERR_BAD;
        }
        if (hears == interface && found != SOCKETS_MAX) {
            buf_put_str(why, "several sockets with this address were passed for socket activation");
            return ERR_BAD;
        }
        if (hears == interface)
            found = i;
    }
    if (found == SOCKETS_MAX)
        return ERR_MISSING;
    *fd = sockets[found];
    sockets[found] = -1;
    return 0;
}

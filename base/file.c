#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_open(const char *path, int flags, mode_t mode) {
    struct stat st;
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fcntl(fd, F_SETFL, flags & O_APPEND) == 0)
        return fd;
    close(fd);
    errno = ENXIO;
    return -1;
}

const char *file_why(void) {
    return errno == ENXIO ? "it is no regular file" : strerror(errno);
}

int file_read(int fd, size_t max, struct buf *out) {
    int result = 0;
    for (;;) {
        uint8_t *p = buf_reserve(out, 4096);
        ssize_t n = p ? read(fd, p, 4096) : 0;
        if (!p || buf_len(out) + (size_t)(n > 0 ? n : 0) > max) {
            result = ERR_LIMIT;
            break;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            result = n < 0 ? ERR_SYSTEM : 0;
            break;
        }
        buf_commit(out, (size_t)n);
    }
    close(fd);
    return result;
}

int file_write(int fd, struct view v) {
    while (v.n > 0) {
        ssize_t n = write(fd, v.p, v.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ERR_SYSTEM;
        v = view_skip(v, (size_t)n);
    }
    return 0;
}

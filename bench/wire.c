#include "wire.h"

void die(const char *fmt, ...) {
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(2);
}

uint64_t now_ns(clockid_t clock) {
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

size_t buf_size(const struct buf *b) {
    return b->len - b->off;
}

char *buf_head(const struct buf *b) {
    return b->p + b->off;
}

void buf_room(struct buf *b, size_t n) {
    if (b->off == b->len)
        b->off = b->len = 0;
    if (b->cap - b->len >= n)
        return;
    if (b->off > 0) {
        memmove(b->p, b->p + b->off, buf_size(b));
        b->len -= b->off;
        b->off = 0;
    }
    if (b->cap - b->len < n) {
        b->cap = b->len + n + 512;
        b->p = realloc(b->p, b->cap);
        if (b->p == NULL)
            die("out of memory");
    }
}

void buf_add(struct buf *b, const void *p, size_t n) {
    buf_room(b, n);
    memcpy(b->p + b->len, p, n);
    b->len += n;
}

void buf_printf(struct buf *b, const char *fmt, ...) {
    char tmp[4096];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(tmp, sizeof tmp, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof tmp)
        die("formatted text too long");
    buf_add(b, tmp, (size_t)n);
}

void buf_free(struct buf *b) {
    free(b->p);
    memset(b, 0, sizeof *b);
}

ssize_t io_result(struct io *io, int rc) {
    switch (SSL_get_error(io->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        io->want = EPOLLIN;
        return IO_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        io->want = EPOLLOUT;
        return IO_AGAIN;
    default:
        return IO_CLOSED;
    }
}

ssize_t io_read(struct io *io, void *p, size_t n) {
    ssize_t r;

    if (io->ssl != NULL) {
        ERR_clear_error();
        r = SSL_read(io->ssl, p, n > INT32_MAX ? INT32_MAX : (int)n);
        return r > 0 ? r : io_result(io, (int)r);
    }
    r = recv(io->fd, p, n, 0);
    if (r > 0)
        return r;
    io->want = EPOLLIN;
    return r < 0 && (errno == EAGAIN || errno == EINTR) ? IO_AGAIN : IO_CLOSED;
}

ssize_t io_write(struct io *io, const void *p, size_t n) {
    ssize_t r;

    if (io->ssl != NULL) {
        ERR_clear_error();
        r = SSL_write(io->ssl, p, n > INT32_MAX ? INT32_MAX : (int)n);
        return r > 0 ? r : io_result(io, (int)r);
    }
    r = send(io->fd, p, n, MSG_NOSIGNAL);
    if (r > 0)
        return r;
    io->want = EPOLLOUT;
    return r < 0 && (errno == EAGAIN || errno == EINTR) ? IO_AGAIN : IO_CLOSED;
}

bool io_pending(const struct io *io) {
    return io->ssl != NULL && SSL_has_pending(io->ssl);
}

void io_close(struct io *io) {
    if (io->ssl != NULL) {
        /* Mark the session as cleanly ended so that it stays resumable. */
        SSL_set_shutdown(io->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(io->ssl);
        io->ssl = NULL;
    }
    if (io->fd >= 0)
        close(io->fd);
    io->fd = -1;
}

void sock_tune(int fd) {
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int sock_listen(uint16_t port, int backlog) {
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        die("socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&sa, sizeof sa) < 0 || listen(fd, backlog) < 0)
        die("cannot listen on 127.0.0.1:%u: %s", port, strerror(errno));
    return fd;
}

void process_init(void) {
    struct rlimit rl;

    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
        rl.rlim_cur = rl.rlim_max;
        setrlimit(RLIMIT_NOFILE, &rl);
    }
}

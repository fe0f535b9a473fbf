/*
 * Pieces shared by the benchmark's origin, load generator and relay: clock, growable buffer, and
 * a socket with or without TLS.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *fmt, ...);

uint64_t now_ns(clockid_t clock);

/* ---- growable buffer; live bytes are p[off..len) ---- */

struct buf {
    char *p;
    size_t off, len, cap;
};
size_t buf_size(const struct buf *b);
char *buf_head(const struct buf *b);
void buf_room(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *p, size_t n);
__attribute__((format(printf, 2, 3))) void buf_printf(struct buf *b, const char *fmt, ...);

/* Give the memory back: an idle connection then holds no buffer. */
void buf_free(struct buf *b);

/* ---- socket, with TLS when ssl is set ---- */

struct io {
    int fd;
    SSL *ssl;
    uint32_t want; /* epoll event the last would-block call waits for */
};

enum { IO_AGAIN = 0, IO_CLOSED = -1 };
ssize_t io_result(struct io *io, int rc);

/* Bytes moved, IO_AGAIN, or IO_CLOSED (end of stream and errors alike). */
ssize_t io_read(struct io *io, void *p, size_t n);
ssize_t io_write(struct io *io, const void *p, size_t n);

/* May a read return something before the socket turns readable again, when
 * the last one left room? Spares the read that would only say EAGAIN. */
bool io_pending(const struct io *io);
void io_close(struct io *io);
void sock_tune(int fd);
int sock_listen(uint16_t port, int backlog);
void process_init(void);

#endif

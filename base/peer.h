/* The other end of a Unix socket: connecting to it, sending descriptors to it, and what the kernel says of it. */
#ifndef BASE_PEER_H
#define BASE_PEER_H

#include "base/bytes.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * The network namespace that a socket was made in; of one that was accepted, its client's.
 * 0 when the kernel does not say (SO_NETNS_COOKIE: Linux 5.14).
 */
uint64_t peer_namespace(int fd);

/* Connects to a path; type: SOCK_STREAM or SOCK_SEQPACKET. A close-on-exec descriptor, or -1 with errno. */
int peer_connect(const char *path, int type);

enum { PEER_FDS_MAX = 64 };

/*
 * sendmsg(2) of bytes, and with the first of them n descriptors (at most PEER_FDS_MAX), which stay the caller's. flags: 0 or
 * MSG_DONTWAIT; there is never a SIGPIPE. How many bytes were taken, or -1 with errno.
 */
ssize_t peer_send(int s, struct view bytes, const int *fds, size_t n, int flags);

#endif

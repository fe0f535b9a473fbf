/* The other end of a Unix socket: connecting to it, and what the kernel says of it. */
#ifndef BASE_PEER_H
#define BASE_PEER_H

#include <stdint.h>

/*
 * The network namespace that a socket was made in; of one that was accepted, its client's.
 * 0 when the kernel does not say (SO_NETNS_COOKIE: Linux 5.14).
 */
uint64_t peer_namespace(int fd);

/* Connects to a path; type: SOCK_STREAM or SOCK_SEQPACKET. A close-on-exec descriptor, or -1 with errno. */
int peer_connect(const char *path, int type);

#endif

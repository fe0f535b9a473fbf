/* What the kernel says of whoever is at the other end of a Unix socket. */
#ifndef BASE_PEER_H
#define BASE_PEER_H

#include <stdint.h>

/*
 * The network namespace that a socket was made in; of one that was accepted, its client's.
 * 0 when the kernel does not say (SO_NETNS_COOKIE: Linux 5.14).
 */
uint64_t peer_namespace(int fd);

#endif

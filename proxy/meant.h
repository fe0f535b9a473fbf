/*
 * Where a connection was meant to go: the two ends of a socket as text, and of one that was accepted for another
 * address, that address. It is said by the kernel, and is recorded; what is dialled is decided by a name.
 */
#ifndef PROXY_MEANT_H
#define PROXY_MEANT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

enum { MEANT_SIZE = 64 };

union end {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage space;
};

/* "192.0.2.1:443", "[2001:db8::1]:443"; false: neither IPv4 nor IPv6. An IPv4-mapped address is written as IPv4. */
bool end_format(const union end *e, char *out, size_t size);
/*
 * What the client of fd, accepted from that listener, connected to: by REDIRECT the original destination, with TPROXY
 * or where every address is local its own end. False: it connected to the very address of the listener (CT-12).
 */
bool meant_find(int fd, int listener, char out[MEANT_SIZE]);

#endif

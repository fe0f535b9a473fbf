/*
 * The network of a sandbox: loopback alone, on which every address there is is local. So nothing
 * can leave, whatever its routes say; a connection to any address ends at a listener of this
 * namespace, whose own address is then the one that was asked for, or is refused at once. Where nftables can be had, TCP
 * ports at which nobody listens are caught as well (run/capture.h).
 */
#ifndef RUN_NETWORK_H
#define RUN_NETWORK_H

#include <stddef.h>
#include <stdint.h>

enum { RUN_PROXY_PORT = 3128 };

/* Brings loopback up in this namespace, makes all addresses local, and gives it one of each family that is none of
 * loopback's. -1 after saying why not. */
int network_up(void);

/* Where a sandbox is listened to, in the order of a table: a port, and what for (enum way_in of base/way_in.h). */
enum { NETWORK_LISTENERS = 13 };
uint8_t network_kind(size_t i);
/*
 * The listening socket, in this namespace, or -1 after saying why not. Where the kernel has no IPv6, those of it are of
 * IPv4 loopback, at ports of no meaning: a place is never empty.
 */
int network_listen(size_t i);

#endif

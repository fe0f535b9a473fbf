/*
 * The ports of a sandbox's network at which nobody listens: by rules of nftables a TCP connection to one of them, at
 * any address but loopback's, ends at the transparent listener, so that it is refused in words and recorded. Who
 * listens inside of the sandbox is found as before.
 */
#ifndef RUN_CAPTURE_H
#define RUN_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Loads the rules into this namespace: what no socket waits for goes to the socket at this port of all addresses, which
 * has IP_TRANSPARENT (IPV6_TRANSPARENT). -1 with errno where the kernel has no such rules: the ports then refuse by themselves.
 */
int capture_ports(uint16_t port, bool ipv6);

#endif

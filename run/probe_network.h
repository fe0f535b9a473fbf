/*
 * Probes of the network: connections and datagrams to addresses, questions to DNS servers, sockets that no
 * network namespace holds.
 */
#ifndef RUN_PROBE_NETWORK_H
#define RUN_PROBE_NETWORK_H

#include "base/bytes.h"
#include "run/probe.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct endpoint {
    struct sockaddr_storage address;
    socklen_t n;
    char text[64]; /* "192.0.2.1:80", "[2001:db8::1]:80" */
};

/* False: the text is no address of IPv4 or IPv6. */
bool endpoint_of(const char *address, uint16_t port, struct endpoint *out);
/* A connected stream of the endpoint, which does not block, or -1 with errno; ETIMEDOUT: nobody answered in time. */
int endpoint_connect(const struct endpoint *e, int wait_ms);

/* Addresses of documentation (RFC 5737, RFC 3849), where nobody is. */
enum { PROBE_NOWHERE = 3 };
extern const char *const probe_nowhere[PROBE_NOWHERE];
/* Whether "address:port" is one of them. */
bool probe_is_nowhere(struct view end);

/* "tcp": contained when nobody takes the connection, or exeat does. */
void probe_tcp(const struct probe *p, const char *address, uint16_t port);
/* "udp", on port 443 "quic": contained when the kernel refuses. */
void probe_udp(const struct probe *p, const char *address, uint16_t port);
/* "dns", by UDP or TCP: contained when exeat answers, or nobody can be asked. */
void probe_dns(const struct probe *p, const char *server, bool tcp);
/* Whether it is a name that it asks for: 12 hexadecimal digits and an end of its own in `invalid` (RFC 6761). */
bool probe_is_name(struct view name);
/* "raw" and "vsock": whether such sockets can be made. */
void probe_sockets(const struct probe *p);
/* "interfaces": contained when loopback is all that is up, else unsure. */
void probe_interfaces(const struct probe *p);

#endif

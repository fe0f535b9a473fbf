/*
 * What the kernel says of a datagram of UDP that was refused: to a port where nobody listens (RFC 792, RFC 4443 3.1), as a raw
 * socket hears it; or by a rule of nftables that logs it, as a socket of nfnetlink_log does: from whom to where. Pure.
 */
#ifndef HTTP_UNREACHABLE_H
#define HTTP_UNREACHABLE_H

#include "policy/address.h"

enum { UNREACHABLE_HEAD = 136 /* bytes of a packet that tell it all, whatever options it has */ };

struct unreachable {
    struct address from, to;
    uint16_t from_port, to_port;
};

/*
 * packet: of ICMP with its IPv4 header, or of ICMPv6 without one, the beginning is enough. ERR_BAD: it is about something
 * else.
 */
MUST_USE int unreachable_read(struct view packet, struct unreachable *out);
/* message: one of nfnetlink_log, in this machine's order of bytes. ERR_BAD: it tells of something else. */
MUST_USE int unreachable_read_logged(struct view message, struct unreachable *out);

#endif

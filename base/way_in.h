/*
 * What a listening socket is for: the ways into a lane.
 */
#ifndef BASE_WAY_IN_H
#define BASE_WAY_IN_H

#include <stdbool.h>

/* The numbers stand in messages and on command lines. */
enum way_in {
    WAY_EXPLICIT = 1,    /* TCP or Unix stream: clients that know of the proxy: HTTP and SOCKS5 */
    WAY_TRANSPARENT = 2, /* TCP: clients that mean another address */
    WAY_DNS_UDP = 3,
    WAY_DNS_TCP = 4,
    WAY_UNREACHABLE =
        5,          /* raw ICMP or ICMPv6: what the kernel says of datagrams that nobody takes */
    WAY_LOGGED = 6, /* netlink: what rules of nftables log of datagrams that they refuse (nflog) */
    WAY_LAST = WAY_LOGGED,
    WAY_LAST_ATTACHED = WAY_UNREACHABLE, /* of those that a launcher hands over */
};

/* Whether it only tells of datagrams that others have refused. */
static inline bool way_only_tells(enum way_in way) {
    return way == WAY_UNREACHABLE || way == WAY_LOGGED;
}

/* Whether it is a socket of packets, which a courier carries (proxy/courier.h). */
static inline bool way_is_carried(enum way_in way) {
    return way == WAY_DNS_UDP || way_only_tells(way);
}

#endif

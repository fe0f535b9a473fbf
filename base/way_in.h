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
        5, /* raw ICMP or ICMPv6: what the kernel says of datagrams that nobody takes */
    WAY_LAST = WAY_UNREACHABLE,
};

/* Whether it is a socket of packets, which a courier carries (proxy/courier.h). */
static inline bool way_is_carried(enum way_in way) {
    return way == WAY_DNS_UDP || way == WAY_UNREACHABLE;
}

#endif

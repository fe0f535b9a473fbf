/*
 * Courier: carries datagrams between the UDP sockets of a lane and its proxy.
 *
 * Run by: the lane's proxy, which starts it before it narrows itself, where there is such a listener. It alone
 * holds: these sockets, with which a proxy could send to anybody; so a proxy that was taken over gets no more of them than to
 * answer, once each, those who asked. Takes: datagrams, as bytes that mean nothing to it, and what proxy answers.
 * Never: looks into a datagram, sends to somebody who did not ask, outlives its proxy.
 *
 * Of a socket that only tells of datagrams that were refused (WAY_UNREACHABLE, WAY_LOGGED) it carries the beginnings of so many
 * packets as are worth a record, and no answers.
 *
 * One channel (AF_UNIX, SOCK_SEQPACKET) for each socket:
 *   courier to proxy  u32 cookie, block peer, block the address that was asked, the datagram
 *   proxy to courier  u32 cookie, the answer
 */
#ifndef PROXY_COURIER_H
#define PROXY_COURIER_H

#include "proxy/proxy.h"

#include <sys/types.h>

enum {
    COURIER_DATAGRAM_MAX = 1232, /* longer ones are not carried */
    COURIER_PACKET_MAX = COURIER_DATAGRAM_MAX + 256,
    COURIER_WAITING = 1024, /* datagrams of a socket that can wait for their answers */
};

/*
 * Starts one, if one of the listeners is of a way that is carried, whose fd becomes our end of the channel. Before threads,
 * and before rights_enter. *courier: its process, 0: none is needed. ERR_SYSTEM.
 */
MUST_USE int courier_start(const struct role_args *args, struct proxy_listener *listeners,
                           pid_t *courier);

#endif

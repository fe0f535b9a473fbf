/*
 * What a lane's egress and the dialer say to each other. The dialer knows the
 * lane by the channel and checks name, port and address by its own copy of the
 * generation (design: nobody believes egress).
 */
#ifndef EGRESS_DIALER_MESSAGES_H
#define EGRESS_DIALER_MESSAGES_H

#include "base/channel.h"

enum { DIALER_FACTS_MAX = 2048 };

/* egress to dialer */
enum {
    /*
     * block sandbox, u8 tls, block canonical host (IPv6 without brackets), u16 port. Generation N must be
     * dialer's. An id is not used again before it was answered or cancelled. A host that is
     * not canonical ends the channel. Answered within LIMIT_DNS_TIME and LIMIT_CONNECT_TIME together.
     */
    DIAL_ASK = 1,
    /* id of an ask: no answer is wanted any more (a connection that was made is closed); empty. */
    DIAL_CANCEL = 2,
};

/* dialer to egress; the generation is the one by which it was judged, perhaps newer than the ask's */
enum {
    /*
     * fd of a connected stream socket (non-blocking, TCP_NODELAY, keepalive). block address text (with
     * an upstream proxy: the proxy's); block CNAME chain, names separated by SP; block country code; block ASN in digits.
     */
    DIAL_DONE = 1,
    /*
     * u16 enum reason; block detail for the record; block address text or empty; block CNAME chain. By rules, with a deny
     * record of dialer's own: unknown_sandbox, host_not_allowed and its like, address_not_allowed, never. Else: name_not_resolved,
     * connect_failed, connect_timeout, not_ready (another generation; ask again), too_many, audit_unavailable,
     * dialer_unavailable (no descriptor or memory of its own), cut (the upstream proxy went away by a new generation).
     */
    DIAL_REFUSED = 2,
};

#endif

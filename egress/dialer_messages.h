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
    DIAL_ASK =
        1, /* block sandbox, u8 tls, block canonical host, u16 port. Generation N must be dialer's. */
    DIAL_CANCEL =
        2, /* id of an ask: the answer is not wanted any more (a connection that was made is closed) */
};

/* dialer to egress */
enum {
    DIAL_DONE =
        1, /* fd of a connected stream socket. block address text; block CNAME chain, names separated by SP; block country code; block ASN in digits */
    DIAL_REFUSED =
        2, /* u16 enum reason (host_not_allowed, address_not_allowed, name_not_resolved, connect_failed, connect_timeout, not_ready, too_many); block detail for the record; block address text or empty; block CNAME chain */
};

#endif

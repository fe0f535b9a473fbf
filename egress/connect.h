/*
 * Connecting outward: happy eyeballs (RFC 8305) over addresses that were
 * vetted, and nothing but these. One attempt every 250 ms, families taking turns,
 * IPv6 first; a failed attempt starts the next at once; the first that succeeds wins and the others are closed.
 * No more than CONNECT_ATTEMPTS_MAX go on at once: the oldest is given up for the next one.
 *
 * With a hop (egress/hop.h) the addresses are those of an HTTP proxy, which is asked for
 * the target by CONNECT; bytes behind its answer's head stay in the socket.
 * The proxy resolves the target's name itself: that its answer is the one we vetted cannot be checked from here.
 */
#ifndef EGRESS_CONNECT_H
#define EGRESS_CONNECT_H

#include "base/loop.h"
#include "policy/authority.h"

enum { CONNECT_ADDRESSES_MAX = 16, CONNECT_ATTEMPTS_MAX = 4 };

struct connect;

struct connected {
    /*
     * 0, ERR_TIMEOUT, ERR_SYSTEM: no address could be connected, or the proxy refused, or
     * ERR_MEMORY: we had no descriptor, or no memory, for one of the addresses, and no other could be connected.
     */
    int result;
    int fd; /* yours when result is 0: non-blocking, close-on-exec, TCP_NODELAY, keepalive; watched by no event */
    struct address address; /* of the peer, when result is 0 */
    char detail[160];       /* when it is not: for the record */
};

typedef void connect_done(void *ctx, const struct connected *c);

/*
 * Dials the addresses (copied; from the first CONNECT_ADDRESSES_MAX in dialling order). behind_hop: what to
 * ask the hop at these addresses for; NULL: there is no hop. `done` is called once, never before this returns, and the connect is gone then. NULL when out of memory.
 */
struct connect *connect_start(struct loop *l, const struct address *addresses, size_t n,
                              uint16_t port, const struct authority *behind_hop,
                              unsigned milliseconds, connect_done *done, void *ctx);
/* Closes everything; `done` will not be called. NULL is fine. */
void connect_cancel(struct connect *c);

#endif

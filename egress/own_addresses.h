/*
 * Own addresses: what must never be dialled whatever a policy says, because it
 * is exeat itself (IP-11, AD-01): our listeners, the resolvers we ask, and this
 * machine where only its being public would permit it.
 */
#ifndef EGRESS_OWN_ADDRESSES_H
#define EGRESS_OWN_ADDRESSES_H

#include "egress/interfaces.h"

enum { OWN_ADDRESSES_MAX = 1024 };

struct own_addresses {
    struct {
        struct address address; /* unspecified: every address of this machine */
        uint16_t port;
    } at[OWN_ADDRESSES_MAX];
    size_t n;
};

/* The IPv4 address inside an IPv4-mapped one (RFC 4291 2.5.5.2); others as they are. */
struct address address_unmap(const struct address *a);

/* Adds blocks "address:port" (struct bundle's own_addresses). ERR_BAD, ERR_LIMIT. */
MUST_USE int own_addresses_read(struct own_addresses *own, struct view blocks);
MUST_USE int own_addresses_add(struct own_addresses *own, const struct address *a, uint16_t port);

/*
 * NULL when it may be dialled as far as this goes, else a static sentence
 * fragment. An address of this machine is refused at the ports of our
 * listeners, and at every port when it is a public one; loopback counts as this machine, unspecified as nothing
 * that can be dialled.
 */
const char *own_addresses_refuse(const struct own_addresses *own, struct interfaces *here,
                                 const struct address *a, uint16_t port);

#endif

/*
 * Interfaces: the addresses of this machine, as they are now (IP-11). A netlink
 * socket is opened and subscribed to changes before the process narrows its
 * rights, so that no right to open one is needed later.
 */
#ifndef EGRESS_INTERFACES_H
#define EGRESS_INTERFACES_H

#include "base/loop.h"
#include "policy/address.h"

struct interfaces;

/* Reads all addresses and follows their changes. NULL on failure: the process must not serve. */
struct interfaces *interfaces_new(struct loop *l);
void interfaces_free(struct interfaces *i);
/* Reads first what the kernel has told of changes, so that an address is known as soon as it is there. */
bool interfaces_hold(struct interfaces *i, const struct address *a);
size_t interfaces_count(const struct interfaces *i);

#endif

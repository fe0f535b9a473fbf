/*
 * Names: what the lane's DNS door answers, and which name an address that it gave out stands for.
 *
 * Each allowed name that was asked for gets an address of the ranges of the configuration: the same as long as it is
 * kept. Nothing is asked of another server: what a name resolves to is found out when a connection is allowed
 * (P5). A lane with such doors has one sandbox, so these names are its own.
 */
#ifndef EGRESS_NAMES_H
#define EGRESS_NAMES_H

#include "egress/lane.h"

/* Message of proxy; anything but 0 ends the lane. */
MUST_USE int names_take_lookup(struct lane *l, struct message *m);

/* The name that this address was given out for; NULL: it was not, or is not any more. */
const char *names_of_address(const struct lane *l, const struct address *a);

#endif

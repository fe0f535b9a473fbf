/*
 * Datagrams that the network of an attached sandbox refused, as its proxy has heard: a record for each destination and
 * minute. Nothing is answered, and nothing of them leaves.
 */
#ifndef EGRESS_DATAGRAMS_H
#define EGRESS_DATAGRAMS_H

#include "egress/lane.h"

/* Message of proxy; anything but 0 ends the lane. */
MUST_USE int datagrams_take(struct lane *l, struct message *m);

#endif

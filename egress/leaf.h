/*
 * Leaf certificates of a lane: a bounded cache, newest use first, single flight. Key: canonical
 * host, which policy has allowed. Value: the certificates that ca signed for the lane's key. Valid
 * until an hour before their end, or until the generation changes what the lane may reach.
 */
#ifndef EGRESS_LEAF_H
#define EGRESS_LEAF_H

#include "egress/lane.h"
#include "policy/reason.h"

struct tunnel;

/*
 * Gets the leaf for the tunnel's host; tunnel_leaf or tunnel_leaf_refused is called, perhaps before
 * this returns. A tunnel that dies first calls leaf_forget.
 */
void leaf_get(struct lane *l, const char *host, uint16_t port, struct tunnel *t);
void leaf_forget(struct tunnel *t);
/* Answers of ca. Anything but 0 drops its channel. */
MUST_USE int leaf_take(struct lane *l, struct message *m);
MUST_USE int leaf_take_refused(struct lane *l, struct message *m);
MUST_USE int leaf_take_changed(struct lane *l, struct message *m);
/* Drops all leaves, when a generation is committed. */
void leaf_drop_all(struct lane *l);

struct leaf_certificates {
    const char *host;
    struct view leaf, chain; /* DER */
    uint64_t not_after;      /* seconds */
};

#endif

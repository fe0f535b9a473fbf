/*
 * Tunnels: one for each CONNECT that policy allowed. A tunnel has the identity that opened it and
 * the one authority it is for; every request inside is held against both (P3).
 */
#ifndef EGRESS_TUNNEL_H
#define EGRESS_TUNNEL_H

#include "egress/identity.h"
#include "egress/lane_messages.h"
#include "egress/leaf.h"
#include "policy/authority.h"

struct tunnel {
    uint32_t id;
    char sandbox[IDENTITY_SIZE];
    struct proof proof;
    struct authority authority;
    char client[64];
    char meant[LANE_ADDRESS_MAX]; /* transparent: the address that the client connected to */
    enum lane_way way;
    char sni[257]; /* as sent, for the record */
    uint64_t opened;
    struct share *share; /* of connections */
    bool recorded;       /* a record tells of it already */
    bool spoke_tls;
    bool was_spliced;            /* proxy was told, or is to be told, so */
    struct splice *splice;       /* or NULL */
    struct tunnel *next_waiting; /* leaf.c */
    struct leaf *waits_for;      /* likewise */
};

/* Messages of proxy; anything but 0 ends the lane. */
MUST_USE int tunnel_take_open(struct lane *l, struct message *m);
MUST_USE int tunnel_take_hello(struct lane *l, struct message *m);
MUST_USE int tunnel_take_failed(struct lane *l, struct message *m);
MUST_USE int tunnel_take_close(struct lane *l, struct message *m);

/* What records call it: "connect" or, once TLS is spoken inside, "tls"; "socks", "transparent". */
const char *tunnel_door(enum lane_way way, bool tls);
/* CONNECT, which is SOCKS's word as well; who connects transparently says none. */
struct view tunnel_method(const struct tunnel *t);
/* NULL when there is none. */
struct tunnel *tunnel_find(struct lane *l, uint32_t id);

/* From leaf.c. */
void tunnel_leaf(struct lane *l, struct tunnel *t, const struct leaf_certificates *c);

/* From leaf.c and splice.c: what the ClientHello asks for is refused; recorded, and told by an alert. */
void tunnel_refused(struct lane *l, struct tunnel *t, enum reason why, struct view detail);

/* A generation was committed: tunnels that it denies are cut. */
void tunnel_judge_all(struct lane *l);

#endif

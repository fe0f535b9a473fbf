/*
 * Spliced tunnels: TLS between a sandbox and an upstream that is passed on unread, where the service says so.
 * What is decided is decided before: sandbox, name, port, SNI and address. One decision record, made before a byte
 * leaves, with the door "spliced", and one outcome with the bytes of each way.
 *
 *   DIALING -> RECORDING -> RUNNING -> (gone)
 *
 * The socket is the only thing that is read here, and its bytes mean nothing.
 */
#ifndef EGRESS_SPLICE_H
#define EGRESS_SPLICE_H

#include "egress/tunnel.h"
#include "policy/policy.h"

/*
 * The tunnel's host was judged for TLS (v, an allow of a spliced service) and its ClientHello is here. tunnel_refused
 * is called, perhaps before this returns, or the splice runs until tunnel_free or its own end.
 */
void splice_begin(struct lane *l, struct tunnel *t, const struct verdict *v);
/* The client is gone, or the tunnel: the outcome is recorded. NULL is fine. */
void splice_end(struct splice *s, enum reason why, struct view detail);
/* A generation was committed, by which this is the verdict on its host: false: it is to be ended. */
MUST_USE bool splice_goes_on(struct splice *s, const struct verdict *v);

/* Messages of proxy; anything but 0 ends the lane. */
MUST_USE int splice_take_bytes(struct lane *l, struct message *m);
MUST_USE int splice_take_end(struct lane *l, struct message *m);
MUST_USE int splice_take_credit(struct lane *l, struct message *m);

/* The records of earlier decisions are held now. */
void splice_recorded(struct lane *l);
/* Audit is away: what is not recorded is refused. */
void splice_lose_audit(struct lane *l);
/* Proxy's channel has room again. */
void splice_resume_all(struct lane *l);
/* Once a second: time limits, and sandboxes that were suspended. */
void splice_sweep(struct lane *l, uint64_t now);

#endif

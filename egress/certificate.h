/*
 * Client certificates: asks broker for the one of a service, for one handshake whose upstream is verified and
 * asks for it. The key lies in the arena, in broker's message, and is not kept.
 */
#ifndef EGRESS_CERTIFICATE_H
#define EGRESS_CERTIFICATE_H

#include "egress/lane.h"
#include "policy/authority.h"
#include "policy/reason.h"

struct lent_certificate {
    struct view chain, digits, fingerprint; /* as in LEASE_CERTIFICATE */
};

struct certificate_ask {
    struct lane *lane;
    const char *sandbox, *name;
    const struct authority *authority;
    uint32_t generation;
    /* One of them is called, perhaps before certificate_start returns; what it is given is valid within the call. */
    void (*lent)(void *ctx, const struct lent_certificate *c);
    void (*failed)(void *ctx, enum reason why, struct view detail);
    void *ctx;
    /* its own */
    uint32_t ask;
    uint64_t give_up;
    struct event *retry;
};

/* The rest is filled in, and stays until certificate_end. */
void certificate_start(struct certificate_ask *c);
/* Nothing is called any more. Zeroed is fine. */
void certificate_end(struct certificate_ask *c);

/* Messages of broker. Anything but 0 drops its channel. */
MUST_USE int certificate_take(struct lane *l, struct message *m);
MUST_USE int certificate_take_refused(struct lane *l, struct message *m);

#endif

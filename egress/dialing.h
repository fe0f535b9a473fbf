/*
 * A question to dialer: a connected socket to the authority, for a sandbox. When dialer is about to change to
 * another generation it is asked again, within LIMIT_ASK_TIME.
 */
#ifndef EGRESS_DIALING_H
#define EGRESS_DIALING_H

#include "egress/lane.h"
#include "policy/authority.h"
#include "policy/policy.h"
#include "policy/reason.h"

struct dialing {
    /* the asker's, set before the start; borrowed */
    struct lane *lane;
    const char *sandbox;
    const struct authority *authority;
    uint32_t generation;
    bool tls;
    /* One of these is called once, perhaps before the start returns; d may be gone when it returns. */
    void (*connected)(void *ctx, int fd);
    void (*failed)(void *ctx, enum reason why, struct view detail);
    void *ctx;

    char address[64], aliases[256], country[8], asn[16]; /* what dialer said */
    uint32_t ask;
    uint64_t give_up;
    struct event *retry;
};

void dialing_start(struct dialing *d);
/* The asker ends, or lost interest. */
void dialing_end(struct dialing *d);

/*
 * Whether dialer's answer would be one by a newer generation, as far as the service and `never all` say; which
 * addresses are our own is not asked again.
 */
bool dialing_suits(const struct dialing *d, const struct generation *g, const struct service *s);

/* Answers of dialer. Anything but 0 drops its channel. */
MUST_USE int dialing_take_done(struct lane *l, struct message *m);
MUST_USE int dialing_take_refused(struct lane *l, struct message *m);

#endif

/*
 * Dials: the wishes of all lanes, their limits and their turns, and the
 * messages that carry them (egress/dialer_messages.h). The dialer without its
 * process, rights and parent; tests drive it over socket pairs.
 */
#ifndef EGRESS_DIALS_H
#define EGRESS_DIALS_H

#include "egress/dial.h"

struct dials;

struct dials_options {
    struct loop *loop;
    struct resolver *resolver; /* these three stay the caller's */
    struct interfaces *interfaces;
    struct geography *geography;
    const struct resolver_server *system; /* asked when a generation names no server; copied */
    size_t n_system;
    /*
     * Dials of one lane, waiting ones included; more are refused (too_many). A sandbox gets another only
     * while it has fewer than are still free: alone it comes to a half.
     */
    size_t lane_max;
    /*
     * Dials at work. Lanes take turns, and in a lane the sandbox that has the fewest at work comes first;
     * none holds more of them than are left for the others.
     */
    size_t active_max;
    void (*bad_peer)(void *ctx, uint32_t lane); /* broke the contract; its channel is dropped */
    void *ctx;
};

/* NULL when out of memory. */
struct dials *dials_new(const struct dials_options *o);
/* Closes all channels and ends all dials. NULL is fine. */
void dials_free(struct dials *d);
/* The channel of a lane's egress, which is taken over; one that was there is dropped. ERR_MEMORY. */
MUST_USE int dials_peer(struct dials *d, uint32_t lane, int fd);
void dials_peer_gone(struct dials *d, uint32_t lane);
/* The writing end of audit, taken over; -1: audit is gone. ERR_MEMORY. */
MUST_USE int dials_audit(struct dials *d, int fd);
/* Prepares generation N; text must live until a newer one is committed. Errors as dial_rules_new. */
MUST_USE int dials_generation(struct dials *d, uint32_t generation, struct view text);
/* Uses what was prepared. Dials in progress are judged again. */
void dials_commit(struct dials *d, uint32_t generation);
/* Appends JSON members without braces. */
void dials_status(const struct dials *d, struct buf *out);

#endif

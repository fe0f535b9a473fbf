/*
 * A mandate: what one generation permits the broker to lend, and to whom. A
 * copy, so that the generation in use outlives the mapping of a newer one.
 */
#ifndef BROKER_MANDATE_H
#define BROKER_MANDATE_H

#include "base/limits.h"
#include "policy/policy.h"

struct mandate {
    uint32_t number;
    struct policy *policy;
    struct limits limits;
    struct buf lanes; /* bundle_lane walks */
};

/* Reads a generation's text (policy/bundle.h). ERR_BAD (logged), ERR_MEMORY. */
MUST_USE int mandate_new(uint32_t number, struct view text, struct mandate **out);
void mandate_free(struct mandate *m);
/* Whether the sandbox is one of the lane's. */
bool mandate_lane_has(const struct mandate *m, uint32_t lane, struct view sandbox);

#endif

/*
 * Tallies: what each sandbox has used of its grants with limits. They lie in memory that the parent
 * made for the lane and hands to each egress of it: what is counted there before a byte leaves is
 * counted also when egress dies, and a new egress goes on from it. Of a grant that a reload keeps
 * (grant_put_identity) they go on, too. Requests in progress are counted here only, and end with us.
 *
 * What is taken is taken before the request is sent, and what was not sent is given back at its end.
 */
#ifndef EGRESS_TALLY_H
#define EGRESS_TALLY_H

#include "egress/identity.h"
#include "policy/policy.h"

struct exchange;
struct tally;

/* What an exchange has taken. */
struct taken {
    const struct grant *grants[LAYERS_MAX]; /* of its generation's policy */
    struct tally *of[LAYERS_MAX];
    size_t n;
    uint64_t bytes, heads; /* of body and heads; of the latter those that are sent */
    uint64_t until;        /* seconds since 1970; 0: no end */
    struct position ends;  /* of the grant that has it */
    bool sent;
};

/* The parent's memory; takes over fd. ERR_BAD: it is not of the expected size, or was written to by who knew no better. */
MUST_USE int tally_attach(struct lane *l, int fd);
/*
 * Takes a use, a token of the rate and what is known of the body, by one grant for each layer that the
 * verdict names. Anything but REASON_ALLOWED: nothing is taken, the verdict's position is that of the grant,
 * and the trail's retry_after is set.
 */
enum reason tally_take(struct exchange *ex);
/* Another head that is about to leave, or bytes of a body whose length is not known. False: more than is left, and nothing is taken. */
bool tally_take_head(struct exchange *ex, size_t n);
bool tally_take_body(struct exchange *ex, size_t n);
/* Whether a grant of it counts uses: each request that an upstream may have seen is one. */
bool tally_counts_uses(const struct exchange *ex);
/* The same exchange by a newer generation: by the grants of its verdict instead. As tally_take. */
enum reason tally_move(struct exchange *ex);
/* Its end. */
void tally_give(struct exchange *ex);

/* JSON: a member "grants", of each sandbox of the lane and each of its grants with terms, as far as there is room. */
void tally_put_status(const struct lane *l, struct buf *out);

#endif

/*
 * Questions to other roles. Each has a deadline (LIMIT_ASK_TIME, or longer where the work is), a
 * missed deadline is a refusal, and so is the loss of the role that was asked.
 */
#ifndef EGRESS_ASK_H
#define EGRESS_ASK_H

#include "egress/lane.h"
#include "policy/reason.h"

struct ask {
    uint32_t id;
    enum role of;      /* who was asked */
    uint64_t deadline; /* monotonic nanoseconds */
    /* The answer will not come: too late, role lost, or no memory. The ask is gone already. */
    void (*lost)(struct lane *l, void *ctx, enum reason why);
    void *ctx;
};

/* Registers a question; the id goes into the message. 0 when out of memory. seconds from now. */
uint32_t ask_new(struct lane *l, enum role of, uint64_t seconds,
                 void (*lost)(struct lane *l, void *ctx, enum reason why), void *ctx);
/*
 * The answer to id came from role `of`: gives ctx and forgets the ask. NULL when nobody asked (any more), or asked something
 * else: lost tells one kind of question from another.
 */
void *ask_take(struct lane *l, enum role of, uint32_t id,
               void (*lost)(struct lane *l, void *ctx, enum reason why));
/* The asker lost interest. */
void ask_forget(struct lane *l, uint32_t id);
/* Every ask to that role is lost. */
void ask_lose_all(struct lane *l, enum role of);
/* Once, at start: sweeps deadlines. ERR_MEMORY. */
MUST_USE int ask_start(struct lane *l);

#endif

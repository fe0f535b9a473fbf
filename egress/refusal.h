/*
 * Refusals as answers: a status, a JSON problem (RFC 9457) with reason code, rule, hint and record
 * id, and the same in one line for people. Nothing an upstream said is in it.
 */
#ifndef EGRESS_REFUSAL_H
#define EGRESS_REFUSAL_H

#include "egress/trail.h"
#include "http/message.h"

struct refusal {
    struct answer_head head; /* views point into storage */
    struct buf body;
    char line[300], retry_after[16];
};

/*
 * Fills in *r (to be given to refusal_free) for a decision that was recorded. basic_challenge: a client that first
 * goes without credentials (git) is to be asked for them: 401 instead of 403.
 */
void refusal_make(struct refusal *r, const struct trail *t, bool basic_challenge);
void refusal_free(struct refusal *r);
/* Status that refusal_make will choose. */
uint16_t refusal_status(enum reason reason, bool basic_challenge);

#endif

/*
 * From what proxy sent to the one canonical request and its verdict (P3, P4): read the record as
 * an enemy's, find the identity, make authority and target canonical, find credentials, judge.
 */
#ifndef EGRESS_REQUEST_H
#define EGRESS_REQUEST_H

#include "egress/exchange.h"

/*
 * ex->record holds the message's body. Fills in the canonical request and the verdict: whatever is
 * wrong with the request is a reason in ex->verdict. ERR_BAD when proxy broke the contract.
 */
MUST_USE int request_build(struct exchange *ex);
/*
 * Judges the built request by the generation in use, and with what is known of its body; may be asked again.
 * ex->undecided: the verdict counts for nothing before ex->needs is known of the body.
 */
void request_judge(struct exchange *ex);

#endif

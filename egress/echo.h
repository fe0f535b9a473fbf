/*
 * What egress answers for the echo host (policy/echo.h), which has no upstream: who asks, by which way and for what. A
 * request to it is judged and recorded like any other. No credential goes there: a placeholder is refused,
 * and what else looks like one is neither repeated nor recorded.
 */
#ifndef EGRESS_ECHO_H
#define EGRESS_ECHO_H

#include "egress/exchange.h"

/* As policy_judge_host; the echo host is open to every sandbox that the policy knows. */
struct verdict echo_judge_host(const struct policy *p, struct view sandbox, bool tls,
                               const struct authority *a);
/* The verdict on a request to the echo host. elsewhere: a placeholder stands where none is read. */
struct verdict echo_judge(const struct exchange *ex, bool elsewhere);
/* Records and answers a request that was allowed. The exchange is gone afterwards. */
void echo_answer(struct exchange *ex);

#endif

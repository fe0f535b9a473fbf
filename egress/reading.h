/*
 * The body of a request whose verdict depends on it: held whole until inspect has read it, or until
 * it is clear that no fact will be certain; then the request is judged again, with the facts.
 *
 * Nothing leaves before, not even a connection is made. Bytes are taken from proxy as fast as
 * they are read, so that a body may be longer than the window, up to the limit inspect-body. What all exchanges
 * of a lane hold has a limit, too, of which sandboxes have shares.
 *
 * Facts are kept with the texts of the pointers that were asked for: a newer policy that asks
 * for the same judges by them.
 */
#ifndef EGRESS_READING_H
#define EGRESS_READING_H

#include "egress/exchange.h"
#include "egress/facts_message.h"

/* Bytes held by a lane. */
enum { READING_HELD_MAX = 256 << 20 };

struct reading;

/*
 * ex->needs says what is asked. Begins, with what of the body has come; each of these may decide the exchange
 * and so end it.
 */
void reading_begin(struct exchange *ex);
/* The last bytes of ex->body have come, or all of them. */
void reading_came(struct exchange *ex, size_t n);
void reading_ended(struct exchange *ex);
/* Hands inspect what it has not seen of it, as far as there is room. Ends nothing. */
void reading_offer(struct exchange *ex);
/* Inspect need not read on; the facts, if there are any, and what is held stay. NULL is fine. */
void reading_stop(struct reading *r);
/* n bytes that were held have left. */
void reading_left(struct reading *r, size_t n);
void reading_free(struct reading *r);

/*
 * The facts in terms of a policy that asks for needs; until the next call. NULL: there are none, or they
 * are not an answer to that.
 */
const struct body_facts *reading_facts(struct reading *r, const struct policy *p,
                                       const struct body_needs *needs);

/* From inspection.c. ERR_BAD: inspect broke the contract. */
void reading_acknowledged(struct exchange *ex, uint32_t n);
MUST_USE int reading_told(struct exchange *ex, struct view message);

#endif

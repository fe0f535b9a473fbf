/*
 * The half of an exchange towards the upstream: the body as it comes from proxy, judged; the head
 * written from the record with the secret in place; both sent with back-pressure.
 */
#ifndef EGRESS_SEND_H
#define EGRESS_SEND_H

#include "egress/exchange.h"

/* After an allow: how the body is to be looked at. REASON_ALLOWED, or why not. */
enum reason send_prepare(struct exchange *ex);
/* Room for a body that is held until limit bytes of it are here. False: no memory. */
bool send_hold(struct exchange *ex, uint64_t limit);
/* n bytes more may come. */
void send_credit(struct exchange *ex, uint32_t n);
/* The body that was held, as far as it has come, goes the way of others. False: the exchange is refused. */
bool send_held(struct exchange *ex);
/* The placeholder is in its place again, and what was taken for known of the body is not. */
void send_mend(struct exchange *ex);
/* Asks for a connection; fresh: not a pooled one. */
void send_connect(struct exchange *ex, bool fresh);
/*
 * Connected, and nothing is sent yet: whether the upstream is silent, as it has to be but for session tickets. False: it spoke or
 * ended, and the exchange is over or begins again.
 */
bool send_finds_silence(struct exchange *ex);
/* Connected, and the secret is lent (NULL: none is needed): records the decision, then bytes leave. */
void send_launch(struct exchange *ex, struct lease *lease);
/* The decision is where it must be: bytes leave. */
void send_begin(struct exchange *ex);
/* Body bytes and end from proxy. Anything but 0: proxy broke the contract. */
MUST_USE int send_body(struct exchange *ex, struct view piece);
MUST_USE int send_end(struct exchange *ex, struct view trailers);
/* Writes what may be written. */
void send_pump(struct exchange *ex);
/* The upstream ended a reused connection before a byte of the answer: whether to try once more on a fresh one. */
bool send_retry(struct exchange *ex);

/* ---- between the two files: the body as it comes is judged in send_body.c, and written in send.c ---- */

/* Bytes of ex->body that were judged and may leave. */
size_t send_judged(const struct exchange *ex);
/*
 * A piece of a body that is under way, with nothing before it that waits, is written from where it lies; how much of it
 * was. What is left comes into ex->body, and is offered again from there.
 */
size_t send_at_once(struct exchange *ex, struct view piece);

/* ---- from inspection.c ---- */

/* Hands inspect what it has not seen of the body, as far as there is room. Ends nothing. */
void send_offer(struct exchange *ex);
void send_cleared(struct exchange *ex, uint32_t n);
void send_found(struct exchange *ex, struct view name, struct view value);
void send_scanned(struct exchange *ex);

#endif

/*
 * Egress's side of inspect: one inspection is one body that is scanned for credentials (a
 * request's), read for rules (a request's, too) or decoded (an answer's).
 */
#ifndef EGRESS_INSPECTION_H
#define EGRESS_INSPECTION_H

#include "egress/inspect_messages.h"
#include "egress/lane.h"

struct inspection;

/* Once, before the first. */
void inspection_start(struct lane *l);
/* NULL when inspect is away or far behind, or memory is short: refuse with REASON_INSPECT_UNAVAILABLE. */
struct inspection *inspection_new(struct exchange *ex, struct lane *l, enum inspect_job job,
                                  struct view argument, uint64_t grow_to);
/* Tells inspect to forget it; NULL is fine. */
void inspection_free(struct inspection *i);
/* Decoding: queued, and handed over bit by bit. */
void inspection_feed(struct inspection *i, struct view bytes);
/*
 * Scanning and reading: hands over as much as there is room for, and says how much that was. The room is
 * INSPECT_WINDOW unanswered bytes, and the sandbox's share of what may be before inspect. What is left is
 * asked for by send_offer or reading_offer.
 */
MUST_USE size_t inspection_offer(struct inspection *i, struct view bytes);
/* All of the body was handed over. May be said again. */
void inspection_end(struct inspection *i);
/* Decoding: what was decoded has been passed on; the next piece may be handed over. */
void inspection_resume(struct inspection *i);
/* Decoding: encoded bytes that wait; stop feeding while it is large. */
size_t inspection_waiting(const struct inspection *i);

/* There may be room again for what waits before inspect. */
void inspection_more_room(struct lane *l);

/* Messages of inspect. Anything but 0 drops its channel. */
MUST_USE int inspection_take(struct lane *l, struct message *m);
/* Inspect is gone: exchanges that need it are refused. */
void inspection_lose_all(struct lane *l);

#endif

/*
 * Leases: secrets that broker has lent to this lane, for a minute or so, and the guard's sets that
 * remember what was lent within the last while. All of it lives in the locked arena.
 */
#ifndef EGRESS_LEASE_H
#define EGRESS_LEASE_H

#include "egress/guard.h"
#include "egress/lane.h"
#include "egress/upstream.h"

struct lease;

/*
 * The secret of the exchange's verdict: exchange_lent or exchange_not_lent is called, perhaps
 * before this returns. An exchange that ends first calls lease_forget. fingerprint is that of the
 * placeholder that was presented.
 */
void lease_get(struct lane *l, const struct upstream_key *key,
               const uint8_t fingerprint[FINGERPRINT_SIZE], struct exchange *ex);
void lease_forget(struct exchange *ex);
/* Valid within the call of exchange_lent only. */
struct view lease_secret(const struct lease *lease);

/* What answers to this sandbox are to be scanned for, now and while they last; NULL when it has no credential. */
struct guard_set *lease_guard(struct lane *l, struct view sandbox);

/*
 * The credential of which answers to this sandbox held too many parts (LIMIT_GUARD_FRAGMENTS), while that
 * counts: nothing is allowed to the sandbox meanwhile (docs/decisions/0006). NULL: none.
 */
const char *lease_suspended(const struct lane *l, struct view sandbox);

/* Messages of broker. Anything but 0 drops its channel. */
MUST_USE int lease_take(struct lane *l, struct message *m);
MUST_USE int lease_take_refused(struct lane *l, struct message *m);
MUST_USE int lease_take_drop(struct lane *l, struct message *m);
/* Once a second: leases and guards that have had their time. */
void lease_sweep(struct lane *l, uint64_t now);
/* Another generation: what is lent must be asked for again. */
void lease_drop_all(struct lane *l);

#endif

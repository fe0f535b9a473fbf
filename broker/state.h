/*
 * The STATE row: what makes the vault's rows one whole. It holds a counter and
 * an HMAC over schema, counter, number of rows and the hash of every other row
 * (kind, name, body) in order, so that no row can be taken away, brought back
 * or put in; and a value that tells another key from damage.
 */
#ifndef BROKER_STATE_H
#define BROKER_STATE_H

#include "broker/inventory.h"
#include "broker/seal.h"

/*
 * Reads and checks everything. *out (freed by the caller) and *counter are set
 * only on success. ERR_MISSING: no row at all. ERR_DENIED: written under
 * another key. ERR_BAD: another schema. ERR_CRYPTO: changed. ERR_MEMORY, ERR_SYSTEM.
 */
MUST_USE int state_check(struct store *s, const struct seal_keys *keys, struct inventory *out,
                         uint64_t *counter);
/* Writes the row for the rows as they are now, inside the caller's transaction, and says what they are. */
MUST_USE int state_seal(struct store *s, const struct seal_keys *keys, uint64_t counter,
                        struct inventory *out);

#endif

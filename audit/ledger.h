/*
 * The ledger: packets of producers in, chained lines on the disk and signed heads out. All that
 * audit does but sockets and time, so that it can be tested without a process.
 *
 * Lines gather in memory until ledger_flush; what could not be written stays there and is tried
 * again. While it fails, the caller stops taking packets: no record is dropped.
 */
#ifndef AUDIT_LEDGER_H
#define AUDIT_LEDGER_H

#include "audit/chain_head.h"
#include "audit/log_file.h"
#include "audit/record.h"

struct ledger;

struct ledger_settings {
    uint64_t file_bytes; /* rotate beyond */
    uint64_t keep;       /* finished files; 0: all */
    bool durable;        /* every flush waits for the disk */
};

/*
 * Opens the log in the directory dir (borrowed), makes the signing key at the first start, and
 * gathers the events of the start ("started", "recovered", "set_aside", ...). Clocks here and below are
 * nanoseconds. ERR_SYSTEM (errno); ERR_CRYPTO: sign.key cannot be used; ERR_MEMORY.
 */
MUST_USE int ledger_open(int dir, uint64_t wall, uint64_t mono, struct ledger **out);
void ledger_free(struct ledger *l);
void ledger_set(struct ledger *l, const struct ledger_settings *s);

/* A number for this producer, valid as long as the ledger. ERR_MEMORY, ERR_LIMIT, ERR_BAD (name). */
MUST_USE int ledger_producer(struct ledger *l, const char *origin, size_t *out);
/* There is room for another packet; if not, flush first. */
bool ledger_has_room(const struct ledger *l);
/*
 * Takes a packet that came over this producer's socket. A gap in its numbers and a new epoch become
 * events before it. Records that stand in the log already are passed over until the first that does
 * not: an audit that died had written them and not yet taken them from the kernel. ERR_BAD: malformed,
 * another's name, or a number that was there: take nothing from this producer any more; good records
 * in front of a malformed one are taken. ledger_has_room must be true.
 */
MUST_USE int ledger_take(struct ledger *l, size_t producer, struct view packet);
/* An event of audit's own, built by the caller with record_begin. ERR_LIMIT: no room, flush first; ERR_MEMORY. */
MUST_USE int ledger_event(struct ledger *l, const struct record *r);

/* Writes what is gathered, and rotates when the file is full. ERR_SYSTEM (errno): try again. */
MUST_USE int ledger_flush(struct ledger *l, uint64_t wall);
/* Something is gathered that is not written. */
bool ledger_is_behind(const struct ledger *l);
/*
 * Syncs, signs where the chain stands (head.json, then a line of kind "head"), if anything but a head
 * was added since the last time. ERR_SYSTEM (errno), ERR_CRYPTO: try again.
 */
MUST_USE int ledger_sign(struct ledger *l, uint64_t wall);
/* The newest head that was signed; NULL: none yet. Valid until the next is. */
const struct chain_head *ledger_head(const struct ledger *l);
/* Up to which record of the producer's epoch all is written, on the disk if durable; false: none. */
bool ledger_written(const struct ledger *l, size_t producer, uint64_t *epoch, uint64_t *number);

/* Number of the newest record; bytes of the current file. For status. */
uint64_t ledger_seq(const struct ledger *l);
uint64_t ledger_bytes(const struct ledger *l);

#endif

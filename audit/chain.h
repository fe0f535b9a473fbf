/*
 * The hash chain over lines of audit.jsonl: pure, no file, no clock.
 *
 *   {"v":1,"seq":N,"time":"2026-01-02T03:04:05.678901Z", ... ,"prev":"<64 hex>","hash":"<64 hex>"}
 *
 * `hash` is the SHA-256 of the line's bytes before `,"hash":`. `prev` is the hash of line N-1 (zeros
 * for line 1). So a line that is changed, missing, repeated or moved is found by walking the lines,
 * and a chain that was written anew from some line on by a head that was exported before (audit/chain_head.h).
 */
#ifndef AUDIT_CHAIN_H
#define AUDIT_CHAIN_H

#include "audit/line.h"
#include "base/digest.h"

enum { CHAIN_TIME_SIZE = 28 }; /* "2026-01-02T03:04:05.678901Z" and a NUL */

/* Where a chain stands: behind line `seq`. All zero: before line 1. */
struct chain {
    uint64_t seq;
    uint8_t hash[DIGEST_SIZE];
};

/* ---- writing ---- */

/* wall in nanoseconds since 1970, written in UTC with microseconds. */
void chain_time(uint64_t wall, char out[CHAIN_TIME_SIZE]);
/* Empties *line and puts the members v, seq and time; the caller appends `,"name":value` members. */
void chain_open_line(const struct chain *c, uint64_t wall, struct buf *line);
/* Puts prev, hash, "}" and LF, and moves c on. On ERR_LIMIT or ERR_MEMORY c stays where it was. */
MUST_USE int chain_close_line(struct chain *c, struct buf *line);

/* ---- checking ---- */

enum chain_fault {
    CHAIN_GOOD,
    CHAIN_MALFORMED, /* not a line of ours */
    CHAIN_CHANGED,   /* its hash is not that of its bytes */
    CHAIN_MISSING,   /* records between the one before and this one are not there */
    CHAIN_REPEATED,  /* a number that was there already: repeated or moved */
    CHAIN_UNLINKED,  /* does not continue the record before it, which was changed or replaced */
};

/* What a line says; views point into it. */
struct chain_line {
    uint64_t seq;
    struct view time, kind, origin;
    bool numbered; /* has n and epoch: it came from a producer, or restates one */
    uint64_t n, epoch;
    struct view key, signature; /* of a head, else empty */
    uint8_t prev[DIGEST_SIZE], hash[DIGEST_SIZE];
};

/* Reads one line without its LF and checks its own hash: CHAIN_GOOD, CHAIN_MALFORMED or CHAIN_CHANGED. */
MUST_USE enum chain_fault chain_read(struct view text, struct chain_line *out);
/*
 * Reads the line behind c and moves c on when it is good. A chain may begin in the middle (older
 * files were removed): with begun false, line and prev are taken as they are.
 */
MUST_USE enum chain_fault chain_step(struct chain *c, bool begun, struct view text,
                                     struct chain_line *out);
/* "was changed", ... to stand behind "record 17". Static. */
const char *chain_fault_text(enum chain_fault f);

#endif

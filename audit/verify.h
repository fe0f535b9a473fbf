/*
 * Verification of a whole audit log, record by record over all its files (docs/audit.md). Reads
 * only; the log may be written meanwhile.
 *
 * By itself it finds every record that was changed, taken out, repeated or moved, every signed head
 * that does not fit, and what audit found at a start (head_mismatch). A log that was cut at its end it finds by
 * head.json, if that lies beside it and was not put back as well; one that was written anew by somebody who has the
 * signing key only with a head that was exported before.
 */
#ifndef AUDIT_VERIFY_H
#define AUDIT_VERIFY_H

#include "audit/chain_head.h"
#include "audit/segment.h"

struct verify_report {
    bool good;
    uint64_t files, records, heads;
    uint64_t first, last; /* numbers of the records that verified */
    uint64_t trails;      /* one behind the other in one file, each from its record 1 on */
    uint64_t unchecked;   /* of the heads: there was no key */
    bool
        has_head; /* one was given, or head.json is there: there was a trail, whatever is left of it */
    char key[2 * HEAD_KEY_SIZE +
             1];     /* which the newest head names, hexadecimal; "": there is none */
    uint64_t behind; /* records behind their trail's last head, in it or exported: only chained */
    uint64_t unfinished; /* bytes of a record that is being written, or was torn, at the end */
    /* the first finding when it is not good */
    char text[320];               /* a sentence */
    char file[SEGMENT_NAME_SIZE]; /* "" when no place can be named */
    uint64_t line, seq;           /* seq 0: none */
};

/*
 * dir: the log's directory. keys: NULL when there are none, which is a finding. head: exported
 * before, or NULL. ERR_SYSTEM (errno), ERR_MEMORY when it could not be read; else 0.
 */
MUST_USE int verify_log(int dir, const struct chain_keys *keys, const struct chain_head *head,
                        struct verify_report *out);

/*
 * The same of one file, wherever it was copied to, which may begin in the middle. keys NULL: signatures of heads are not checked; else
 * a trail without a signed head is a finding, since anybody can write one. It
 * may hold several whole trails, as `exeat run --log` appends them, unless a head is given, which is of one. ERR_MISSING:
 * there is no such file.
 */
MUST_USE int verify_file(const char *path, const struct chain_keys *keys,
                         const struct chain_head *head, struct verify_report *out);

#endif

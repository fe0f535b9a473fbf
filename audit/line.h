/*
 * Lines of audit.jsonl taken apart: a flat JSON object in exactly the form that audit writes
 * (docs/audit.md): no spaces between members, values that are strings or unsigned numbers, every
 * byte visible ASCII or SP, only \uXXXX as an escape. Pure; includes the operator's reader.
 */
#ifndef AUDIT_LINE_H
#define AUDIT_LINE_H

#include "base/bytes.h"

enum { LINE_MAX_BYTES = 128 * 1024 }; /* without its LF; no record is longer */

struct line {
    struct view rest;
    bool first, bad;
};

struct line_member {
    struct view name;
    struct view value; /* the inside of a string, still escaped; or digits */
    bool number;
    uint64_t number_is;
};

/* text: one line without its LF, borrowed. */
struct line line_of(struct view text);
/* The next member; false at the end, and then line.bad tells whether the text was malformed. */
bool line_next(struct line *l, struct line_member *out);
/* Finds one member by name. ERR_MISSING; ERR_BAD when malformed up to there. */
MUST_USE int line_find(struct view text, struct view name, struct line_member *out);

#endif

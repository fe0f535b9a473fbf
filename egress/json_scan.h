/*
 * Credential names in JSON (RFC 8259), strictly and in constant memory: the
 * members of the two outermost levels whose value is neither null nor false nor an empty
 * string, array or object: {"NAME":1}, {"user":{"NAME":"x"}}, [{"NAME":["x"]}].
 *
 * Deeper ones are not looked at: conversations with a model quote such names there. Of an array
 * or object the value reported is its beginning. Several documents in a row, with or
 * without white space between them (NDJSON), are scanned each. Malformed: what
 * RFC 8259 does not allow (but one byte order mark at the very beginning), NUL in such a
 * member's name (some parsers end it there), more than JSON_DEPTH levels.
 */
#ifndef EGRESS_JSON_SCAN_H
#define EGRESS_JSON_SCAN_H

#include "egress/body_member.h"
#include "policy/json_token.h"

enum { JSON_WATCHED = 2 };

struct json_scan {
    struct json_token token;
    struct body_member member;
    size_t depth;    /* levels whose names are looked at */
    bool watched;    /* the name is of an outermost level: kept in member */
    bool passes;     /* of the last name: its value is looked into, if it is an object */
    bool credential; /* the value that is due, or is read, has a credential's name */
    bool opened;     /* it is an array or object, whose first element or name is due */
    bool named;      /* a member's name was read, on whatever level: no other text looks so */
};

void json_scan_init(struct json_scan *s);
enum body_step json_scan_byte(struct json_scan *s, uint8_t c);
/* How many bytes at the beginning of v change nothing and are clear. */
size_t json_scan_skip(const struct json_scan *s, struct view v);
/* BODY_CLEAR when the input may end here. */
enum body_step json_scan_end(struct json_scan *s);

#endif

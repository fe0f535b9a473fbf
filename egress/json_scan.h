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

enum { JSON_DEPTH = 512, JSON_WATCHED = 2 };

enum json_state {
    JSON_START,
    JSON_MARK,          /* inside of a byte order mark */
    JSON_BETWEEN,       /* outside of any document */
    JSON_FIRST_ELEMENT, /* behind '[' */
    JSON_VALUE,         /* a value is due */
    JSON_FIRST_NAME,    /* behind '{' */
    JSON_NAME,          /* behind ',' in an object */
    JSON_COLON,
    JSON_AFTER, /* behind a value inside an array or object */
    JSON_STRING,
    JSON_ESCAPE,
    JSON_HEX,
    JSON_WORD, /* true, false, null */
    JSON_MINUS,
    JSON_ZERO,
    JSON_DIGITS,
    JSON_POINT,
    JSON_FRACTION,
    JSON_EXPONENT,
    JSON_EXPONENT_SIGN,
    JSON_EXPONENT_DIGITS,
};

struct json_scan {
    enum json_state state;
    struct body_member member;
    uint64_t is_object[JSON_DEPTH / 64]; /* a bit for each open level */
    size_t depth;
    bool in_name;    /* the string is a member's name */
    bool watched;    /* it is a name of an outermost level: kept in member */
    bool credential; /* the value that is due, or is read, has a credential's name */
    uint8_t n_mark, n_hex;
    uint16_t hex;
    const char *word; /* what is left of the word */
};

void json_scan_init(struct json_scan *s);
enum body_step json_scan_byte(struct json_scan *s, uint8_t c);
/* How many bytes at the beginning of v change nothing and are clear. */
size_t json_scan_skip(const struct json_scan *s, struct view v);
/* BODY_CLEAR when the input may end here. */
enum body_step json_scan_end(struct json_scan *s);

#endif

/*
 * The tokens of JSON (RFC 8259), byte by byte and in constant memory. Strict, but for what
 * its users say to: one byte order mark may stand at the very beginning, and several documents
 * may follow each other, with or without white space between them. Pure.
 */
#ifndef POLICY_JSON_TOKEN_H
#define POLICY_JSON_TOKEN_H

#include "base/bytes.h"

enum { JSON_DEPTH = 512 };

/* What a byte is. */
enum json_event {
    JSON_INSIDE, /* of what has begun, or between two tokens */
    JSON_MARK,   /* of a byte order mark */
    JSON_OPEN_OBJECT,
    JSON_OPEN_ARRAY,
    JSON_CLOSE, /* the innermost object or array */
    JSON_BEGIN_NAME,
    JSON_BEGIN_STRING,
    JSON_BYTE,       /* of the name or string, as it stands */
    JSON_UNIT,       /* of it, the last byte of an escape: token->unit is a UTF-16 code unit */
    JSON_END_STRING, /* or name */
    JSON_BEGIN_NUMBER,
    JSON_END_NUMBER, /* before this byte, which is to be fed once more */
    JSON_BEGIN_WORD, /* true, false, null: 't', 'f', 'n' */
    JSON_END_WORD,
    JSON_MALFORMED,
    JSON_TOO_DEEP, /* more than JSON_DEPTH levels */
};

enum json_state {
    JSON_AT_START,
    JSON_IN_MARK,
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
    JSON_WORD,
    JSON_MINUS,
    JSON_ZERO,
    JSON_DIGITS,
    JSON_POINT,
    JSON_FRACTION,
    JSON_EXPONENT,
    JSON_EXPONENT_SIGN,
    JSON_EXPONENT_DIGITS,
};

struct json_token {
    enum json_state state;
    uint64_t is_object[JSON_DEPTH / 64]; /* a bit for each open level */
    size_t depth;
    bool in_name;
    uint8_t n_mark, n_hex;
    uint16_t unit;
    const char *word; /* what is left of the word */
};

void json_token_init(struct json_token *t);
/* After JSON_MALFORMED and JSON_TOO_DEEP nothing more may be fed. */
enum json_event json_token_byte(struct json_token *t, uint8_t c);
/* How many bytes at the beginning of v would each be a JSON_BYTE. */
size_t json_token_plain(const struct json_token *t, struct view v);
/* Whether the input may end here; a number that is open ends with it. */
bool json_token_may_end(const struct json_token *t);

static inline bool json_token_in_string(const struct json_token *t) {
    return t->state >= JSON_STRING && t->state <= JSON_HEX;
}
/* Of a number or word. */
static inline bool json_token_in_scalar(const struct json_token *t) {
    return t->state >= JSON_WORD;
}
/* Whether the innermost open level is an object. */
static inline bool json_token_in_object(const struct json_token *t) {
    size_t level = t->depth - 1;
    return t->depth > 0 && (t->is_object[level / 64] >> level % 64 & 1);
}

#endif

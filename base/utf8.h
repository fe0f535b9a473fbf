/*
 * UTF-8 (RFC 3629), checked byte by byte: no overlong forms, no surrogates, nothing beyond U+10FFFF.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/bytes.h"

struct utf8 {
    uint8_t due;         /* bytes that are missing of a character */
    uint8_t least, most; /* what the next of them may be */
};

/* Zeroed is the beginning. False: c may not stand here. */
bool utf8_byte(struct utf8 *u, uint8_t c);
/* All of a text. */
bool utf8_is_text(struct view v);
/* Appends a code point, at most U+10FFFF and no surrogate. */
void utf8_put(struct buf *out, uint32_t point);

#endif

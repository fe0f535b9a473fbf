/*
 * Base64 (RFC 4648 section 4), strictly: canonical padding, zero spare bits, no blanks.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/bytes.h"

/* What a digit of base64 or of base64url stands for (0 to 63); -1: it is none. */
static inline int base64_value(uint8_t c) {
    if (is_alpha(c))
        return c >= 'a' ? c - 'a' + 26 : c - 'A';
    if (is_digit(c))
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Appends the decoded bytes. ERR_BAD for anything that base64_encode would not have written. */
MUST_USE int base64_decode(struct view v, struct buf *out);
void base64_encode(struct view v, struct buf *out);

#endif

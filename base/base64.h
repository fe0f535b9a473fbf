/*
 * Base64 (RFC 4648 section 4), strictly: canonical padding, zero spare bits, no blanks.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/bytes.h"

/* Appends the decoded bytes. ERR_BAD for anything that base64_encode would not have written. */
MUST_USE int base64_decode(struct view v, struct buf *out);
void base64_encode(struct view v, struct buf *out);

#endif

/*
 * Writing JSON (RFC 8259) on the way out; reading it is jansson's or inspect's work.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/bytes.h"

/*
 * A string with its quotes, ASCII only: control characters, DEL, '"', '\' and '<' escaped;
 * each byte above 0x7f becomes \u00XX, so that hostile bytes stay visible and harmless.
 */
void json_put_string(struct buf *out, struct view v);
/* "name":"value" preceded by a comma unless the last byte put is '{' or '['. */
void json_put_text(struct buf *out, const char *name, struct view value);
void json_put_number(struct buf *out, const char *name, uint64_t value);

#endif

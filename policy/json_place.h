/*
 * Where in a JSON document a value is.
 */
#ifndef POLICY_JSON_PLACE_H
#define POLICY_JSON_PLACE_H

#include "base/bytes.h"

/* The offset of the value that pointer (RFC 6901, of plain names and numbers) leads to, or of the last one on the way to it. */
size_t json_place(struct view json, struct view pointer);

#endif

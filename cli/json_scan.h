/*
 * Finding things in JSON that the daemon wrote (base/json.h). Pure; views point into
 * the text. Not a validator: what is not of the expected form is not found.
 */
#ifndef CLI_JSON_SCAN_H
#define CLI_JSON_SCAN_H

#include "base/bytes.h"

/* What stands between an array's brackets; empty for anything else. */
struct view json_elements(struct view value);
/* Walks the elements of an array: start with *rest = json_elements(value). False at the end or when malformed. */
bool json_element(struct view *rest, struct view *element);
/* The raw value of an object's member; of several of that name the last, as JSON is read elsewhere. */
bool json_member(struct view object, const char *name, struct view *value);
/* Appends a string's text without quotes and escapes; other values as they are. */
void json_text(struct view value, struct buf *out);
/* A string without escapes, without its quotes; false for anything else. */
bool json_word(struct view value, struct view *word);

#endif

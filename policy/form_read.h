/*
 * Reads a form (application/x-www-form-urlencoded), or a query written like one, and collects the values
 * of fields that pointers lead to: "a" is /a, "a[b][c]" is /a/b/c and, as one name, /a[b][c]. "a[]" is an item
 * whose index is not certain. "a.b" is /a/b alike, and "a[b]" is /a alike.
 *
 * It is read only if all readers read it alike: it does not begin like JSON; no ';' (which parts fields for some), sound percent-encodings, UTF-8 and no NUL
 * once decoded, brackets in pairs. Pure.
 */
#ifndef POLICY_FORM_READ_H
#define POLICY_FORM_READ_H

#include "policy/json_read.h"

/* The values' text goes to `text`. */
enum body_fault form_read(struct view form, struct json_finds *finds, struct buf *text);
/* Takes the next field off *rest: decoded into text, where the views stand until it changes. False at the end, or with *fault. */
bool form_field(struct view *rest, struct buf *text, struct view *name, struct view *value,
                enum body_fault *fault);

#endif

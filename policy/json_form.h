/*
 * The JSON form of a policy (docs/policy.md, "The JSON form"): the same statements, words and comments as its text, one to
 * one, made from what `fmt` prints from (layout.h), so that it knows no word of the language. The form is turned into text,
 * which is then read as any other. One of the two homes of jansson.
 */
#ifndef POLICY_JSON_FORM_H
#define POLICY_JSON_FORM_H

#include "policy/errors.h"

enum { JSON_FORM_MAX = 8 << 20 /* bytes: of JSON that is read */ };

/* Whether this is meant as JSON: it begins with a '{', as no text of a policy does. */
bool json_form_is(struct view text);
/* Appends the JSON form of a text of which no file is included. ERR_BAD with the errors of the text, ERR_MEMORY. */
MUST_USE int json_form_write(struct view text, const char *file, struct buf *out,
                             struct policy_errors *errors);
/* Appends the text, in its canonical layout. ERR_BAD with errors, whose places are those in the JSON. ERR_MEMORY. */
MUST_USE int json_form_read(struct view json, const char *file, struct buf *out,
                            struct policy_errors *errors);
/* Moves errors of this file, found in the text that json_form_read made of it, to their places in the JSON. */
void json_form_place(struct view json, const char *file, struct policy_errors *errors);

#endif

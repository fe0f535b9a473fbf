/*
 * What stands in a body where a service reads a credential, as material (P7). Pure.
 */
#ifndef POLICY_BODY_CREDENTIAL_H
#define POLICY_BODY_CREDENTIAL_H

#include "policy/body_facts.h"
#include "policy/provenance.h"

/* Finds out which strings and texts the body says just as they are: sets `as_sent`. */
void body_values_compare(struct body_value *values, size_t n, struct view body);

/*
 * Adds a material for each value that stands in one of the places watched: facts in terms of the policy's
 * pointers, and the body that they are of. Nothing, null, false and an empty string are none. What is no
 * string, is spelled with escapes (percent-encoding in a form is none), or stands under a name that is only like the
 * place's, is malformed. A body that was read and is unclear may hold anything: m overflows, if there are such places.
 */
void body_credentials(const struct body_facts *f, const struct watched *watched, struct view body,
                      struct materials *m);

#endif

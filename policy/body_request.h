/*
 * What of a request's head matters to what its body says. Pure.
 */
#ifndef POLICY_BODY_REQUEST_H
#define POLICY_BODY_REQUEST_H

#include "policy/body_read.h"
#include "policy/field.h"
#include "policy/target.h"

/*
 * What is to be read of a request: its body by its one Content-Type, if it is not coded; without a body the
 * target's query. False: nothing that is read (BODY_UNREAD).
 */
bool body_source_find(const struct field *fields, size_t n, bool has_body, enum body_source *out);
/*
 * Servers of GraphQL look into the target, too, some of them first: where it may hold a request of its
 * own, that of the body is not certain.
 */
void body_facts_doubt(struct body_facts *f, bool has_body, const struct target *t);

#endif

/*
 * Fields that are exeat's own affair: they belong to the connection, to
 * framing, to who asks and what is asked. No credential can stand in them.
 */
#ifndef POLICY_OWN_FIELD_H
#define POLICY_OWN_FIELD_H

#include "base/bytes.h"

/*
 * Names are compared as APIs do (credential_name_same): `X_Forwarded_For` is the field that CGI and the
 * frameworks make of it (HD-03).
 */
bool own_field_is(struct view name);
/*
 * Whether it never leaves a sandbox (HD, PN-09): it claims an identity, a way, or another request
 * than the one that was judged. Hop-by-hop fields are not among them, http/ has taken them out.
 */
bool own_field_is_removed(struct view name);
/* Whether it names a second resource, of which the request's target says nothing: X-Amz-Copy-Source, Destination. */
bool own_field_names_target(struct view name);

#endif

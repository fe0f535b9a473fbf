/*
 * Fields that are exeat's own affair: they belong to the connection, to
 * framing, to who asks and what is asked. No credential can stand in them.
 */
#ifndef POLICY_OWN_FIELD_H
#define POLICY_OWN_FIELD_H

#include "base/bytes.h"

/* Compares as credential_name_same does. */
bool own_field_is(struct view name);
/*
 * Whether that very name (lower-case) is one of those that never leave a sandbox (HD, PN-09): what
 * claims an identity, a way, or another request than the one that was judged. Hop-by-hop fields are
 * not among them, http/ has taken them out.
 */
bool own_field_is_removed(struct view name);

#endif

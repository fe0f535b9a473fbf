/*
 * Domains under which anybody can have a host: public suffixes, and those of
 * hosting, storage and tunnels. A star over one covers hosts of strangers, an
 * attacker's among them.
 */
#ifndef POLICY_SUFFIX_H
#define POLICY_SUFFIX_H

#include "base/bytes.h"

/*
 * Whether hosts right below the name may be anybody's: it is a single label, in the public suffix
 * list (the one that libpsl was built with; both its parts), or in a list of our own. With deep, also whether there
 * is such a domain further below that our own list knows. name is canonical.
 */
bool suffix_is_shared(struct view name, bool deep);

#endif

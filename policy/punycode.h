/*
 * Names of hosts for people to read: A-labels with the letters that they stand for (RFC 3492). What a name means is
 * never decided by them: a host is compared, resolved and verified as it is (policy/authority.h).
 */
#ifndef POLICY_PUNYCODE_H
#define POLICY_PUNYCODE_H

#include "base/bytes.h"

/*
 * Appends the canonical name in UTF-8, and is true where that differs from it. A label that is no
 * punycode stays as it is.
 */
bool punycode_show(struct view name, struct buf *out);

#endif

/*
 * Internationalised names of hosts in texts of operators (IDNA 2008, RFC 5890 to 5892): U-labels to A-labels. The one
 * home of libidn2. Requests are never converted: a host outside ASCII is refused there (policy/authority.h).
 */
#ifndef POLICY_IDNA_H
#define POLICY_IDNA_H

#include "base/bytes.h"

/*
 * Appends name with each label outside ASCII as an A-label; stars and other labels stay as they are. Nothing is mapped: a
 * U-label is in lower case and NFC as it is written. Refused is a label that is not valid, also an A-label, one that
 * mixes scripts (Latin and Cyrillic, say; Han goes with kana, hangul and bopomofo), and one in a script that is not known here.
 * ERR_BAD: *why is a static sentence fragment.
 */
MUST_USE int idna_to_ascii(struct view name, struct buf *out, const char **why);

#endif

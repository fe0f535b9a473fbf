/*
 * A header field (RFC 9110 5), as messages, facts and trials hold it.
 */
#ifndef POLICY_FIELD_H
#define POLICY_FIELD_H

#include "base/bytes.h"

struct field {
    struct view name;  /* lower-case token */
    struct view value; /* OWS trimmed; visible ASCII, SP, HTAB and obs-text only */
};

#endif

/*
 * Credential names in application/x-www-form-urlencoded, in constant memory:
 * pairs whose value is not empty. Pairs are split at '&', and at ';' as some
 * servers do. "NAME[x]=" counts. Names are percent-decoded, also "%u0061" (.NET, Perl); '+' is SP.
 *
 * Read leniently, as servers do, and because clients call files forms (curl --data-binary): any
 * bytes are a form. A bad percent-encoding stands for itself, NUL and bytes from 0x80 are bytes of
 * a name like others. Blanks and controls at a name's beginning do not count. BODY_BAD only for
 * what body_member.h says of names that are too long.
 */
#ifndef EGRESS_FORM_SCAN_H
#define EGRESS_FORM_SCAN_H

#include "egress/body_member.h"

enum form_state {
    FORM_NAME,
    FORM_ESCAPE, /* in a name, behind '%' */
    FORM_VALUE,
    FORM_CREDENTIAL, /* the value of a credential */
};

struct form_scan {
    enum form_state state;
    struct body_member member;
    uint8_t escape[6]; /* an encoding as far as it has come: "%u" and four digits at most */
    size_t n_escape;
};

void form_scan_init(struct form_scan *s);
enum body_step form_scan_byte(struct form_scan *s, uint8_t c);
/* How many bytes at the beginning of v change nothing and are clear. */
size_t form_scan_skip(const struct form_scan *s, struct view v);
/* BODY_CLEAR, BODY_FOUND or BODY_BAD. */
enum body_step form_scan_end(struct form_scan *s);

#endif

/*
 * Credential names in application/x-www-form-urlencoded, in constant memory:
 * pairs whose value is not empty. Pairs are split at '&', and at ';' as some
 * servers do. "NAME[x]=" counts. Names are percent-decoded, '+' is SP; SP at their beginning does
 * not count (PHP). Malformed: a bad percent-encoding or NUL in a name.
 */
#ifndef EGRESS_FORM_SCAN_H
#define EGRESS_FORM_SCAN_H

#include "egress/body_member.h"

enum form_state {
    FORM_NAME,
    FORM_NAME_HIGH, /* behind '%' */
    FORM_NAME_LOW,
    FORM_VALUE,
    FORM_CREDENTIAL, /* the value of a credential */
};

struct form_scan {
    enum form_state state;
    struct body_member member;
    int high; /* first digit of an encoded byte */
};

void form_scan_init(struct form_scan *s);
enum body_step form_scan_byte(struct form_scan *s, uint8_t c);
/* How many bytes at the beginning of v change nothing and are clear. */
size_t form_scan_skip(const struct form_scan *s, struct view v);
/* BODY_CLEAR, BODY_FOUND or BODY_BAD. */
enum body_step form_scan_end(struct form_scan *s);

#endif

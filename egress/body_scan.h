/*
 * Looks through a request's body, in pieces of any size, for fields that an API
 * would read as a credential (P7, PV-02). The verdict does not depend on where
 * the body is cut; memory is constant, time linear. Pure.
 *
 * A byte counts as clear once it can be sent on: all names before it were
 * decided and it is not part of one that is open, nor of a value of a name
 * that is a credential's.
 */
#ifndef EGRESS_BODY_SCAN_H
#define EGRESS_BODY_SCAN_H

#include "egress/body_member.h"
#include "policy/media_type.h"

/* A body that leaves more bytes than this undecided is refused (white space between name and value). */
enum { BODY_HELD_MAX = 16 * 1024 };

struct body_scan;

/*
 * A body of BODY_JSON_UNSAID that is malformed before any member's name has ended is no JSON: it is clear. What media_type_lead
 * knows may stand before it; in UTF-16 and UTF-32 it is malformed behind the first name.
 * boundary: of BODY_MULTIPART, else not looked at. names: copied; NULL: none beside those that are known. ERR_BAD
 * when the boundary is not one, ERR_MEMORY.
 */
MUST_USE int body_scan_new(enum body_kind kind, struct view boundary,
                           const struct body_names *names, struct body_scan **out);
void body_scan_free(struct body_scan *s);

/* BODY_CLEAR (so far), BODY_FOUND or BODY_BAD; the last two are final. */
enum body_step body_scan_feed(struct body_scan *s, struct view piece);
/* The body has ended: BODY_CLEAR when all of it is clean. */
enum body_step body_scan_end(struct body_scan *s);

/* How many bytes from the body's beginning are clear. */
uint64_t body_scan_clear(const struct body_scan *s);
/* After BODY_FOUND: the decoded name, and the value's beginning as it was sent. */
struct view body_scan_name(const struct body_scan *s);
struct view body_scan_value(const struct body_scan *s);
/* After BODY_BAD. */
const char *body_scan_why(const struct body_scan *s);

#endif

/*
 * What a request's Content-Type and the first byte of its body say about how
 * an API will read that body, and so which scan it needs (P7). Pure.
 *
 * Parsed strictly (RFC 9110 8.3.1): `type/subtype *( OWS ; OWS name=value )`.
 * Servers read what is not of this form in ways of their own, some up to a comma,
 * some up to a blank, and some look for the word "boundary" anywhere. So these are
 * malformed, too: a wildcard, a name with '*', a quoted string with '\' or ';', a
 * boundary or charset given twice, and for multipart another parameter in whose name
 * or value the word boundary stands.
 */
#ifndef EGRESS_MEDIA_TYPE_H
#define EGRESS_MEDIA_TYPE_H

#include "egress/inspect_messages.h"
#include "policy/reason.h"

struct media_scan {
    bool wanted;
    enum inspect_job job; /* one of those that look for credentials */
    struct view boundary; /* of INSPECT_MULTIPART, else empty; points into the value */
};

/* How many bytes at the body's beginning may stand before JSON's first. */
size_t media_type_lead(struct view body);

/*
 * value: of Content-Type, empty where there is none. post: the method is POST. first: the body's first byte behind
 * its lead. REASON_ALLOWED, REASON_MALFORMED_REQUEST, or REASON_BODY_CODING for
 * a charset in which ASCII names may be written otherwise (utf-7, utf-16, ibm037).
 *
 * JSON: a subtype that has "json" in it, and what begins with '{' or '[' when it has no type or
 * one that some APIs read as JSON whatever it is called: text/plain, forms. Forms: what is called one, and
 * what has no type in a POST (Rack reads it as a form; files are uploaded by PUT without one); where
 * that begins like JSON, it is looked at as both. Any multipart. Of other types nothing is looked at.
 */
enum reason media_type_choose(struct view value, bool post, uint8_t first, struct media_scan *out);

#endif

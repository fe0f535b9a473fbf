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
#ifndef POLICY_MEDIA_TYPE_H
#define POLICY_MEDIA_TYPE_H

#include "policy/field.h"
#include "policy/reason.h"

enum body_kind {
    BODY_JSON,
    BODY_FORM,
    BODY_MULTIPART,
    BODY_JSON_OR_FORM, /* read by some servers as the one, by some as the other: both count */
    BODY_JSON_UNSAID,  /* of another type: JSON to servers that disregard types */
};

struct media_scan {
    bool wanted;
    enum body_kind kind;
    struct view boundary; /* of BODY_MULTIPART, else empty; points into the value */
};

enum { BOUNDARY_MAX = 70 };

/* 1 to 70 characters, no blank at the end (RFC 2046 5.1.1). */
bool media_type_is_boundary(struct view v);

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
 * that begins like JSON, it is looked at as both. Any multipart. Of other types only what begins with
 * '{' or '[' is looked at, and is JSON once a member's name stands in it: many servers disregard types.
 */
enum reason media_type_choose(struct view value, bool post, uint8_t first, struct media_scan *out);
/* Whether a Content-Encoding says something else than identity. */
bool media_type_is_coded(const struct field *fields, size_t n);
/*
 * The same by a request's fields; REASON_BODY_CODING also for a body that is coded and would have to be looked at, or
 * would if it began like JSON once it is decoded.
 */
enum reason media_type_judge(const struct field *fields, size_t n, struct view method,
                             uint8_t first, struct media_scan *out);

#endif

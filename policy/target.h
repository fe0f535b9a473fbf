/*
 * Request targets: path and query made canonical once (PN, promise P4). The
 * canonical bytes are matched and sent; a path with more than one plausible
 * reading is refused.
 *
 * Refused: bytes outside 0x21 to 0x7e, '#', '\', a bad percent-encoding. In the
 * path also an encoded NUL, control, '/' or '\', an encoding of an encoding ("%2561"),
 * overlong UTF-8 ("%C0%AF"), dot segments and empty segments, also encoded and
 * also when only ';' parameters follow ("/..;x/", "/;x/"), and segments or parts of them that become dots once
 * a server has stripped blanks, folded letters or parsed once more ("/..%20/", "/.../", "/..%3Fx/",
 * "/%EF%BC%8E%EF%BC%8E/"). In the query also an
 * encoded control character, but for TAB, CR and LF in a value.
 * Rewritten: a literal segment "." is taken out ("/./a" is "/a", "/a/." is "/a/"), as clients and servers
 * do alike; a percent-encoded unreserved character is decoded, other encodings get
 * upper-case digits. An empty path becomes "/". A canonical target is its own
 * canonical form, and but for an empty path never longer than what it was made of.
 *
 * A reserved character and its encoding stay two spellings ('@' and "%40"), as RFC 3986 2.2
 * wants, and both are sent as they are. Who compares a segment with a text decodes it first.
 */
#ifndef POLICY_TARGET_H
#define POLICY_TARGET_H

#include "base/bytes.h"

enum { SEGMENTS_MAX = 1024 };

struct target {
    struct view path;  /* starts with '/'; "*" only where a caller set it for OPTIONS * */
    struct view query; /* without '?'; has_query says whether there was one */
    bool has_query;
    uint16_t n_segments; /* "/a/b" has 2, "/a/b/" has 2 and trailing_slash, "/" has 0 */
    bool trailing_slash; /* false for "/" */
    /* Only services that say so may have these (`path allow`). */
    bool encoded_slash; /* a segment holds "%2F" */
    bool parameters;    /* a segment holds ';' or "%3B" */
};

/*
 * Reads an origin-form target (path and optional query, RFC 9112 3.2.1) and
 * appends the canonical bytes to out, into which the views of *t point; they
 * hold until out changes. max_segments of at most SEGMENTS_MAX. ERR_BAD; ERR_LIMIT for
 * too many segments or when out has no room for raw.n + 1 bytes; *why, if not NULL, is then a
 * static sentence fragment. Nothing was appended then. "*" is ERR_BAD.
 */
MUST_USE int target_parse(struct view raw, size_t max_segments, struct buf *out, struct target *t,
                          const char **why);
/*
 * The same, and an encoded slash may stand in the path ("%2F", PN-03): it is sent as it is, and belongs to its
 * segment; what it parts must be no dot segment and not empty either.
 */
MUST_USE int target_parse_slashed(struct view raw, size_t max_segments, struct buf *out,
                                  struct target *t, const char **why);

/* Walks segments of a canonical path: the next one without its '/', false at the end. Start with *rest = path. */
bool target_segment(struct view *rest, struct view *segment);

/*
 * Walks the query's pairs: split at '&' only, then at the first '='. Raw views, not decoded;
 * pairs of no bytes are left out.
 * False at the end. Start with *rest = query.
 */
bool target_pair(struct view *rest, struct view *name, struct view *value);

/*
 * Percent-decodes v (and '+' as SP when plus) once and appends to out. ERR_BAD on a bad encoding,
 * ERR_LIMIT when out has no room for v.n bytes; nothing was appended then.
 */
MUST_USE int percent_decode(struct view v, bool plus, struct buf *out);
/* The same into memory of the caller's; false when it is badly encoded or does not fit. */
bool percent_decode_into(struct view v, bool plus, uint8_t *out, size_t size, struct view *decoded);

#endif

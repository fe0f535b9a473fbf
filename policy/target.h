/*
 * Request targets: path and query made canonical once (PN, promise P4). The
 * canonical bytes are matched and sent; a path with more than one plausible
 * reading is refused.
 *
 * Refused: bytes outside 0x21 to 0x7e, '#', '\', a bad percent-encoding, an
 * encoded NUL, control, '/' or '\', encoded '%25' that decodes to another
 * encoding, dot segments (also encoded, also with ';' parameters), empty
 * segments. Rewritten: a percent-encoded unreserved character is decoded,
 * other encodings get upper-case digits. An empty path becomes "/".
 */
#ifndef POLICY_TARGET_H
#define POLICY_TARGET_H

#include "base/bytes.h"

enum { SEGMENTS_MAX = 1024 };

struct target {
    struct view path;  /* starts with '/' ; "*" only when allowed by asterisk */
    struct view query; /* without '?'; has_query says whether there was one */
    bool has_query;
    uint16_t n_segments; /* "/a/b" has 2, "/a/b/" has 2 and trailing_slash, "/" has 0 */
    bool trailing_slash;
};

/*
 * Reads an origin-form target (path and optional query, RFC 9112 3.2.1) and
 * appends the canonical bytes to out, into which the views of *t point; they
 * hold until out changes. max_segments of at most SEGMENTS_MAX. ERR_BAD with
 * *why a static sentence fragment; ERR_LIMIT.
 */
MUST_USE int target_parse(struct view raw, size_t max_segments, struct buf *out, struct target *t,
                          const char **why);

/* Walks segments of a canonical path: the next one without its '/', false at the end. Start with *rest = path. */
bool target_segment(struct view *rest, struct view *segment);

/*
 * Walks the query's pairs: split at '&' only, then at the first '='. Raw views, not decoded.
 * False at the end. Start with *rest = query.
 */
bool target_pair(struct view *rest, struct view *name, struct view *value);

/* Percent-decodes v (and '+' as SP when plus) into out. ERR_BAD on a bad encoding. */
MUST_USE int percent_decode(struct view v, bool plus, struct buf *out);

#endif

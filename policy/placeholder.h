/*
 * Placeholders: what a sandbox holds in place of a secret.
 *
 *   prefix  "exeat"  25 random characters  6 check characters
 *
 * The prefix is the one the real key has ("sk-ant-"), so that SDKs accept it.
 * Random and check characters are of [0-9A-Za-z]: 148 random bits, and a
 * CRC-32 of them in base 62, so that a placeholder can be told in any text
 * without knowing it, and a near miss is not one. The marker makes it plain to
 * people and scanners that this is no live key. Whose it is and for what, only
 * the SHA-256 fingerprint in the registry says (policy/bundle.h).
 */
#ifndef POLICY_PLACEHOLDER_H
#define POLICY_PLACEHOLDER_H

#include "base/bytes.h"

enum {
    PLACEHOLDER_MARKER_SIZE = 5,
    PLACEHOLDER_RANDOM_SIZE = 25,
    PLACEHOLDER_CHECK_SIZE = 6,
    PLACEHOLDER_CORE_SIZE = 36, /* without the prefix */
    PLACEHOLDER_PREFIX_MAX = 60,
    PLACEHOLDER_SIZE = 97, /* with prefix and NUL */
    PLACEHOLDER_TAIL_SIZE = 512,
};

/*
 * Writes a placeholder with the prefix ([A-Za-z0-9_-.:] only, at most
 * PLACEHOLDER_PREFIX_MAX, without the marker). random gives 32 uniformly random bytes. ERR_BAD for the prefix.
 */
MUST_USE int placeholder_make(struct view prefix, const uint8_t random[32],
                              char out[PLACEHOLDER_SIZE]);
/* Whether v, as a whole, is a prefix (perhaps empty) and a core whose check holds. */
bool placeholder_is(struct view v);
/* Whether v, as a whole, is the marker, 25 characters, and their check. */
bool placeholder_is_core(struct view v);

/*
 * Whether a placeholder of anybody is somewhere in v: as it is, percent-encoded
 * (once or twice), JSON-escaped (also JSON inside JSON), as HTML character references, in
 * hexadecimal, in UTF-16, or inside base64 or base64url of any alignment, also
 * in lines (PH-07). Escapes may be mixed with plain characters. Each spelling is looked
 * for alone: base64 of hexadecimal is not found, and harmless, since a placeholder
 * is worth nothing to anybody but the sandbox that holds it.
 */
bool placeholder_inside(struct view v);

/*
 * Whether a field's name holds what a placeholder becomes there: the case of its letters, and with
 * it the check, is lost.
 */
bool placeholder_inside_name(struct view name);

/*
 * The same over a stream in pieces of any size. Keeps the last bytes of what it
 * has seen, so that a placeholder cut anywhere is found by the piece that ends it.
 */
struct placeholder_stream {
    uint8_t tail[PLACEHOLDER_TAIL_SIZE];
    size_t n;
};
void placeholder_stream_init(struct placeholder_stream *s);
/* True once one was found; the caller must not pass this piece on. */
bool placeholder_stream_feed(struct placeholder_stream *s, struct view piece);
/*
 * How many bytes at the end of what was fed must be held back until more is
 * known: from the beginning of a marker, in some spelling, whose placeholder
 * is not complete yet; 0 is usual. May be more than the caller still has, since part of
 * the marker may have left before the marker was one: then all is held. At
 * the end of the stream what is held is no placeholder and may leave. So neither a
 * whole placeholder nor one of its random characters is ever passed on.
 *
 * Nothing is held for the beginning of a marker: any text may end in "e", and its reader
 * may be waiting for it.
 */
size_t placeholder_stream_held(const struct placeholder_stream *s);

#endif

/*
 * Spellings: the forms in which an upstream can give a secret back (promise P8).
 *
 * Pure. Each kind is one way of writing bytes: as they are; base64 in both
 * alphabets and at each of the three alignments; percent-encoding as the usual
 * libraries do it, and of every byte, once and twice; JSON strings and HTML text
 * likewise; hexadecimal; UTF-16 in both orders; in upper and in lower case, which
 * loses little of a key. Kinds that write a given secret alike are told apart by nobody: the
 * guard keeps one of them. Bytes outside ASCII are escaped byte by byte.
 */
#ifndef EGRESS_SPELLING_H
#define EGRESS_SPELLING_H

#include "base/bytes.h"

enum {
    SPELLINGS = 49,      /* kinds are 0 (as it is) to SPELLINGS - 1 */
    SPELLING_GROWTH = 6, /* no kind writes more bytes than this for one of the secret's */
};

/* "base64 at 1", "percent upper", ... Static. */
const char *spelling_name(size_t kind);

/*
 * Writes the secret; out holds SPELLING_GROWTH times its length. Returns how
 * many bytes were written. For base64 these are the characters that depend on
 * nothing but the secret.
 */
size_t spelling_write(size_t kind, struct view secret, uint8_t *out);

/* How many bytes of the spelling stand before all that belong to secret[i..). */
size_t spelling_offset(size_t kind, struct view secret, size_t i);

/* How many bytes of the spelling a run of `run` bytes of the secret takes, wherever it begins. */
size_t spelling_run(size_t kind, struct view secret, size_t run);

/* Whether a character just before (after) the spelling holds a few bits of the secret as well. */
bool spelling_leans_before(size_t kind);
bool spelling_leans_after(size_t kind, struct view secret);

/*
 * How many bytes at the beginning of a secret must be taken for known to
 * everybody, because its format says them: `prefix` bytes that the placeholder
 * shows, what comes before the last '.' (a token's header and claims can be
 * guessed, its signature cannot), before the last of "-_:" in its first three
 * fifths (team and key ids), and a quarter of it in any case. At least `run`
 * bytes are left over, or all when it is shorter.
 */
size_t spelling_public_head(struct view secret, size_t prefix, size_t run);

#endif

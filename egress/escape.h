/*
 * Escapes: several bytes that a writer put in the place of one, because of what the text is in: a URL, a string of
 * JSON or a program, a shell's command, HTML, SQL. There are more writers than spellings in a table
 * (egress/spelling.h), and some escape what others leave; so the guard looks at a text with its escapes undone as well.
 * Pure; what an escape is depends on the text alone.
 *
 * An escape is one of these, not for NUL:
 *   - "%2F" in either case, and "%u002f";
 *   - "\x2f", "\057", "\u002f", "\u{2f}", "\U0000002f", and a backslash before any visible character that is no
 *     letter or digit;
 *   - "&#47;", "&#047;", "&#x2F;", and the names that XML and HTML have for ASCII ("&apos;", "&sol;");
 * where a code point is one ("\u00e4", "&#228;"), up to U+FFFF, for its UTF-8;
 *   - a quote that is doubled, and what a shell makes of one inside of quotes: '\'' and '"'"'.
 */
#ifndef EGRESS_ESCAPE_H
#define EGRESS_ESCAPE_H

#include "base/bytes.h"

/*
 * Writes text with its escapes undone, once, to out, which has room for all of it, and returns the length. Where
 * that is less than text.n, gone (one a byte of text) says which bytes have none in out: the last ones of an escape,
 * whose first ones are those that it stands for.
 */
size_t escape_undo(struct view text, uint8_t *out, bool *gone);
/* Whether an escape begins in [from, to) of text. */
bool escape_begins(struct view text, size_t from, size_t to);

enum {
    ESCAPE_MAX = 11,      /* bytes of one: "&#x", digits and ";" */
    ESCAPE_BYTES_MAX = 3, /* that it stands for */
};

#endif

/*
 * Folds: line breaks that a writer put inside of one encoded word, as MIME and PEM do in base64, dumps
 * in hexadecimal, quoted-printable in anything. The guard looks at a text with its folds taken out as
 * well (egress/guard.h). Pure; what a fold is depends on the text alone, wherever it is cut.
 *
 * A fold is one of these, with up to FOLD_BLANKS_MAX blanks behind it:
 *   - CRLF, LF or CR behind FOLD_WIDTH or more visible characters, of which the last closes nothing
 *     (quotes, brackets, a comma), so that lines of JSON, XML and text flow; unless a line end
 *     follows: an empty line ends what stands before it, so that event streams flow;
 *   - the same behind a "=" (RFC 2045 6.7), which belongs to it;
 *   - a line end in JSON ("\n", "\r\n", "\r", also inside of a string in a string) or in percent
 *     form ("%0D%0A", "%0A", "%0D").
 */
#ifndef EGRESS_FOLD_H
#define EGRESS_FOLD_H

#include "base/bytes.h"

enum {
    FOLD_WIDTH = 16,
    FOLD_BLANKS_MAX = 32,
};

/*
 * Writes text without its folds to out, which has room for all of it, and returns the length. Where
 * that is less than text.n, gone (one a byte of text) says which bytes were taken out.
 */
size_t fold_remove(struct view text, uint8_t *out, bool *gone);

/* How many bytes just before text[end] are line end and blanks of a fold that end there; 0: none. */
size_t fold_before(struct view text, size_t end);

#endif

/*
 * Credential names in multipart/form-data (RFC 7578, RFC 2046) and any other multipart,
 * which some servers read alike, strictly and in constant memory: parts whose content is
 * not empty. Names count as they are and percent-decoded. A part without one has its file's
 * name or its Content-ID (Rack). What is inside of a part is not looked at.
 *
 * Parsers differ, so what two of them could read differently is malformed: the
 * boundary anywhere but at the start of a line ended by CRLF and followed by
 * CRLF or "--", anything before the first or behind the last delimiter (a
 * CRLF is fine), a part's head with a bare CR or LF, NUL, folded lines, more
 * than MULTIPART_HEAD bytes, two of Content-Disposition, of Content-ID or of name,
 * "name*", "name*0", a name that is an encoded word or "_charset_", or a backslash before
 * a quote.
 *
 * A part of type application/http is a request of its own, as batch interfaces take them: refused.
 *
 * A signed upload form (PV-05) is found by the fields that carry the signer
 * (x-amz-credential, AWSAccessKeyId, ...); what these names are is for
 * policy/credential_name.c to say, and "key" there is an object's key.
 */
#ifndef EGRESS_MULTIPART_SCAN_H
#define EGRESS_MULTIPART_SCAN_H

#include "egress/body_member.h"
#include "policy/media_type.h"

enum { DELIMITER_MAX = BOUNDARY_MAX + 4, MULTIPART_HEAD = 8192 };

enum multipart_state {
    MULTIPART_START,     /* before the first delimiter */
    MULTIPART_DELIMITER, /* behind one: CRLF or "--" */
    MULTIPART_HEADERS,
    MULTIPART_CONTENT,
    MULTIPART_CLOSED, /* behind the last delimiter */
};

/* A search for CR LF "--" boundary, or without its first two bytes. */
struct delimiter {
    uint8_t text[DELIMITER_MAX];
    uint8_t back[DELIMITER_MAX]; /* how much still matches when the next byte does not */
    uint8_t n, at;
};

struct multipart_scan {
    enum multipart_state state;
    struct body_member member;
    struct delimiter line; /* with its CRLF */
    struct delimiter bare;
    bool credential; /* the content is a credential's */
    uint8_t pair[2]; /* the last bytes behind a delimiter */
    uint8_t n_pair;
    uint8_t head[MULTIPART_HEAD];
    size_t n_head;
    uint8_t content[BODY_VALUE_MAX + DELIMITER_MAX]; /* of a credential's */
    size_t n_content;
};

/* ERR_BAD when the boundary is not one. */
MUST_USE int multipart_scan_init(struct multipart_scan *s, struct view boundary);
enum body_step multipart_scan_byte(struct multipart_scan *s, uint8_t c);
/* How many bytes at the beginning of v change nothing and are clear. */
size_t multipart_scan_skip(const struct multipart_scan *s, struct view v);
/* BODY_CLEAR when the input may end here. */
enum body_step multipart_scan_end(struct multipart_scan *s);

#endif

/*
 * The first gate in front of HTTP/1's parser: a check of every byte of heads,
 * trailers and chunk lines that knows only what RFC 9112 requires, and none of
 * what it lets a recipient tolerate. CRLF ends a line and nothing else does; no
 * folding, no blank before a colon, no version but 1.0 and 1.1.
 *
 * Pure and incremental: each byte is looked at once, however the input is cut,
 * and the verdict does not depend on the cuts.
 */
#ifndef HTTP_STRICT_H
#define HTTP_STRICT_H

#include "base/bytes.h"

enum { METHOD_MAX = 32 };

/* ---- heads and trailers ---- */

enum strict_kind { STRICT_REQUEST, STRICT_ANSWER, STRICT_TRAILERS };

struct strict_head {
    enum strict_kind kind;
    int state;
    size_t at;     /* bytes that were checked */
    size_t part;   /* bytes of the current part: method, target, name ... */
    size_t fields; /* field lines begun */
    size_t max_bytes, max_target, max_fields;
    uint16_t status; /* after a refusal: 400, 414 or 431 */
    const char *why; /* static sentence fragment */
};

void strict_head_init(struct strict_head *s, enum strict_kind kind, size_t max_bytes,
                      size_t max_target, size_t max_fields);
/*
 * input starts with the head's first byte and is the same as last time, with
 * more behind (less than last time is ERR_AGAIN). 0: whole, s->at bytes with the empty line. ERR_AGAIN. ERR_BAD: status and why are set.
 */
MUST_USE int strict_head_scan(struct strict_head *s, struct view input);

/*
 * Splits the first field line off lines that were checked: name as sent, value
 * without blanks around it. False at the empty line, which is then split off as well.
 */
bool strict_field(struct view *lines, struct view *name, struct view *value);

/* ---- chunked bodies (RFC 9112 7.1) ---- */

struct strict_chunks {
    int state;
    unsigned digits;
    size_t extension;     /* bytes of the extension in this line */
    uint64_t left;        /* data bytes of the current chunk still to come */
    uint64_t data, lines; /* of the whole body so far */
    uint64_t extensions;
    uint64_t max_overhead;
    const char *why;
};

enum strict_piece {
    STRICT_MORE, /* all input is used up */
    STRICT_DATA, /* *data is a piece of the body */
    STRICT_LAST, /* the last chunk's line has ended: trailers follow */
    STRICT_BAD,  /* why is set */
};

/* max_overhead: LIMIT_CHUNK_OVERHEAD. */
void strict_chunks_init(struct strict_chunks *c, uint64_t max_overhead);
/* *used: bytes of input that are done with, those of *data among them. */
enum strict_piece strict_chunks_next(struct strict_chunks *c, struct view input, size_t *used,
                                     struct view *data);

/* ---- bytes ---- */

/* A token (RFC 9110 5.6.2) of at least one byte; the other one without upper-case letters. */
bool strict_is_token(struct view v);
bool strict_is_name(struct view v);
/* HTAB, SP, visible ASCII and obs-text only, and no blank at either end. */
bool strict_is_value(struct view v);
/* 0x21 to 0x7e without '#' and '\'. */
bool strict_is_target(struct view v);
/* What any authority without userinfo can consist of: letters, digits and "-._:[]". Not empty. */
bool strict_is_authority(struct view v);

#endif

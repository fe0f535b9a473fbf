/*
 * HTTP/1 (RFC 9112): a strict parser for one direction of one connection, and
 * the writers. http1.c is the only file that knows llhttp.
 *
 * Pure: bytes in; an event, "need more", or "bad, and why" out. No sockets, no
 * clock, no logging. Three gates stand one behind another: our byte check
 * (http/strict.h), llhttp in strict mode, and the semantic checks that llhttp
 * does not make (exactly one Host, one framing, no chunked in HTTP/1.0, ...).
 * Heads, trailers and chunks are split by our own code and by llhttp, and what the two
 * found must be the same bytes; a body with Content-Length is only counted.
 *
 * What is refused though others accept it: any line end but CRLF, folded
 * lines, versions other than 1.0 and 1.1, Transfer-Encoding other than the one
 * word "chunked", Content-Length more than once or with leading zeros, '#' and
 * '\' in a target, userinfo, methods that not every llhttp from 8.1 on knows (501), more than
 * one extension of a chunk or an escape in it, a trailer that frames. Whatever llhttp is linked, the
 * verdicts are the same (tests/garden/verdicts). Up to two empty lines before a request are ignored. Bytes 0x80 to 0xff pass
 * unchanged in values and reason phrases, of requests and answers, and nowhere else.
 */
#ifndef HTTP_HTTP1_H
#define HTTP_HTTP1_H

#include "base/limits.h"
#include "http/message.h"

struct http1;

enum http1_side { HTTP1_REQUESTS, HTTP1_ANSWERS };

enum http1_what {
    HTTP1_MORE, /* no more can be told from this input; what is not used must be given again, with
                   more behind it (a head or trailers that are not whole yet) */
    HTTP1_HEAD, /* request or answer: see http1_request, http1_answer */
    HTTP1_BODY, /* a piece of body data */
    HTTP1_END,  /* the message is complete; trailers in http1_trailers */
    HTTP1_BAD,  /* malformed or over a limit: the connection is of no more use */
};

struct http1_event {
    enum http1_what what;
    size_t used;      /* bytes of input that are done with */
    struct view body; /* HTTP1_BODY: within the input */
    bool last;        /* HTTP1_BODY: HTTP1_END comes next; not told of chunks and FRAMING_CLOSE */
    uint16_t status;  /* HTTP1_BAD: 400, 408, 414, 417, 431, 501 for requests; 502 for answers */
    const char *why;  /* HTTP1_BAD: static sentence fragment */
};

/* limits must outlive it, and may change: those of a head are as they were when the message before it ended. NULL when out of memory. */
struct http1 *http1_new(enum http1_side side, const struct limits *limits);
void http1_free(struct http1 *h);
/* Ready for the first message of another connection. */
void http1_reset(struct http1 *h);

/*
 * Looks at the unread input and tells the next thing; call it again, also with no input left,
 * until it tells HTTP1_MORE. A head (and trailers) must lie whole in one view: on HTTP1_MORE the
 * caller drops what was used, appends what it reads, and calls again. Nothing is
 * looked at twice for that. Values of a head point into that input and hold until it moves; names
 * are lower-case copies that hold until the next call.
 */
struct http1_event http1_next(struct http1 *h, struct view input);
/* The input has ended: HTTP1_END when that completes the message (FRAMING_CLOSE), HTTP1_MORE between
 * messages, HTTP1_BAD when it cuts one short. All input must have been given before. */
struct http1_event http1_eof(struct http1 *h);

/* Valid after HTTP1_HEAD until the next call. */
const struct request_head *http1_request(const struct http1 *h);
const struct answer_head *http1_answer(const struct http1 *h);
/* Valid after HTTP1_END until the next call: checked for form only, not to be passed on as fields. */
const struct fields *http1_trailers(const struct http1 *h);

/*
 * Answers only, before the head arrives: what was asked, which decides whether
 * there is a body (RFC 9112 6.3). Holds until the END of a final answer. 1xx heads are given as
 * HTTP1_HEAD followed by HTTP1_END and never have a body, whatever they say; a 101 is HTTP1_BAD,
 * since nothing upgrades yet. Bytes behind HTTP1_END are left in the input for the caller to judge.
 */
void http1_expect(struct http1 *h, bool head_request);

/*
 * Writers: canonical bytes from facts; the field order is that of the record. A
 * part that would break the form (a control byte in a value, say) makes out fail.
 */

/* Request line, Host first, fields, framing field, and "Connection: close" unless keep_alive. */
void http1_write_request(struct buf *out, struct view method, struct view target, struct view host,
                         const struct fields *fields, enum framing framing, uint64_t length,
                         bool keep_alive);
/*
 * Status line with our own reason phrase, or with the line of REFUSAL_FIELD, since that is all that
 * most clients print of a refusal; fields, framing field, and "Connection: close" unless
 * keep_alive. FRAMING_CLOSE needs keep_alive false. A 1xx has neither framing nor Connection.
 */
void http1_write_answer(struct buf *out, const struct answer_head *h, bool keep_alive);
/* One chunk (v not empty); the last chunk without trailers. */
void http1_write_chunk(struct buf *out, struct view v);
void http1_write_last_chunk(struct buf *out);

/*
 * Proves which parser was linked: runs the inputs on which loose and strict
 * builds differ. 0, or ERR_BAD: the process must not serve.
 */
MUST_USE int http1_self_test(void);

#endif

/*
 * HTTP/1 (RFC 9112): a strict parser for one direction of one connection, and
 * the writers. The only file that knows llhttp.
 *
 * Pure: bytes in; an event, "need more", or "bad, and why" out. No sockets, no
 * clock, no logging. Three gates stand one behind another: our byte check
 * (http/strict.h), llhttp in strict mode, and the semantic checks that llhttp
 * does not make (exactly one Host, one framing, no chunked in HTTP/1.0, ...).
 */
#ifndef HTTP_HTTP1_H
#define HTTP_HTTP1_H

#include "base/limits.h"
#include "http/message.h"

struct http1;

enum http1_side { HTTP1_REQUESTS, HTTP1_ANSWERS };

enum http1_what {
    HTTP1_MORE, /* all input is used up, or a head is not whole yet (then nothing is used) */
    HTTP1_HEAD, /* request or answer: see http1_request, http1_answer */
    HTTP1_BODY, /* a piece of body data */
    HTTP1_END,  /* the message is complete; trailers in http1_trailers */
    HTTP1_BAD,  /* malformed or over a limit: the connection is of no more use */
};

struct http1_event {
    enum http1_what what;
    size_t used;      /* bytes of input that are done with */
    struct view body; /* HTTP1_BODY: within the input */
    uint16_t status;  /* HTTP1_BAD: 400, 408, 414, 417, 431, 501 for requests; 502 for answers */
    const char *why;  /* HTTP1_BAD: static sentence fragment */
};

/* limits must outlive it. NULL when out of memory. */
struct http1 *http1_new(enum http1_side side, const struct limits *limits);
void http1_free(struct http1 *h);
/* Ready for the first message of another connection. */
void http1_reset(struct http1 *h);

/*
 * Looks at the unread input and tells the next thing. A head must lie whole in
 * one view: on HTTP1_MORE with used 0 the caller appends what it reads and
 * calls again. Views of a head point into that input and hold until it moves.
 */
struct http1_event http1_next(struct http1 *h, struct view input);
/* The input has ended: HTTP1_END when that completes the message (FRAMING_CLOSE), HTTP1_MORE between
 * messages, HTTP1_BAD when it cuts one short. */
struct http1_event http1_eof(struct http1 *h);

/* Valid after HTTP1_HEAD until the next call. */
const struct request_head *http1_request(const struct http1 *h);
const struct answer_head *http1_answer(const struct http1 *h);
/* Valid after HTTP1_END until the next call. */
const struct fields *http1_trailers(const struct http1 *h);

/*
 * Answers only, before the head arrives: what was asked, which decides whether
 * there is a body (RFC 9112 6.3). 1xx heads are given as HTTP1_HEAD followed by HTTP1_END; a 101 is
 * HTTP1_BAD, since nothing upgrades yet.
 */
void http1_expect(struct http1 *h, bool head_request);

/* ---- writers: canonical bytes from facts; the field order is that of the record ---- */

/* Request line, Host first, fields, framing field, and "Connection: close" unless keep_alive. */
void http1_write_request(struct buf *out, struct view method, struct view target, struct view host,
                         const struct fields *fields, enum framing framing, uint64_t length,
                         bool keep_alive);
/* Status line with our own reason phrase, fields, framing field, Connection. */
void http1_write_answer(struct buf *out, const struct answer_head *h, bool keep_alive);
/* One chunk (v not empty); the last chunk without trailers. */
void http1_write_chunk(struct buf *out, struct view v);
void http1_write_last_chunk(struct buf *out);
/* Our own phrase for a status ("Not Found"); "Unknown" for others. Static. */
const char *http1_phrase(uint16_t status);

/*
 * Proves which parser was linked: runs the inputs on which loose and strict
 * builds differ. 0, or ERR_BAD: the process must not serve.
 */
MUST_USE int http1_self_test(void);

#endif

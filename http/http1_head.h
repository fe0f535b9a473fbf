/*
 * The third gate of HTTP/1: what a head means. Takes fields one by one and
 * makes a record of them, or refuses. Knows no parser and no connection; only
 * http1.c includes it.
 */
#ifndef HTTP_HTTP1_HEAD_H
#define HTTP_HTTP1_HEAD_H

#include "http/message.h"

enum { OPTIONS_MAX = 32 }; /* options in the Connection fields of one head */

/* A head under construction. */
struct head {
    bool request;
    struct fields *fields; /* where plain fields go */
    struct buf names;      /* lower-case copies; made large enough first, so it never moves */
    unsigned n_host, n_length, n_coding, n_expect;
    struct view host, length, coding, expect;
    bool close, upgrade, placeholder_dropped;
    struct view
        options[OPTIONS_MAX]; /* named by Connection, lower-case, but for close and keep-alive */
    size_t n_options;
    uint32_t seen;   /* single fields, by their number in known.h */
    uint16_t status; /* after a refusal */
    const char *why;
};

void head_init(struct head *h, bool request);
void head_free(struct head *h);
/* Ready for a head of size bytes whose plain fields go to *fields. ERR_MEMORY. */
MUST_USE int head_start(struct head *h, struct fields *fields, size_t size);
/* A field as sent. Any error: status and why are set. */
MUST_USE int head_field(struct head *h, struct view name, struct view value);
/* A trailer: its name is put in lower case; one that frames (RFC 9110 6.5.1) is an error, as in a head. */
MUST_USE int head_trailer(struct head *h, struct view name, struct view value);

/* Everything of the request but its fields, which are in place already. */
MUST_USE int head_finish_request(struct head *h, struct view method, struct view target,
                                 uint8_t minor, struct request_head *out);
/* head_request: the answer is to a HEAD. */
MUST_USE int head_finish_answer(struct head *h, uint16_t status, uint8_t minor, bool head_request,
                                struct answer_head *out);

#endif

/*
 * An exchange as this process sees it: one request on its way from a client to egress, and its
 * answer on its way back. (Egress' own side of the same thing is egress/exchange.h.)
 *
 * The request goes through BODY, OVER; the answer through DUE, BODY, OVER. The exchange ends when
 * the answer is OVER and with the kernel; if the request is not OVER then, the connection ends
 * with it (its next bytes are not a request).
 */
#ifndef PROXY_RELAY_H
#define PROXY_RELAY_H

#include "proxy/client.h"

enum relay_request {
    REQUEST_BODY,    /* its end has not been read */
    REQUEST_OVER,    /* told to egress whole */
    REQUEST_REFUSED, /* malformed: the rest is not looked at */
};

enum relay_answer {
    ANSWER_DUE,  /* no final head yet */
    ANSWER_BODY, /* its head is written */
    ANSWER_OVER, /* all of it is gathered or written */
};

struct relay {
    struct relay *next_spare;
    struct client *client;
    uint32_t id;
    enum relay_request request;
    enum relay_answer answer;
    enum framing framing;  /* of the answer on the client's side */
    uint64_t left;         /* body bytes that FRAMING_LENGTH still promises */
    size_t window;         /* of the answer: LIMIT_WINDOW as it was at the beginning */
    size_t request_window; /* the same, or what egress has said since */
    size_t credit;         /* body bytes of the request that egress will still take */
    size_t owed;           /* body bytes of the answer that the client's kernel does not have yet */
    size_t passed;         /* those that it has, not yet told to egress */
    uint64_t until;        /* nanoseconds: end of the whole */
    uint64_t heard, wrote; /* last byte of the request read, of the answer written */
    bool is_head;          /* HEAD: the answer has no body */
    bool is_old;           /* HTTP/1.0 */
    bool expects;          /* waits for 100 before it sends the body */
    bool keep;             /* the connection may carry another exchange */
};

/* A request head was read: tells egress. */
void relay_begin(struct client *c, const struct request_head *h);
/*
 * What is in *input, which is given up, is refused by proxy itself: egress records it and answers; the client is
 * closed after that. Result of the step that found it.
 */
enum client_step relay_refuse(struct client *c, uint16_t status, const char *why,
                              struct view *input);

/* Step of CLIENT_EXCHANGE: body bytes. */
enum client_step relay_step(struct client *c, struct view *input);
bool relay_wants_input(const struct relay *x);
/* Bytes that are worth reading at once. */
size_t relay_piece(const struct relay *x);
/* The client ended its direction. */
void relay_ended(struct client *c);
/* Some or all of what was gathered is with the kernel. */
void relay_flushed(struct relay *x);
/* The client's connection is being given up. */
void relay_lost(struct relay *x);
/* Deadlines: of the whole, of a body that is due, of a client that does not read. */
void relay_sweep(struct relay *x, uint64_t now);

/* ---- what egress says ---- */

void relay_continue(struct relay *x);
/* h is changed. end: close the connection afterwards. */
void relay_answer(struct relay *x, struct answer_head *h, bool end);
void relay_answer_body(struct relay *x, struct view v);
void relay_answer_end(struct relay *x);
void relay_answer_cut(struct relay *x);
void relay_credit(struct relay *x, size_t n);
void relay_window(struct relay *x, size_t n);

/* Gives the spare objects back. */
void relay_free_spare(struct proxy *p);

#endif

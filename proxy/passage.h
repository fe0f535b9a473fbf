/*
 * A tunnel whose bytes are passed on unread, both ways, since egress said so: nothing of them is parsed. Each
 * direction ends by itself; the connection is over when both have.
 */
#ifndef PROXY_PASSAGE_H
#define PROXY_PASSAGE_H

#include "proxy/client.h"

struct passage {
    size_t window;      /* of each way, as egress said */
    size_t credit;      /* bytes that egress will still take */
    size_t owed;        /* bytes for the client that its kernel does not have yet */
    size_t passed;      /* those that it has, not yet told to egress */
    bool upstream_over; /* no more bytes for the client */
};

/* Egress said so of a client whose ClientHello it has judged; ignored in any other state. */
void passage_begin(struct client *c, size_t window);

/* Step of CLIENT_PASSAGE: bytes. */
enum client_step passage_step(struct client *c, struct view *input);
bool passage_wants_input(const struct client *c);
/* The client ended its direction. */
void passage_ended(struct client *c);
/* Some or all of what was gathered is with the kernel. */
void passage_flushed(struct client *c);

/* ---- what egress says; ignored in any other state ---- */

void passage_credit(struct client *c, size_t n);
void passage_back(struct client *c, struct view v);
void passage_back_end(struct client *c);

#endif

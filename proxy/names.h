/*
 * The DNS door: queries over TCP from clients and over UDP from a courier, read here, answered by egress, which knows
 * what this sandbox may know. Nothing is asked of any other server. And datagrams to other servers, which the sandbox's own kernel
 * has refused, are told to egress.
 */
#ifndef PROXY_NAMES_H
#define PROXY_NAMES_H

#include "proxy/client.h"
#include "proxy/proxy.h"

/* Of the listeners those of a way that is carried, which stay the caller's. NULL when out of memory. */
struct names *names_new(struct proxy *p, const struct proxy_listener *listeners, size_t n);
void names_free(struct names *n);

/* Step of CLIENT_DNS: queries with two bytes of length each, one at a time. */
enum client_step names_step(struct client *c, struct view *input);
/* The connection is being freed: nobody waits for the answer. */
void names_forget(struct client *c);

/* From egress: the answer to a question; ERR_BAD when it is none. */
MUST_USE int names_found(struct proxy *p, uint32_t id, struct view body);
/* Reads datagrams again, after a full lane. */
void names_resume(struct proxy *p);
/* What egress has not answered in time is forgotten, and its client asks again. */
void names_sweep(struct proxy *p, uint64_t now);

#endif

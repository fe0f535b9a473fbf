/*
 * The listeners: accepting; when all connections are taken, in place of one that yields
 * (client_yield); not accepting when none does, or there are no descriptors (RX-04). A paused door costs nothing: no event fires while nobody can be let in.
 */
#ifndef PROXY_DOOR_H
#define PROXY_DOOR_H

#include "proxy/proxy.h"
#include "proxy/state.h"

/* listeners stay the caller's, made non-blocking. Closed at first. NULL when out of memory. */
struct door *door_new(struct proxy *p, const struct proxy_listener *listeners, size_t n);
void door_free(struct door *d);
void door_open(struct door *d);
/* For good. */
void door_close(struct door *d);
/* A connection has ended, the lane has room again, or a second has passed: those outside may be let in again. */
void door_retry(struct door *d);

#endif

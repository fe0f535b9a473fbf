/*
 * What proxy hears from egress: the table of messages it is willing to receive. What is said to a
 * tunnel or an exchange that has ended in the meantime is ignored; what cannot be read ends the
 * channel, and with it this process.
 */
#ifndef PROXY_HEAR_H
#define PROXY_HEAR_H

#include "proxy/state.h"

/* Takes over fd. ERR_MEMORY. */
MUST_USE int hear_begin(struct proxy *p, int fd);

#endif

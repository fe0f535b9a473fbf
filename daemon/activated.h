/*
 * Sockets that systemd, or who speaks its protocol, has passed to exeatd (sd_listen_fds(3)). One is taken for a listener when
 * it has the listener's very address and hears what the listener shall hear: its interface alone, or all of them.
 */
#ifndef DAEMON_ACTIVATED_H
#define DAEMON_ACTIVATED_H

#include "base/bytes.h"

#include <sys/socket.h>

/* Takes note of them; once, before anything else opens descriptors. */
void activated_note(void);
/*
 * The one of this type (SOCK_STREAM, ...) with this address that is bound to this interface's number; 0: to none. ERR_MISSING:
 * there is none, and none is in the way. ERR_BAD, with a sentence in why: there are several, or one that hears another
 * interface, beside which no socket can have the address.
 */
MUST_USE int activated_take(const struct sockaddr_storage *address, socklen_t size, int type,
                            unsigned interface, int *fd, struct buf *why);

#endif

/*
 * Sockets that somebody else holds as well, or gave us. He may make a listener one that blocks, or accept from it before us; he may
 * have asked that closing waits for somebody who does not read (SO_LINGER), and the kernel closes for us what came with a packet and
 * nobody took. That would keep us, and all who wait for us. A signal (SIGALRM) ends it, again and again until the end.
 */
#ifndef BASE_PATIENCE_H
#define BASE_PATIENCE_H

#include "base/error.h"

/* Once in a process, before its rights are narrowed. ERR_SYSTEM. */
MUST_USE int patience_prepare(void);
/* Between the two a system call that blocks ends with EINTR within 5 ms. Pairs may stand in each other. */
void patience_begin(void);
void patience_end(void);
/* Closes a socket of somebody else's, as said above. Of a file this helps nothing: its file system may not hear signals (FUSE). */
void patience_close(int fd);

#endif

/*
 * Accepting on a listener that somebody else holds as well, and may make one that blocks, or accept from before us: accept4
 * would keep us then, and all who wait for us. A signal (SIGALRM) ends it, again and again until the end.
 */
#ifndef BASE_PATIENCE_H
#define BASE_PATIENCE_H

#include "base/error.h"

/* Once in a process, before its rights are narrowed. ERR_SYSTEM. */
MUST_USE int patience_prepare(void);
/* Between the two a system call that blocks ends with EINTR within 50 ms. */
void patience_begin(void);
void patience_end(void);

#endif

/*
 * What sandboxes have used of their grants, from the daemon's status.
 */
#ifndef CLI_GRANTS_H
#define CLI_GRANTS_H

#include "base/bytes.h"

/* The elements of all lanes' grants as one JSON array; those of one sandbox, unless it is empty. */
void grants_gather(struct view status, struct view sandbox, struct buf *out);
/* A table of such an array; nothing when it is empty. */
void grants_write(struct view grants, struct buf *out);
/* A line for each that only observes. */
void grants_shout(struct view grants, struct buf *out);

#endif

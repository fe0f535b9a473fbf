/*
 * The symbolic links that a name leads through. What a user names by a link is what the link leads to: in a sandbox that may
 * not change the one, the other must stay as well, or the name means something else the next time.
 */
#ifndef CLI_RUN_LINKS_H
#define CLI_RUN_LINKS_H

#include "base/bytes.h"

/* Appends the path of each, with a NUL: where it is, without links above it. As far as the name leads. */
void run_links_put(const char *name, struct buf *out);

#endif

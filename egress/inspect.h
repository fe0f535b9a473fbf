/*
 * inspect: reads bodies for its lane's egress. One for each lane. It alone
 * runs decompressors and parsers of body formats over hostile bytes, and
 * returns plain bytes or facts (egress/inspect_messages.h).
 *
 * Started by the parent when the first body waits for it: egress holds the
 * other end of LANE_FD from the beginning, and what it writes there wakes the
 * parent. Takes INSPECT_* from egress; from the parent the generation, of which
 * it keeps the limits. Holds no secret of its own:
 * what it sees of one is what an upstream wrote into a compressed answer, which
 * leaves here unmasked, for egress' guard, and is cleared behind it: of a body that has
 * ended nothing is kept. Never opens a file or a connection,
 * never decides; has no audit channel. Ends with its egress.
 */
#ifndef EGRESS_INSPECT_H
#define EGRESS_INSPECT_H

#include "base/limits.h"
#include "base/loop.h"
#include "base/role.h"

int inspect_main(const struct role_args *args);

/* The bodies of one egress. */
struct inspect;

/* The channel is of no more use (why as in base/channel.h); the owner frees. */
typedef void inspect_lost(void *ctx, int why);

/*
 * Takes over fd. At most three bodies for each of LIMIT_EXCHANGES; further ones
 * are answered with INSPECT_BAD. NULL: no memory (fd is closed).
 */
struct inspect *inspect_new(struct loop *l, int fd, const struct limits *limits, inspect_lost *lost,
                            void *ctx);
void inspect_free(struct inspect *i);
/* Bodies in progress. */
size_t inspect_bodies(const struct inspect *i);

#endif

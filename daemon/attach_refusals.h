/*
 * What attach refuses: a record and a line in the log for each, but for those that are too many. Whoever
 * reaches the socket, and may attach nothing, must not fill the log.
 */
#ifndef DAEMON_ATTACH_REFUSALS_H
#define DAEMON_ATTACH_REFUSALS_H

#include "audit/stream.h"
#include "base/bucket.h"

/* So many a minute have a record. */
enum { ATTACH_REFUSALS_LISTED = 600 };

struct attach_refusals {
    struct audit_stream *audit; /* borrowed */
    struct bucket listed;
    uint64_t all,
        unlisted; /* the latter since the last one that had a record, which says how many */
};

void attach_refusals_note(struct attach_refusals *r, uint32_t uid, const char *sandbox,
                          const char *why);

#endif

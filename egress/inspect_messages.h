/*
 * What a lane's egress and its inspect say to each other: bodies in, plain
 * bytes or facts out. Inspect holds no secret and no descriptor but its channels.
 *
 * A job is one body. Answers keep order within a job. Egress sends at most
 * INSPECT_WINDOW bytes of a job that were not yet answered. A job ends with
 * INSPECT_FOUND, INSPECT_FACTS, INSPECT_DONE, INSPECT_BAD or INSPECT_CLOSE; what egress sends
 * for an ended job is ignored, so that both ends may end it at once.
 */
#ifndef EGRESS_INSPECT_MESSAGES_H
#define EGRESS_INSPECT_MESSAGES_H

#include "base/channel.h"

enum { INSPECT_PIECE_MAX = 64 * 1024, INSPECT_WINDOW = 256 * 1024 };

enum inspect_job {
    INSPECT_GUNZIP,  /* RFC 1952, several members allowed */
    INSPECT_INFLATE, /* "deflate": RFC 1950, or raw RFC 1951 as some servers send */
    /* Look for names of credentials. Argument: block boundary, and names (egress/body_names.h). */
    INSPECT_JSON,         /* among the members of the two outermost levels, or more */
    INSPECT_FORM,         /* application/x-www-form-urlencoded */
    INSPECT_MULTIPART,    /* multipart of any kind */
    INSPECT_JSON_OR_FORM, /* both of the first two */
    INSPECT_JSON_UNSAID,  /* the first, if it is JSON */
    INSPECT_READ,         /* facts for rules; argument: the question (egress/facts_message.h) */
};

/* egress to inspect */
enum {
    INSPECT_OPEN = 1,  /* id: job. u8 enum inspect_job, block argument, u64 bytes it may grow to */
    INSPECT_DATA = 2,  /* id: job. bytes */
    INSPECT_END = 3,   /* id: job. The body is complete. */
    INSPECT_CLOSE = 4, /* id: job. Forget it. */
};

/* inspect to egress */
enum {
    /* decompression: u32 encoded bytes that are done with (credit), then plain bytes. 0 while these
     * bytes go on giving output: the credit comes with the last of it. */
    INSPECT_PLAIN = 1,
    INSPECT_CLEAR =
        2, /* credentials: u32 bytes that are clean and may be sent on; facts: that were read */
    INSPECT_FOUND =
        3, /* block name of the body's field that would be read as a credential, block value's beginning (at most 128 bytes) */
    INSPECT_DONE = 4, /* everything was clean, or is decoded */
    INSPECT_BAD =
        5, /* block why: malformed, truncated, over a ratio, trailing garbage. The body must not be passed on. */
    INSPECT_FACTS = 6, /* facts: they (egress/facts_message.h), perhaps before the body's end */
};

#endif

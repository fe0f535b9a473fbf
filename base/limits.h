/*
 * Every quantity that has a limit and every phase that has a timeout, in one
 * table: name in the configuration, unit, default, range, and what happens at
 * the limit (docs/limits.md is printed from it by `exeat limits`).
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include "base/bytes.h"

enum limit {
    /* connections and time, sandbox side */
    LIMIT_CONNECTIONS,    /* open client connections of a lane */
    LIMIT_FIRST_BYTE,     /* seconds from accept to the first byte */
    LIMIT_HEAD_TIME,      /* seconds for a whole request head */
    LIMIT_HANDSHAKE_TIME, /* seconds from CONNECT to a finished handshake */
    LIMIT_IDLE_TIME,      /* seconds between requests on a kept-alive connection */
    LIMIT_BODY_STALL,     /* seconds without a byte while a body is due, either side */
    LIMIT_REQUEST_TIME,   /* seconds for a whole exchange */
    /* sizes of messages */
    LIMIT_HEAD_BYTES,   /* a request or answer head, all fields and the start line */
    LIMIT_HEAD_FIELDS,  /* fields in a head */
    LIMIT_TARGET_BYTES, /* a request target */
    LIMIT_CHUNK_OVERHEAD, /* bytes of chunk lines and extensions in one body, beyond what its data justifies */
    LIMIT_TRAILER_BYTES, /* trailers of one body */
    LIMIT_HELLO_BYTES,   /* a ClientHello */
    LIMIT_PATH_SEGMENTS,
    LIMIT_REQUEST_BODY, /* bytes of a request body; 0: no limit */
    LIMIT_ANSWER_BODY,  /* bytes of an answer body; 0: no limit */
    /* flow */
    LIMIT_WINDOW,    /* bytes in flight per direction of an exchange between proxy and egress */
    LIMIT_EXCHANGES, /* requests in progress of a lane */
    /* new names */
    LIMIT_LEAVES,        /* leaves kept by a lane */
    LIMIT_NEW_NAMES,     /* leaves minted for a lane a minute */
    LIMIT_LEAF_DAYS,     /* validity of a leaf */
    LIMIT_AUTH_FAILURES, /* refused proxy credentials of a lane a minute */
    /* upstream side */
    LIMIT_DNS_TIME, /* seconds to resolve */
    LIMIT_DNS_QUERIES,
    LIMIT_DNS_NEW_NAMES,
    LIMIT_DNS_NAMES,
    LIMIT_CONNECT_TIME,       /* seconds to connect, all addresses */
    LIMIT_UPSTREAM_HANDSHAKE, /* seconds for TLS with the upstream */
    LIMIT_ANSWER_TIME,        /* seconds from the whole request to the answer's head */
    LIMIT_POOL_IDLE,          /* seconds an idle upstream connection is kept */
    LIMIT_POOL_SIZE,          /* idle upstream connections of a lane */
    LIMIT_UPSTREAMS,          /* open upstream connections of a lane to one authority */
    LIMIT_CERTIFICATES,       /* in an upstream's chain */
    /* attached sandboxes */
    LIMIT_ATTACHED,      /* sandboxes attached at once */
    LIMIT_ATTACHED_USER, /* of one user */
    /* spliced connections */
    LIMIT_SPLICE_BYTES, /* each way */
    LIMIT_SPLICE_IDLE,  /* seconds without a byte either way */
    LIMIT_SPLICE_TIME,  /* seconds for a whole one */
    /* secrets */
    LIMIT_LEASE_TIME,      /* seconds a secret is lent to a lane */
    LIMIT_GUARD_TIME,      /* seconds after the last use that answers are scanned for it */
    LIMIT_GUARD_RUN,       /* shortest run of a secret's bytes that is masked */
    LIMIT_GUARD_FRAGMENTS, /* parts of one secret that a sandbox may be shown the masks of */
    LIMIT_SECRETS,         /* different secrets a sandbox may have been lent at once */
    /* between processes */
    LIMIT_ASK_TIME,      /* seconds until an unanswered question is a refusal */
    LIMIT_INSPECT_BYTES, /* bytes an inspected body may grow to when decoded, per piece */
    LIMIT_INSPECT_BODY,  /* bytes of a request's body that is read before it is judged */
    LIMIT_INSPECT_RATIO, /* decoded to encoded bytes of a whole body */
    /* audit */
    LIMIT_REFUSALS,      /* refusals of a lane a second that get a record each */
    LIMIT_AUDIT_FILE,    /* bytes until the log is rotated */
    LIMIT_AUDIT_KEEP,    /* rotated files kept; 0: all */
    LIMIT_HEAD_INTERVAL, /* seconds between signed heads */
    LIMIT_COUNT
};

struct limits {
    uint64_t v[LIMIT_COUNT];
};

struct limit_info {
    const char *name; /* word of the configuration, "head-bytes" */
    const char *unit; /* "s", "ms", "bytes", "days", "" */
    uint64_t normal, least, most;
    const char *what; /* one line: what is limited */
    const char *then; /* one line: what happens at the limit */
};

const struct limit_info *limit_info(enum limit which);
/* ERR_MISSING when no limit has that name. */
MUST_USE int limit_find(struct view name, enum limit *out);
void limits_default(struct limits *l);

/* The numbers in a fixed order, for messages. limits_read: ERR_BAD when the count or a range is wrong. */
void limits_write(const struct limits *l, struct buf *out);
MUST_USE int limits_read(struct reader *r, struct limits *out);

#endif

/*
 * Egress's audit records: one for each decision, before bytes leave, and one for its outcome.
 */
#ifndef EGRESS_TRAIL_H
#define EGRESS_TRAIL_H

#include "egress/lane.h"
#include "policy/policy.h"

enum { RECORD_ID_SIZE = 40 };

/* What is known of a request or tunnel when it is decided; empty or NULL where nothing is. */
struct trail {
    char id[RECORD_ID_SIZE]; /* made by trail_decide */
    uint64_t number;         /* of the decision in our stream, likewise */
    const char
        *door; /* "connect", "http", "tls", "spliced", "socks", "transparent", "dns", "udp" */
    struct view
        meant; /* the address that a transparent client connected to, or a question was sent to */
    struct view client, sandbox, method, host_sent, sni, detail, aliases, address, country, asn,
        client_certificate;
    const struct authority *authority;
    const struct target *target;
    const struct materials *materials;
    struct verdict verdict;
    struct position grants[LAYERS_MAX]; /* those with limits that it is sent by */
    size_t n_grants;
    uint32_t retry_after; /* seconds, of a refusal; 0: not known */
    bool tls;
    bool of_name; /* a question for a host alone: no port, no scheme */
    uint32_t generation;
    uint64_t started; /* monotonic nanoseconds */
};

struct outcome {
    enum reason reason; /* REASON_ALLOWED when it ended well */
    struct view detail;
    uint16_t status;
    uint64_t bytes_out, bytes_in, masked;
    uint64_t us_connect, us_first, us_total;
};

/*
 * Makes the decision record, which is handed to the kernel with those of the whole turn, before
 * proxy hears of any of them. Nothing may leave until trail_holds says so; on an error never, and for an
 * allow the caller refuses with REASON_AUDIT_UNAVAILABLE. status: what a refusal is answered with.
 */
MUST_USE int trail_decide(struct lane *l, struct trail *t, uint16_t status);
/*
 * Whether a refusal gets a record of its own. If not (LIMIT_REFUSALS), it is counted, and its reason becomes
 * REASON_RATE; trail_sweep, once a second, records how many there were.
 */
bool trail_lists(struct lane *l, struct trail *t);
void trail_sweep(struct lane *l);
/* The decision is in the kernel, with durable on the disk. When that changes, exchange_recorded and splice_recorded are called. */
bool trail_holds(const struct lane *l, const struct trail *t, bool durable);
/* An event, before the request of a recorded decision leaves for another time; as trail_decide. */
MUST_USE int trail_again(struct lane *l, struct trail *t);
/* Makes the outcome of a decision; a loss shows as a decision without outcome. */
void trail_end(struct lane *l, const char *id, const struct outcome *o);

/* An event: the sandbox is suspended, because an answer of this host held one more part of the credential. */
void trail_suspended(struct lane *l, struct view sandbox, const char *credential,
                     const struct authority *authority);

/* Once, at start. */
void trail_start(struct lane *l);
/* A writing end from the parent, the first or a new one: takes over fd. ERR_MEMORY, ERR_SYSTEM. */
MUST_USE int trail_attach(struct lane *l, int fd);
/* Audit is gone: everything is refused until trail_attach. */
void trail_away(struct lane *l);
/* Whether a request may be allowed at all. */
bool trail_ready(const struct lane *l);

#endif

/*
 * The state of one egress process: what the files of its data path share. Nobody outside
 * egress/ includes this; each part is changed only by the file named beside it.
 */
#ifndef EGRESS_LANE_H
#define EGRESS_LANE_H

#include "audit/stream.h"
#include "base/bucket.h"
#include "base/child.h"
#include "base/table.h"
#include "egress/generation.h"

struct exchange;
struct splice;
struct upstream;
struct share;
struct tally;
struct ledger;
struct datagrams;
struct names;

/* What of a lane's limits is shared out among its sandboxes. */
enum share_of {
    SHARE_CONNECTIONS, /* tunnels, and requests in progress outside of one */
    SHARE_EXCHANGES,
    SHARE_INSPECTED, /* bytes of bodies that inspect was given and has not answered for */
    SHARE_HELD,      /* bytes of bodies that wait for their verdict, or to leave after it */
    SHARE_COUNT
};

struct lane {
    struct loop *loop;
    struct child *child;
    uint32_t id;
    struct generation *now;  /* in use; NULL before the first commit */
    struct generation *next; /* prepared */
    struct channel *proxy, *ca, *broker, *dialer, *inspect; /* NULL while that role is away */
    bool stopping;
    bool opened; /* by the parent: what the generation says of closed counts no more */

    /* trail.c */
    struct audit_stream audit;
    struct record record;
    uint64_t newest_record; /* its number in our stream */
    uint8_t salt[32];

    struct refused *refused; /* of each sandbox, and of nobody that is known */

    /* ask.c */
    struct table asks;
    uint32_t last_ask;
    struct event *ask_sweep;

    /* identity.c */
    struct bucket auth_failures;

    /* share.c */
    struct share *shares;
    size_t taken[SHARE_COUNT];

    /* tunnel.c */
    struct table tunnels;
    uint32_t last_tunnel;

    /* splice.c */
    struct splice *splices;
    size_t n_splices;
    /* datagrams.c */
    struct datagrams *datagrams; /* NULL: none was refused yet */
    /* names.c */
    struct names *names; /* NULL: nobody asked yet */

    /* leaf.c */
    struct leaf *leaves[256];
    struct leaf *leaf_newest, *leaf_oldest;
    size_t n_leaves;

    /* lease.c */
    struct lease *leases[256];
    struct guarded *guarded;

    /* suspension.c */
    struct suspension *suspensions;
    uint64_t begun_again; /* monotonic nanoseconds; 0: no egress of this lane was there before */

    /* tally.c */
    struct ledger *ledger; /* NULL: the parent did not hand it over */
    struct tally *tallies[256];

    /* upstream.c */
    struct upstream *idle_newest, *idle_oldest;
    struct upstream *idle[1024];        /* the same by key */
    struct upstream *upstreams;         /* all */
    struct kept_session *sessions[512]; /* by key */
    size_t n_idle, n_upstreams;

    /* exchange.c */
    bool crowded;        /* some exchange waits for proxy's channel */
    size_t windows_more; /* window.h */
    struct table exchanges;
    uint32_t last_exchange;
    struct exchange *spare;                            /* objects to be used again */
    struct exchange *recording_first, *recording_last; /* by their records' numbers */
    struct event *sweep;

    /* inspection.c */
    bool inspect_crowded; /* some body waits until inspect has answered for others */
    struct deferred inspect_again;
    struct table jobs;
    uint32_t last_job;

    /* counters for status */
    uint64_t requests, refusals, masked, observed;
};

/* Limit of the generation in use. */
static inline uint64_t lane_limit(const struct lane *l, enum limit which) {
    return l->now->limits.v[which];
}

/* Whatever is asked for is refused (REASON_NOT_PROBED). */
static inline bool lane_is_closed(const struct lane *l) {
    return l->now && l->now->closed && !l->opened;
}

#endif

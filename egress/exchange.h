/*
 * Exchanges: one request and its answer, from the record that proxy sent to the outcome in the
 * audit log. exchange.c holds the states; exchange_all.c visits all of a lane; request.c makes the canonical request and has it judged;
 * send.c is the half towards the upstream; answer.c the half towards the sandbox.
 *
 * A request whose verdict depends on its body is undecided while it is WAITING, until reading.c has
 * its facts; before that no connection is asked for.
 *
 *   JUDGING -> WAITING -> LEASING -> RECORDING -> RELAYING -> (gone)
 *
 * A refusal is possible until the answer's head was sent; after that the exchange is cut, so that
 * the truncation shows.
 */
#ifndef EGRESS_EXCHANGE_H
#define EGRESS_EXCHANGE_H

#include "egress/guard.h"
#include "egress/inspection.h"
#include "egress/lane_messages.h"
#include "egress/lease.h"
#include "egress/tally.h"
#include "egress/trail.h"
#include "egress/upstream.h"
#include "egress/window.h"
#include "http/message.h"
#include "policy/placeholder.h"

enum exchange_state {
    EXCHANGE_JUDGING, /* within the handler of LANE_REQUEST */
    EXCHANGE_WAITING, /* for the upstream's connection, and for as much of the body as is judged whole */
    EXCHANGE_LEASING,   /* for the secret */
    EXCHANGE_RECORDING, /* for the kernel, or the disk (audit durable), to hold the decision */
    EXCHANGE_RELAYING,  /* bytes may leave: the decision is recorded */
};

struct exchange {
    /* what stays with a spare object: its empty buffers and its timers */
    struct lane *lane;
    struct exchange *next_spare;
    struct buf record;       /* what proxy sent; request's views point into it */
    struct buf canonical;    /* the canonical target; target's views point into it */
    struct buf body;         /* received from proxy and not yet framed */
    struct buf wire;         /* framed, not yet written */
    struct buf plain;        /* decoded and not yet sent on */
    struct event *body_wait; /* ends the wait for a whole body */

    uint32_t id; /* from here on everything is cleared for the next request */
    enum exchange_state state;
    struct generation *generation; /* the one it was judged by */

    /* the canonical request (request.c) */
    struct authority authority;
    struct target target;
    struct verdict verdict;
    bool undecided; /* the verdict depends on the body, of which this is asked: */
    struct body_needs needs;
    struct reading *reading;               /* (reading.c), or NULL */
    uint8_t fingerprint[FINGERPRINT_SIZE]; /* of the placeholder that is to be replaced */
    int fingerprint_of; /* the material it is of, while it is not yet known which one */
    char sandbox[IDENTITY_SIZE];
    struct proof proof;
    char client[128];
    char meant[LANE_ADDRESS_MAX]; /* of its tunnel */
    uint32_t tunnel;
    bool tls;
    struct share *share,
        *connection;    /* its part of exchanges; of connections, outside of a tunnel */
    struct taken taken; /* of its grants, once it is decided */

    /* the record (trail.c) */
    struct trail trail;
    bool decided;                                         /* the decision's record is made */
    struct exchange *recording_next, *recording_previous; /* RECORDING: in the lane's list */

    struct lease *waits_for; /* LEASING: lease.c */
    size_t
        guarding; /* how many of the sandbox's credentials were borrowed for the guard, or need not be */
    bool leases_own; /* LEASING: the one that is to be sent */

    /* towards the upstream (send.c) */
    struct upstream *upstream; /* dialled, connected, or NULL */
    bool connecting, retried;
    bool
        dialed; /* a name may have been asked for, or a connection begun: that it ends is recorded */
    struct buf
        head; /* serialised head and what fits behind it; in the arena when a secret is in it */
    struct inspection *inspection; /* of the body, or NULL */
    /* bytes of body: received, handed to inspect for the scan, inspected, sent on */
    uint64_t body_received, body_offered, body_cleared, body_framed;
    size_t offered;        /* bytes of body that TLS has in part and not yet taken */
    struct window room;    /* for the body, as proxy knows it */
    uint64_t credit_ahead; /* bytes given back before they were framed */
    bool invited;          /* a client that expects 100 was told to go on */
    bool body_ended, last_framed, send_failed, request_sent;
    /* a secret in the body: where the placeholder was, in bytes of what is left; and what it was */
    uint64_t gap;
    bool has_gap;
    struct buf placeholder;
    struct buf insert; /* what goes there, in the arena, while the request is on its way */
    bool unsearched;   /* the body that is held was not yet searched for placeholders */

    /* towards the sandbox (answer.c) */
    struct guard_stream guard;   /* its set is NULL when this answer is not scanned */
    struct inspection *decoding; /* of the answer's body, or NULL */
    int64_t credit,
        window; /* bytes proxy can still take (less than 0: what the guard held came on top); at first */
    uint64_t answer_taken; /* bytes of its body as the upstream sent them */
    uint64_t answer_bytes, masked;
    uint16_t status; /* of the final answer; 0 before its head */
    bool answer_ended, paused, decoded_all, reusable;

    bool crowded;        /* waits until proxy has taken what all exchanges sent it */
    bool ranges_dropped; /* parts of a body were not asked for */
    unsigned n_interim;  /* 1xx heads so far */
    bool interim;        /* the head that was read last is a 1xx: its end is not the end */
    bool body_whole;     /* enough of the body is here, or it has waited long enough */
    uint64_t started, connected_at, first_at; /* monotonic nanoseconds */
    uint64_t deadline, last_deadline;         /* of the present phase; of the whole exchange */

    /* large: of these arrays only what counts is read, so that clearing the counters is enough */
    struct request_head request; /* (request.c) */
    struct materials materials;
    struct placeholder_stream stream; /* of the body */
};

/* ---- messages of proxy (anything but 0 ends the lane) ---- */
MUST_USE int exchange_take_request(struct lane *l, struct message *m);
struct tunnel;
/* It is inside that tunnel: how records call that, and where it was meant to go. */
void exchange_place(struct exchange *ex, const struct tunnel *t);
MUST_USE int exchange_take_malformed(struct lane *l, struct message *m);
MUST_USE int exchange_take_body(struct lane *l, struct message *m);
MUST_USE int exchange_take_end(struct lane *l, struct message *m);
MUST_USE int exchange_take_gone(struct lane *l, struct message *m);
MUST_USE int exchange_take_credit(struct lane *l, struct message *m);

/* ---- events from the other files ---- */
/* A connection is being made for it: u is the exchange's to free from now on. */
void exchange_connecting(struct exchange *ex, struct upstream *u);
void exchange_connected(struct exchange *ex, struct upstream *u);
/* u is about to be freed; NULL when there was none. */
void exchange_not_connected(struct exchange *ex, struct upstream *u, enum reason why,
                            struct view detail);
void exchange_readable(struct exchange *ex);
void exchange_writable(struct exchange *ex);
void exchange_lent(struct exchange *ex, struct lease *lease);
void exchange_not_lent(struct exchange *ex, enum reason why);
struct generation *exchange_generation(struct exchange *ex);
/* The kernel or the disk holds more of our records: what waited for that goes on. */
void exchange_recorded(struct lane *l);
/* Audit is gone: what waits for its record is refused. */
void exchange_lose_audit(struct lane *l);

/* ---- used by request.c, send.c, answer.c ---- */

/*
 * Back to WAITING with another connection, fresh or perhaps pooled: the one it had is gone, and no
 * byte of an answer came.
 */
void exchange_restart(struct exchange *ex, bool fresh);
/* The verdict of an undecided exchange is an allow now: goes on. */
void exchange_decided(struct exchange *ex);
/* Asks a client that waits for it to send the body. */
void exchange_invite(struct exchange *ex);
/* Goes on from WAITING as far as possible. */
void exchange_advance(struct exchange *ex);
/* Its decision's record is made: to RECORDING, or to RELAYING if it is held already. */
void exchange_record(struct exchange *ex);
/*
 * Ends it with a refusal where that is still possible, else cuts it. detail is for the record. The
 * exchange is gone afterwards.
 */
void exchange_refuse(struct exchange *ex, enum reason why, struct view detail);
/* An answer of our own, whole: a refusal, or what the echo host says. */
void exchange_send(struct exchange *ex, const struct answer_head *head, struct view body);
/*
 * Ends it because the guard's set is exceeded: its sandbox is suspended, with an event, and everything
 * that the sandbox has in progress ends. The exchange is gone afterwards.
 */
void exchange_suspend(struct exchange *ex);
/* Ends it: recorded, upstream released or closed. reason REASON_ALLOWED when all went well. */
void exchange_finish(struct exchange *ex, enum reason why, struct view detail);

/* Back to WAITING without a connection, a credential or a record: nothing of it has left. */
void exchange_withdraw(struct exchange *ex);

/* ---- all exchanges of a lane, as time passes and generations come (exchange_all.c) ---- */
MUST_USE int exchange_start(struct lane *l);
/* Proxy has taken what was sent to it: answers go on. */
void exchange_resume_all(struct lane *l);
/* A generation was committed: what it denies is cut, what has not left is judged again. */
void exchange_judge_all(struct lane *l);
size_t exchange_count(const struct lane *l);

#endif

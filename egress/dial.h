/*
 * A dial: one wish of a lane for a connection, from its judgement to a
 * connected socket or a refusal.
 *
 *   judged > waits > static addresses, or resolved once > every address vetted
 *          > the hop's name resolved (when there is one) > connected > recorded
 *
 * Mixed answers (DN-02): when any one of a name's addresses is refused, the
 * whole name is refused. No name is asked of DNS before policy allowed it (P5).
 * The address that was vetted is the one that is dialled, and the socket's peer is compared with it afterwards.
 */
#ifndef EGRESS_DIAL_H
#define EGRESS_DIAL_H

#include "audit/stream.h"
#include "egress/connect.h"
#include "egress/dial_rules.h"
#include "egress/geography.h"
#include "policy/reason.h"

struct dial;

/* What all dials of a process share; owned by the caller, who may change it between turns. */
struct dial_tools {
    struct loop *loop;
    struct resolver *resolver;
    struct interfaces *interfaces;
    struct geography *geography;
    struct audit_stream audit; /* while it is not ready every dial is refused */
    struct dial_rules *rules;  /* in use; not NULL while there are dials */
};

struct dial_wish {
    uint32_t lane;
    char sandbox[SANDBOX_NAME_MAX + 1];
    bool tls;
    struct authority authority;
};

struct dial_end {
    enum reason reason;  /* REASON_ALLOWED: connected */
    int fd;              /* then yours; else -1 */
    const char *detail;  /* a sentence for the record; "" */
    const char *address; /* dialled, or refused; "" */
    const char *aliases; /* CNAME chain, names separated by SP; "" */
    struct geography_facts where;
    uint32_t generation; /* by which it was judged */
};

/* Called once; e is borrowed, and the dial gone, when it returns. */
typedef void dial_done(void *ctx, const struct dial_end *e);

/* The wish is copied. Its time (to resolve and to connect) runs from now. NULL when out of memory. */
struct dial *dial_new(struct dial_tools *t, const struct dial_wish *w, dial_done *done, void *ctx);
/*
 * Judges the wish by the rules in use; again after they changed, at any later state (addresses that are
 * known are then vetted again). False: refused, `done` was called and the dial is gone.
 */
bool dial_judge(struct dial *d);
/* Goes to work. Once, after dial_judge. May call `done` before it returns. */
void dial_start(struct dial *d);
/*
 * Nobody wants it any more: `done` is called with REASON_CLIENT_CLOSED, now, or when the resolver is
 * done with the name, which cannot be stopped and so keeps its place among the lane's dials.
 */
void dial_abandon(struct dial *d);
/* Ends it without calling `done`. */
void dial_free(struct dial *d);

#endif

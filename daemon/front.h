/*
 * What control and attach have in common: a Unix socket at which users of this machine knock, a
 * channel to broker, who does part of what they ask for, and a stream to audit.
 */
#ifndef DAEMON_FRONT_H
#define DAEMON_FRONT_H

#include "audit/stream.h"
#include "base/child.h"
#include "base/loop.h"

#include <stdbool.h>
#include <sys/socket.h>

/* ctx is the owner. */
struct front_ops {
    /* Somebody has connected; fd is the callee's. */
    void (*on_knock)(void *ctx, int fd, const struct ucred *who);
    /* Broker answers the question id: code is 0 or an ERR_*, text JSON or a sentence. */
    void (*on_done)(void *ctx, uint32_t id, int code, struct view text);
    /* What was asked of broker will not be answered. */
    void (*on_broker_lost)(void *ctx);
};

/* The first member of its owner, so that child's ops may name front_on_peer and front_on_peer_gone. */
struct front {
    const struct front_ops *ops;
    struct loop *loop;
    struct child *child;
    struct event *listener; /* not added yet: its owner lets in once it knows who may */
    struct event *rested;   /* until the listener is looked at again */
    struct channel *broker; /* NULL: not there */
    struct audit_stream audit;
    uint64_t home; /* the network namespace that we are in (base/peer.h) */
};

/* f is zeroed; name is the records' producer. False: no memory; front_free is to be called all the same. */
bool front_init(struct front *f, struct loop *l, const struct role_args *args, const char *name,
                const struct front_ops *ops, const struct child_ops *child_ops);
void front_free(struct front *f);
/* True for a client in another network namespace, which is where sandboxes are. */
bool front_is_elsewhere(const struct front *f, int fd);

/*
 * Takes what a client that is turned away has sent and nobody reads, before its socket is closed: else the kernel
 * tells it of a reset, and some read no further than that.
 */
void front_drain(int fd);

/* For child's ops; ctx is the owner. */
int front_on_peer(void *ctx, enum role role, uint32_t lane, struct view name, int fd);
void front_on_peer_gone(void *ctx, enum role role, uint32_t lane);

#endif

/*
 * Role egress, one per lane: judges every request of the lane's sandboxes and speaks TLS and HTTP
 * with upstreams.
 *
 * It alone uses leases: for the length of a lease it holds a real secret, in the locked arena. It
 * takes canonical requests from its proxy (egress/lane_messages.h) as an enemy's, connected
 * sockets from dialer, leaves from ca, secrets from broker, plain bytes and facts from inspect. It
 * never parses a sandbox's raw HTTP or TLS, nor any body, and opens no file and no socket.
 *
 *   egress.c      the process: peers, generations, dispatch
 *   tunnel.c      CONNECT: identity, host, SNI, leaf          leaf.c   leaves, asked of ca
 *   exchange.c    states of one request and its answer        request.c  canonical form and verdict
 *   send.c        the half towards the upstream               answer.c   the half towards the sandbox
 *   upstream.c    connections, pool, sessions                 lease.c    secrets and what guards them
 *   inspection.c  bodies handed to inspect                    trail.c    audit records
 *   names.c       the DNS door's answers
 */
#ifndef EGRESS_EGRESS_H
#define EGRESS_EGRESS_H

#include "base/loop.h"
#include "base/role.h"

struct lane;

/* Runs the role; returns the exit status. */
int egress_main(const struct role_args *args);
/* What egress_main runs on a loop once its rights are narrowed, with its parent on PARENT_FD; for tests, once a process. NULL: no memory. */
struct lane *egress_new(struct loop *loop, const struct role_args *args);

#endif

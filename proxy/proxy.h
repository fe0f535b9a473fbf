/*
 * The sandbox-facing process, one for each lane.
 *
 * Who runs it: exeatd's parent, as `proxy`, with a uid of the lane.
 * What it alone does: it reads the bytes of a hostile client, speaks TLS and HTTP with it, and
 * turns them into facts.
 * What it holds: its listeners, the accepted connections, the lane's leaf key (made here, never
 * told), the channels to egress (LANE_FD) and to parent, both read with read() so that no
 * descriptor can arrive.
 * Messages: those of egress/lane_messages.h; from parent limits, commit, stop and status.
 * What it never does: hold a real secret or the CA's key, decide, dial, open a file (promise P1).
 *
 * Start: the key is made and the parser proved; rights are narrowed; only with the parent's
 * first commit are connections accepted. Without egress or parent the process ends.
 */
#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

#include "base/limits.h"
#include "base/loop.h"
#include "base/role.h"
#include "base/way_in.h"
#include "http/tls.h"

int proxy_main(const struct role_args *args);

/* ---- the same without a process around it, for tests ---- */

struct admission;
struct proxy;

struct proxy_listener {
    int fd; /* of a way that is carried: our end of a courier's channel (proxy/courier.h) */
    enum way_in way;
    const struct admission *admission; /* policy/admission.h; NULL: everybody. Borrowed */
};

/*
 * lane_fd is taken over; listeners stay the caller's, made non-blocking. server and limits are
 * borrowed and copied. Accepts nothing before proxy_open. NULL when out of memory.
 */
struct proxy *proxy_new(struct loop *l, struct tls_server *server, int lane_fd,
                        const struct proxy_listener *listeners, size_t n_listeners,
                        const struct limits *limits);
/* Closes everything. NULL is fine. */
void proxy_free(struct proxy *p);
/* Accepts from now on. */
void proxy_open(struct proxy *p);
/* Other limits from now on. */
void proxy_limit(struct proxy *p, const struct limits *limits);
/* Accepts no more, closes idle connections, lets exchanges end (ten seconds at most), then stops the loop. */
void proxy_stop(struct proxy *p);
/*
 * Serves a connected stream socket as if it had been accepted; takes over fd. peer: for the records; meant: the
 * address that a transparent client connected to, else "".
 */
void proxy_take(struct proxy *p, int fd, enum way_in way, const char *peer, const char *meant);
/* The same from a relay, which must send a PROXY header first. */
void proxy_take_relayed(struct proxy *p, int fd, const char *peer);
/* Ends what is over its time at `now` (nanoseconds of loop_now); a timer calls it each second. */
void proxy_sweep(struct proxy *p, uint64_t now);
/* JSON members: connections, exchanges, tunnels, leaves. */
void proxy_status(const struct proxy *p, struct buf *out);

#endif

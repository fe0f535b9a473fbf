/*
 * Attach: serves the socket that sandboxes are attached at (base/attach.h).
 *
 * Run by: the parent, one process, where the configuration has `attach`. It alone holds: the listener of that
 * socket. Takes: from the parent generations (who may attach what), our certificates ("public-ca") and its
 * peers; from launchers one request each, with listening sockets, after the kernel said who they
 * are; from broker what was issued.
 * It has the parent make a lane with these sockets, and broker issue for the sandbox; both end with the
 * launcher's connection. Never: reads a descriptor that passes through it, opens a file, decides more than who
 * may attach what, lets in somebody from another network namespace.
 */
#ifndef DAEMON_ATTACH_H
#define DAEMON_ATTACH_H

#include "base/loop.h"
#include "base/role.h"
#include "policy/bundle.h"

/* The process. 0, or 1 when it could not start or its loop failed. */
int attach_main(const struct role_args *args);

/* The same without narrowing, for tests: serves PARENT_FD and LISTENER_FD on the loop. NULL on failure. */
struct attach;
struct attach *attach_new(struct loop *l, const struct role_args *args);
void attach_free(struct attach *a);

#endif

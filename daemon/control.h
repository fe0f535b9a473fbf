/*
 * Control: serves the operator's Unix socket.
 *
 * Run by: the parent, one process. It alone holds: the listener of the control
 * socket. Takes: from the parent the permitted uids ("control-uids") and its
 * peers; from clients requests (daemon/control_messages.h), after SO_PEERCRED
 * said that they are root, this process's own user or a permitted uid; from
 * broker and the parent their answers.
 * Never: reads a descriptor that passes through it, opens a file, is reachable
 * from a sandbox (a Unix socket outside of it), dies because of a client: a
 * client that breaks the contract, asks twice at once or idles is dropped.
 */
#ifndef DAEMON_CONTROL_H
#define DAEMON_CONTROL_H

#include "base/loop.h"
#include "base/role.h"

/* The process. 0, or 1 when it could not start or its loop failed. */
int control_main(const struct role_args *args);

/* The same without narrowing, for tests: serves PARENT_FD and LISTENER_FD on the loop. NULL on failure. */
struct control;
struct control *control_new(struct loop *l, const struct role_args *args);
void control_free(struct control *c);

#endif

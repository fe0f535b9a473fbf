/*
 * The Unix sockets of the host that a file system shows: agents, container engines, buses. A socket
 * file works across network namespaces, so the sandbox must not have it.
 */
#ifndef RUN_HOST_SOCKETS_H
#define RUN_HOST_SOCKETS_H

#include "base/bytes.h"

/*
 * Appends absolute paths, each with a NUL. To bound: of each socket that is bound in this network namespace, and of
 * every other socket in the folders of those; what was bound by a name without its folder is found in the folders that processes are
 * in. These names are whatever any user of this machine has made of them: some may be of nothing, or of what is no socket. To named: of each that an
 * environment variable names, and of those that well-known agents have below the home directory; some may not exist. Both may be
 * the same buffer. ERR_SYSTEM, ERR_LIMIT.
 */
MUST_USE int host_sockets(struct buf *bound, struct buf *named);
/* Of one text: lines of /proc/net/unix; relative gets the names that are no absolute paths. Pure. */
void host_sockets_read(struct view text, struct buf *out, struct buf *relative);
/* Of one variable's value: a path, or a list of addresses such as "unix:path=/a,guid=1;unix:///b". Pure. */
void host_sockets_named(struct view value, struct buf *out);

/* Variables that name such a socket or a display; they mean nothing in a sandbox. Ends with NULL. */
extern const char *const host_socket_variables[];

#endif

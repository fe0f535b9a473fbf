/*
 * Listening sockets: made here, by the parent, or taken over by socket activation (daemon/activated.h).
 */
#ifndef DAEMON_LISTENERS_H
#define DAEMON_LISTENERS_H

#include "daemon/config.h"

/* A listening, close-on-exec descriptor, or -1 with a sentence in why that names the place in the configuration. */
int listener_open(const struct config_listener *l, struct buf *why);
/*
 * The operator's Unix socket at path. open: any user may connect, since the configuration names
 * some by uid; control looks at who it is.
 */
int listener_open_control(const char *path, bool open);
/* The socket that sandboxes are attached at (base/attach.h): whoever may reach the file may connect. */
int listener_open_attach(const struct config_attach *a);
/*
 * Whether an open one hears the interface that its configuration names. Sockets are bound to an interface's number: one
 * that was made anew under the same name is another, and one that was renamed is not what rules of nftables know.
 */
bool listener_hears(int fd, const struct config_listener *l);
/* "127.0.0.1:8901", the path, or "vsock:3128"; into out. */
const char *listener_name(const struct config_listener *l, char *out, size_t size);

#endif

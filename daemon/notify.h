/*
 * systemd's notification protocol (sd_notify(3)): one datagram to $NOTIFY_SOCKET. Written here
 * because it is ten lines and the library would pull more into the process.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

/* "READY=1", "RELOADING=1", "STOPPING=1", "STATUS=...": nothing happens where nobody listens. */
void notify_systemd(const char *state);

#endif

/*
 * Hostile builds only (make HOSTILE=1): what this process would try if an attacker had taken it
 * over. role_args.misbehave names one thing, of all lanes or "LANE/NAME" of one; the outcome is a log line, "hostile: NAME: denied 1",
 * "hostile: NAME: succeeded" or "hostile: NAME: heard 4", unless seccomp ends the process first.
 *
 *   after narrowing: open-file[=PATH], socket, connect-listener=ADDRESS:PORT (IPv4), ptrace, exec, signal-parent, send-fd
 *   with a policy:   open-unlisted[=AUTHORITY], wrong-sni=AUTHORITY, flood, bad-message, huge-credit, raw=AUTHORITY,
 *                    transparent=[NAME]|ADDRESS:PORT: a connection to that address with that SNI, lookup=NAME,
 *                    request=AUTHORITY|PLACEHOLDER[|PROXY-AUTHORIZATION]: a GET, and all that is heard of it;
 *                    overrun=...: the same with a body of which it sends far more than it has credit for
 *
 * In other builds these are nothing.
 */
#ifndef PROXY_HOSTILE_H
#define PROXY_HOSTILE_H

#include "base/role.h"
#include "proxy/state.h"

#ifdef EXEAT_HOSTILE

void proxy_hostile_narrowed(const struct role_args *args);
void proxy_hostile_serve(struct proxy *p, const struct role_args *args);
/* An answer to a tunnel or an exchange that no client has, or to a question for a name. */
void proxy_hostile_heard(const struct message *m);

#else

static inline void proxy_hostile_narrowed(const struct role_args *args) {
    (void)args;
}

static inline void proxy_hostile_serve(struct proxy *p, const struct role_args *args) {
    (void)p;
    (void)args;
}

static inline void proxy_hostile_heard(const struct message *m) {
    (void)m;
}

#endif
#endif

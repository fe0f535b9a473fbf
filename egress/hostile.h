/*
 * Hostile builds only (make HOSTILE=1): what egress would try if an attacker had taken it over.
 * role_args.misbehave names one thing, "egress:NAME=ARGUMENT", or of one lane "egress:LANE/NAME=ARGUMENT"; the outcome is a log line,
 * "hostile: NAME: denied REASON" or "hostile: NAME: succeeded", unless seccomp ends the process.
 *
 *   open-file[=PATH], socket     system calls
 *   dial=HOST:PORT               a connection to a name or address that policy does not list
 *   leaf=HOST                    a leaf for such a name
 *   lease=SANDBOX/CREDENTIAL     a secret with a made-up placeholder, at the authority of dial
 *   certificate=SANDBOX/NAME     the key of a client certificate, likewise
 *   packet[=TEXT]                a packet to audit that holds no record, or nothing
 *
 * In other builds these are nothing.
 */
#ifndef EGRESS_HOSTILE_H
#define EGRESS_HOSTILE_H

#include "egress/lane.h"

#ifdef EXEAT_HOSTILE

void hostile_plan(const struct role_args *args);
/* After the first generation is in use. */
void hostile_start(struct lane *l);
/* An answer to a question that no exchange asked; true when it was ours. */
bool hostile_heard(const char *what, const struct message *m, bool granted);

#else

static inline void hostile_plan(const struct role_args *args) {
    (void)args;
}

static inline void hostile_start(struct lane *l) {
    (void)l;
}

static inline bool hostile_heard(const char *what, const struct message *m, bool granted) {
    (void)what;
    (void)m;
    (void)granted;
    return false;
}

#endif
#endif

/*
 * Who may talk to whom: the table of channels between processes (docs/architecture.md), made as
 * both ends come up and made anew when one was restarted.
 */
#ifndef DAEMON_LINKS_H
#define DAEMON_LINKS_H

#include "daemon/state.h"

/* Whether there may be a channel between the two. */
bool links_may_talk(const struct process *x, const struct process *y);
/* of is up: connects it with every process that is up too, and hands it its audit stream. */
void links_make(struct process *of);
/* Audit gets the reading end of another's stream. */
void links_send_records(struct process *audit, const struct process *of);
/*
 * of has ended for good: whether audit has read its records to the end, and let go of them. To be asked
 * again and again.
 */
bool links_records_ended(struct process *of);
/* of is gone: those that had a channel with it are told. */
void links_lost(struct process *of);
/* Sends one end of something to a process. fd is taken over. */
void links_send_peer(struct process *to, enum role role, uint32_t lane, struct view name, int fd);

#endif

/*
 * `exeat status`: every process is asked for its figures, and what is known by then is told.
 */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include "daemon/state.h"

/* Asks all; status_told or a timer ends it, and control gets its answer. */
void status_ask(struct parent *p, uint32_t ask);
MUST_USE int status_take(struct process *of, struct message *m);
/* Appends a member "restart", the words that only a start takes over and that the configuration says otherwise now, if there are any. */
void status_put_restart(const struct parent *p, struct buf *out);
/* Answers control's ask. */
void control_answer(struct parent *p, uint32_t ask, int code, struct view text);

#endif

/*
 * The parent's side of attached sandboxes: what process attach asks for becomes lanes, and it is told how they
 * fare. Of what it says the parent reads numbers, a name that is checked, and descriptors.
 */
#ifndef DAEMON_ATTACHED_H
#define DAEMON_ATTACHED_H

#include "daemon/state.h"

enum { ATTACHED_BODY_MAX = 128 };

/* Attach's messages (base/child.h). Anything but 0 drops its channel. */
MUST_USE int attached_add(struct process *attach, struct message *m);
MUST_USE int attached_listener(struct process *attach, struct message *m);
MUST_USE int attached_end(struct process *attach, struct message *m);
MUST_USE int attached_open(struct process *attach, struct message *m);
MUST_USE int attached_probed(struct process *attach, struct message *m);
/* An egress is up: it is told when its lane is open. */
void attached_greet(struct process *egress);
/* It has opened its lane. Anything but 0 drops its channel. */
MUST_USE int attached_opened(struct process *egress);
/* Control asks that the sandbox be probed; it is answered now or when attach has told what was found. */
void attached_ask_probe(struct parent *p, uint32_t ask, struct view sandbox);
/* Attach has died, and with it all connections that its lanes live by. */
void attached_lost(struct parent *p);
/* A lane's proxy accepts from now on; what comes in is refused until it is open. */
void attached_serves(struct lane *l);
/* Tells attach about a lane that it has asked for. */
void attached_tell(const struct lane *l, enum lane_news news, const char *text);

#endif

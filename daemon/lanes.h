/*
 * The lanes: which there are, their listeners, and how they come and go while others serve on. A lane is who
 * (a sandbox, or those that share it) and where (its listeners): a configuration that changes either ends the
 * lane and begins another, and one that has both as before leaves the lane alone.
 *
 * A lane serves once a generation whose text has it is in use. One that ends is gone when all its processes
 * were reaped and audit has read their records to the end; only then is its number, and with it the
 * uid, used again.
 */
#ifndef DAEMON_LANES_H
#define DAEMON_LANES_H

#include "daemon/state.h"

/* Those of the configuration at the start, with their listeners. 0, or an exit status. */
MUST_USE int lanes_open(struct parent *p);
/* NULL when there is none of that number. */
struct lane *lanes_find(struct parent *p, uint32_t id);
/* The sandboxes that its own line names, separated by SP; none of a lane for everybody, or of one that has ended. */
struct view lanes_names(const struct lane *l);
/* Whether it is one of these. */
bool lanes_names_it(const struct lane *l, struct view sandbox);
/* Whether a sandbox may be one of the lane's: for everybody any may. */
bool lanes_serves(const struct lane *l, struct view sandbox);
/* Starts the processes of one that has none. */
void lanes_start(struct lane *l);

/*
 * Makes p->rollout.plan of a configuration's text: every lane there is has its place in it or ends with
 * it; new ones have their listeners, and no process yet. On failure all is as before, and why (a sentence) is in
 * out. ERR_DENIED: it takes a restart.
 */
MUST_USE int lanes_plan(struct parent *p, struct view config_text, struct buf *out);
/* The plan is in use: what it does not have ends, what is new is started. */
void lanes_commit(struct parent *p);
/* The plan comes to nothing. */
void lanes_abandon(struct parent *p);
/* The lanes of the generation that is made, from those of its bundle (bundle_put_lane), and of attached sandboxes. */
void lanes_put(struct parent *p, uint32_t number, struct view bundle_lanes, struct buf *out);
/* Whether a process belongs to those that the text of that generation is for. */
bool lanes_has(const struct process *of, uint32_t number);

/*
 * Adds one for an attached sandbox. ERR_EXISTS: it is attached already; ERR_DENIED: the configuration has a lane for it;
 * ERR_LIMIT: no number or uid is left; ERR_MEMORY.
 */
MUST_USE int lanes_attach(struct parent *p, struct view sandbox, struct lane **out);
/* It is attached and broker has issued nothing for it yet: no text has it before. NULL: no lane. */
bool lanes_awaits_issue(const struct lane *l);
/* Whether one does. */
bool lanes_await_issue(const struct parent *p);
/* Broker has issued something for the sandbox. */
void lanes_issued(struct parent *p, struct view sandbox);
/* Ends it: proxy at once, egress when it has written its records. The next generation is without it. */
void lanes_end(struct lane *l, const char *why);
/* Removes the files of the listeners on Unix sockets. */
void lanes_remove_sockets(struct parent *p);

#endif

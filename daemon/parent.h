/*
 * Role parent: starts, watches, reloads; opens listeners and hands out descriptors. It parses no
 * byte from a client, an upstream or DNS: of what its children say it reads fixed numbers only, and
 * passes the rest on.
 */
#ifndef DAEMON_PARENT_H
#define DAEMON_PARENT_H

#include "daemon/state.h"

struct parent_options {
    const char *config_file;
    const char *misbehave; /* hostile builds: for every role */
    bool debug;
};

/* Runs until it is stopped; returns the exit status (3: configuration or policy is invalid). */
int parent_main(const struct parent_options *options);

/* What children may say, and what becomes of their channels, from now on as parent_main has it. */
void parent_listen(struct parent *p);
/* Stops all processes in order; then parent_main returns. */
void parent_stop(struct parent *p);

/* A record of an event of this lane, with its number and sandboxes. detail may be NULL. */
void parent_record_lane(const struct lane *l, const char *event, const char *detail);

/* From rollout.c: a load ended badly, for what the lines of text say, or a generation is in use everywhere. */
void parent_loaded(struct parent *p, int result, struct view text);
void parent_committed(struct parent *p);

#endif

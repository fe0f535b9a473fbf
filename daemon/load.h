/*
 * Role load: a short-lived child that reads configuration, policy and trust anchors, checks them
 * with all expectations, and writes the text of a generation to the parent, who parses none of it.
 *
 * On its descriptor PARENT_FD it writes: u8 outcome, then the configuration's text as a block and the bundle
 * (policy/bundle.h) without registry, or the errors as text for the operator. Where RUNNING_FD has the text of the
 * running generation, and unless the configuration says `reload unconfirmed`, a policy that allows more than the
 * running one is refused (daemon/confirm.h).
 */
#ifndef DAEMON_LOAD_H
#define DAEMON_LOAD_H

#include "daemon/config.h"

enum load_outcome { LOAD_BAD, LOAD_GOOD, LOAD_UNCONFIRMED };

int load_main(const char *config_file);

/* Reads and parses the configuration; on failure why says what is wrong. */
MUST_USE int load_config(const char *path, struct config *out, struct buf *why);

#endif

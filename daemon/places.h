/*
 * The state directory: who owns which folder, and the key files that roles get as open descriptors.
 */
#ifndef DAEMON_PLACES_H
#define DAEMON_PLACES_H

#include "daemon/state.h"

/* Whether roles get uids of their own: exeatd is root, or was given CAP_SETUID. */
bool places_separate(void);
/*
 * The uid a process runs as: that of the daemon where uids are not separate, else one of the range
 * `uids`: the first eight are the shared roles', then one for each lane.
 */
uid_t place_uid(const struct parent *p, enum role role, uint32_t lane);
/* How many lanes there may be at once: where uids are separate each takes one. */
uint32_t places_lanes(const struct parent *p);
/* Whether nobody else may write where the state is. False with a line in the log; nothing was made. */
bool places_check(const struct parent *p);
/* Takes the state directory for this process until it ends. False with a line in the log, which names who has it. */
bool places_claim(const struct parent *p);
/* Makes vault/ and audit/ for their owners, checks modes. False with a line in the log. */
bool places_prepare(const struct parent *p);
/* The directory that a role owns, or NULL; into out. */
const char *place_directory(const struct parent *p, enum role role, char *out, size_t size);
/* Sends a role its files ("ca-key", ...). False with a line in the log when one cannot be opened. */
bool place_files(const struct parent *p, struct process *of);

#endif

/*
 * What a start found of the log that only tampering or a disk that lies explains. The events of it are in the chain; so
 * that nobody misses them, they also stand in the file `findings` of the log's directory, a line each, until an operator
 * takes that file away: as long as it lies there `exeat status` tells of it.
 */
#ifndef AUDIT_FINDINGS_H
#define AUDIT_FINDINGS_H

#include "base/bytes.h"

#define FINDINGS_FILE "findings"

enum { FINDINGS_MAX = 16 << 10 };

/* Adds lines, as a whole or not at all; beyond FINDINGS_MAX those that are there are told of already. ERR_SYSTEM (errno). */
MUST_USE int findings_add(int dir, struct view lines);
/* The first line and how many others, as one sentence; nothing when there is no such file. */
void findings_tell(int dir, struct buf *out);

#endif

/*
 * Whole files: small things that are read or written in one go.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/bytes.h"

#include <sys/types.h>

/*
 * A file that somebody else may have put there: a regular one or none, and close-on-exec. As open(2), which is never waited in;
 * ENXIO: it is of another kind.
 */
MUST_USE int file_open(const char *path, int flags, mode_t mode);
/* What errno says of that. */
const char *file_why(void);
/* Appends all of fd (at most max bytes) to out and closes fd. ERR_SYSTEM, ERR_LIMIT. */
MUST_USE int file_read(int fd, size_t max, struct buf *out);
/* Writes all of v; fd stays open. ERR_SYSTEM. */
MUST_USE int file_write(int fd, struct view v);

#endif

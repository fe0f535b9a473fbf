/*
 * Whole files: small things that are read or written in one go.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/bytes.h"

/* Appends all of fd (at most max bytes) to out and closes fd. ERR_SYSTEM, ERR_LIMIT. */
MUST_USE int file_read(int fd, size_t max, struct buf *out);
/* Writes all of v; fd stays open. ERR_SYSTEM. */
MUST_USE int file_write(int fd, struct view v);

#endif

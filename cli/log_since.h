/*
 * From when on records are wanted, as people say it.
 */
#ifndef CLI_LOG_SINCE_H
#define CLI_LOG_SINCE_H

#include "audit/chain.h"

#define LOG_SINCE_FORM                                                                             \
    "it is a time in UTC such as 2026-01-02 or 2026-01-02T03:04:05, or how long ago: 90s, 5m, "    \
    "2h, 7d"

/* The time as it stands in lines, or the beginning of one; now in nanoseconds. ERR_BAD. */
MUST_USE int log_since_read(const char *text, uint64_t now, char out[CHAIN_TIME_SIZE]);

#endif

/*
 * vault.head: how far the vault has come, in a file beside it, so that an
 * older vault.db that was put in its place is noticed (AD-06). Lines of
 * "counter hmac", authenticated by a key derived from the key-encryption key.
 * Written anew after each change, by rename; while a rekey is in progress it
 * has one line for each of the two keys.
 *
 * Who can bring back both files in an older state and knows nothing else goes
 * unnoticed here; the counters in the audit trail then show it.
 */
#ifndef BROKER_HEAD_H
#define BROKER_HEAD_H

#include "broker/seal.h"

struct head_line {
    const struct seal_keys *keys;
    uint64_t counter;
};

/* The counter of the line that these keys wrote. ERR_MISSING: no file. ERR_CRYPTO: no such line. ERR_SYSTEM. */
MUST_USE int head_read(const char *path, const struct seal_keys *keys, uint64_t *counter);
/* Replaces the file; on the disk when it returns 0. ERR_SYSTEM. */
MUST_USE int head_write(const char *directory, const char *path, const struct head_line *lines,
                        size_t n);

#endif

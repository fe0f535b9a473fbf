/*
 * OpenSSL's memory in a role: allocated by us, so that it is known whether it was short of memory (its own errors do not
 * always say: some of its parts take their errors back and report another failure), and so that keys can lie in the
 * arena (base/secret.h). For the whole process, which has one thread.
 */
#ifndef BASE_OPENSSL_MEMORY_H
#define BASE_OPENSSL_MEMORY_H

#include "base/bytes.h"

/* Before OpenSSL allocates anything; again is fine. ERR_CRYPTO: it has already, and without us. */
MUST_USE int openssl_memory_start(void);
/* Whether what OpenSSL allocates from now on lies in the arena. */
void openssl_memory_into_arena(bool yes);
/* How many of its allocations failed so far; always 0 unless started. */
unsigned long openssl_memory_refused(void);

/* Bytes, of one allocation, that hold what must not stay in memory; from NULL: none. */
struct openssl_traces {
    uint8_t *from, *to;
};

/*
 * Until the next call, these bytes are cleared once OpenSSL gives back the memory in which they lie, and *traces is emptied.
 * NULL: none are. OpenSSL itself (SSL_OP_CLEANSE_PLAINTEXT) would clear all of a buffer, of which a short record used
 * little, eight bytes at a time.
 */
void openssl_memory_watch(struct openssl_traces *traces);

#endif

/*
 * The CA's files in the state directory: ca/ca.key (0600) and ca/ca.pem, ca/previous.pem while a
 * rotation overlaps, and with each change what everybody may read (public.h), our certificates with
 * the new one first. What is made belongs to whom the state directory belongs, also when root makes
 * it. Every file is replaced as a whole; a rotation that was interrupted is taken up
 * again by the next one.
 */
#ifndef CLI_CA_STORE_H
#define CLI_CA_STORE_H

#include "base/bytes.h"

#include <limits.h>

enum { CA_FILE_MAX = 64 * 1024 };

struct ca_store {
    int ca, public; /* the directories, open; ca is locked against another command */
    char public_path[PATH_MAX];
    bool only_certificates; /* set once it is open: of the public files only ca.pem is written */
};

/* Opens state/ca and state/public, made when `make`. ERR_SYSTEM (errno), ERR_AGAIN: another command has them. */
MUST_USE int ca_store_open(const char *state, bool make, struct ca_store *out);
void ca_store_close(struct ca_store *s);
bool ca_store_has(const struct ca_store *s, const char *name);

/* A new key and certificate in an empty store. ERR_EXISTS when a part of one is there. */
MUST_USE int ca_store_init(struct ca_store *s, uint64_t now);
/* A new key and certificate; the old certificate becomes previous.pem. ERR_EXISTS while a rotation overlaps. */
MUST_USE int ca_store_rotate(struct ca_store *s, uint64_t now);
/* Ends the overlap. ERR_MISSING when there is none. */
MUST_USE int ca_store_finish(struct ca_store *s);

/* Appends public/ca.pem below state. ERR_MISSING, ERR_SYSTEM. */
MUST_USE int ca_store_certificates(const char *state, struct buf *out);

#endif

/*
 * An NSS database that trusts the certificates of a sandbox, for Chromium and others that know no other place. Made by
 * certutil (Debian: libnss3-tools) where that is installed; what goes wrong is said, and no more.
 *
 * certutil takes about as long as all else of a launch, so it is begun for the certificates that exeatd is expected
 * to name, beside all else.
 */
#ifndef CLI_NSS_STORE_H
#define CLI_NSS_STORE_H

#include "base/bytes.h"

#include <stdbool.h>
#include <sys/types.h>

struct nss_store {
    pid_t certutil;      /* what was begun; 0: nothing */
    struct buf expected; /* the certificate that it was begun for */
};

/* Whether certutil is there. */
bool nss_store_can_be_made(void);
/* Begins a database in a folder for the first certificate of `expected` (PEM), if there is one. */
void nss_store_begin(struct nss_store *s, const char *folder, struct view expected);
/* Makes `nssdb` in the folder, for the certificates in ca (PEM): what was begun, if that was for the first of them. */
void nss_store_end(struct nss_store *s, const char *folder, struct view ca);
/* In place of nss_store_end, or behind it. All zero is fine. */
void nss_store_free(struct nss_store *s);

#endif

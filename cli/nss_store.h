/*
 * An NSS database that trusts the certificates of a sandbox, for Chromium and others that know no other place. Made by
 * certutil (Debian: libnss3-tools) where that is installed.
 */
#ifndef CLI_NSS_STORE_H
#define CLI_NSS_STORE_H

#include "base/bytes.h"

#include <stdbool.h>

/* Whether certutil is there. */
bool nss_store_can_be_made(void);
/* Makes `nssdb` in a folder, for the certificates in ca (PEM). Without certutil there is none; what goes wrong is said, and no more. */
void nss_store_make(const char *folder, struct view ca);

#endif

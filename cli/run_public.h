/*
 * The public files (public.h, nss_store.h) of one sandbox, in the folder `public` of its directory, which the sandbox
 * sees at RUN_PUBLIC.
 */
#ifndef CLI_RUN_PUBLIC_H
#define CLI_RUN_PUBLIC_H

#include "cli/public.h"

#include <limits.h>

enum { RUN_PUBLIC_SIZE = PATH_MAX + 16 };

/* Makes the folder; its path into out. -1 after saying why not. */
int run_public_make(const char *directory, char out[RUN_PUBLIC_SIZE]);
/* Reads the system's roots, or none for strict trust. -1 after saying why not. */
int run_public_read(bool strict, struct public_roots **out);
/* Fills the folder, which the command sees at `seen`, for the certificates in ca; takes roots. -1 after saying why not. */
int run_public_write(const char *folder, const char *seen, struct view ca,
                     struct public_roots *roots);

#endif

/*
 * The public files (public.h, nss_store.h) of one sandbox, in the folder `public` of its directory. To be made, begun,
 * and written when exeatd has named its certificates.
 */
#ifndef CLI_RUN_PUBLIC_H
#define CLI_RUN_PUBLIC_H

#include "cli/nss_store.h"
#include "cli/public.h"

#include <limits.h>

enum { RUN_PUBLIC_SIZE = PATH_MAX + 16 };

struct run_public {
    char folder[RUN_PUBLIC_SIZE];
    const char *seen;           /* where the command finds it */
    struct public_roots *roots; /* the system's, on their way into the folder; NULL: none */
    struct nss_store nss;
};

/* Makes the folder, which the command finds at RUN_PUBLIC, or where it is. -1 after saying why not. */
int run_public_make(struct run_public *p, const char *directory, bool where_it_is);
/* Begins what takes long for the certificates of the state, if they may be read. */
void run_public_begin(struct run_public *p, const char *state);
/* Reads the system's roots, or none for strict trust. -1 after saying why not. */
int run_public_read(struct run_public *p, bool strict);
/* Fills the folder for the certificates in ca. Behind run_public_read, once. -1 after saying why not. */
int run_public_write(struct run_public *p, struct view ca);
/* The folder stays. All zero is fine. */
void run_public_free(struct run_public *p);

#endif

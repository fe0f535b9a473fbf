/*
 * The folder that a sandbox's NSS database is shown in (run/trust.h), on the host: it must be there to be covered, so
 * an empty one is made where the user has none, and removed when no sandbox uses it any more.
 */
#ifndef CLI_NSS_PLACE_H
#define CLI_NSS_PLACE_H

#include <stdbool.h>

struct nss_folder {
    int fd;    /* -1: there is none */
    bool ours; /* its lock is held by all who use it */
};

/* The second is in the first: what their names lead to may change, as a sandbox sees them. */
struct nss_place {
    struct nss_folder parent, place;
};

#define NSS_PLACE_NONE                                                                             \
    {                                                                                              \
        .parent = {.fd = -1}, .place = {.fd = -1 }                                                 \
    }

/* Of one of none. What cannot be made is done without. */
void nss_place_make(struct nss_place *p);
/* Leaves what is not empty, or in use. */
void nss_place_remove(struct nss_place *p);

#endif

/*
 * Users and groups of a user namespace: this process' own, and nobody else's.
 */
#ifndef RUN_IDENTITY_H
#define RUN_IDENTITY_H

#include <sys/types.h>

/* In a user namespace that was just made: maps uid and gid of before onto themselves. -1 with errno. */
int identity_keep(uid_t uid, gid_t gid);

#endif

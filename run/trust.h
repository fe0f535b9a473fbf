/*
 * Which roots programs trust that read no variable of ours: the files in RUN_PUBLIC are shown wherever
 * the system's own bundles are, and, for strict trust, nothing else where those are. A copy of its NSS database, if it
 * has one, is in place of the user's, where that has a folder, and is gone with the sandbox.
 */
#ifndef RUN_TRUST_H
#define RUN_TRUST_H

#include "run/plan.h"

#include <limits.h>

/* Where programs that use NSS look, whoever their user is, and the folder that it is in. False: the user has no home. */
bool trust_nss_place(char parent[PATH_MAX], char place[PATH_MAX]);
/* Once the files have been written. -1 after saying what is wrong. */
int trust_show(const struct run_plan *plan);

#endif

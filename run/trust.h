/*
 * Which roots programs trust that read no variable of ours: the files in RUN_PUBLIC are shown wherever
 * the system's own bundles are, and, for strict trust, nothing else where those are. A copy of its NSS database, if it
 * has one, is in place of the user's, and is gone with the sandbox.
 */
#ifndef RUN_TRUST_H
#define RUN_TRUST_H

#include "run/plan.h"

/* Once the files have been written. -1 after saying what is wrong. */
int trust_show(const struct run_plan *plan);

#endif

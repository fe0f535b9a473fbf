/*
 * The probes that `exeat run` makes inside of a sandbox, by the process that is to be the command, before it is:
 * nothing is waited for, exeat is asked nothing.
 */
#ifndef RUN_PROBE_SELF_H
#define RUN_PROBE_SELF_H

#include "run/plan.h"

/* 0: everything is contained; else -1 after saying what is not. What the user shows by --bind is his affair. */
int probe_self(const struct run_plan *plan);

#endif

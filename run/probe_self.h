/*
 * The probes that `exeat run` makes inside of a sandbox, by the process that is to be the command, before it is, and by
 * another one with the same rights when exeatd asks for them again: nothing is waited for, exeat is asked nothing.
 */
#ifndef RUN_PROBE_SELF_H
#define RUN_PROBE_SELF_H

#include "run/plan.h"
#include "run/report.h"

/* Appends what was found to report. What the user shows by --bind is his affair. */
void probe_self(const struct run_plan *plan, struct buf *report);

#endif

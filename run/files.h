/*
 * The sandbox's mount namespace. Unix sockets work across network namespaces, so files are part of
 * the boundary: a fresh /proc, /dev, /run and /tmp, nothing at the sockets of the host, nothing where
 * exeat keeps its state. All of it is done in the namespace that this process owns; the command then
 * gets a copy in a namespace of its own, where the kernel lets nobody take away what covers something.
 */
#ifndef RUN_FILES_H
#define RUN_FILES_H

#include "run/plan.h"

/* -1 after saying what is wrong. */
int files_cover(const struct run_plan *plan);
/* Enters plan->folder as it is seen now; an older reference would lead below what covers it. */
int files_enter(const struct run_plan *plan);

#endif

/*
 * The command's environment: what the launcher has, and what makes clients use exeat.
 */
#ifndef RUN_VARIABLES_H
#define RUN_VARIABLES_H

#include "base/bytes.h"

/* Sets each "NAME=value" of the blocks in this process' environment. -1 after saying that it cannot. */
int variables_set(struct view blocks);

#endif

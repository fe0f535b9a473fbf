/*
 * Network interfaces by their own names. Whoever asks the kernel for one by name gets it by an alternative name (altname of
 * ip-link(8)) as well; nftables' `iifname` knows its own name only, and would match nothing.
 */
#ifndef BASE_INTERFACE_H
#define BASE_INTERFACE_H

#include <stdbool.h>

enum { INTERFACE_SIZE = 16 /* of its own name with its NUL, as the kernel has it */ };

/* The own name of the interface that has this name in any way. False: there is none. */
bool interface_own_name(const char *name, char out[INTERFACE_SIZE]);
/* Whether the interface of that number is there and has this name as its own. */
bool interface_is(unsigned index, const char *name);

#endif

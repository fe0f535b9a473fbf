/*
 * Methods that a policy may name: those of the IANA registry (RFC 9110 18.2)
 * and PURGE. Any other method is matched only by the `*` of a never line.
 */
#ifndef POLICY_METHOD_H
#define POLICY_METHOD_H

#include "base/bytes.h"

/* The method's bit, or 0. Methods compare with case (RFC 9110 9.1). */
uint64_t method_bit(struct view method);
/* The bits of all methods that can be granted: all but CONNECT, TRACE and PRI. */
uint64_t methods_grantable(void);
/* CONNECT and TRACE are refused whatever a policy says. */
bool method_is_refused(struct view method);
/* The i-th method's name, or the empty view at the end: for suggestions. */
struct view method_at(size_t i);

#endif

/*
 * Methods that a policy may name: those of the IANA registry (RFC 9110 18.2)
 * and PURGE. Any other method is matched only by the `*` of a never line.
 */
#ifndef POLICY_METHOD_H
#define POLICY_METHOD_H

#include "policy/target.h"

/* The method's bit, or 0. Methods compare with case (RFC 9110 9.1). */
uint64_t method_bit(struct view method);
/* The bits of all methods that can be granted: all but CONNECT, TRACE and PRI. */
uint64_t methods_grantable(void);
/* CONNECT and TRACE are refused whatever a policy says. */
bool method_is_refused(struct view method);
/*
 * Whether a server may take the value of a parameter, member or form field of this name for the
 * method of the request (PN-09): `_method` and what PHP makes of `.method`, ` _method` and
 * `[method`, `_method[]`, `$httpMethod`, `X-HTTP-Method-Override` and the like. Letters and digits are
 * compared, without case, up to a '[' or NUL behind them; "method" and "httpMethod" alone are ordinary
 * names, and count only behind a byte that is neither letter nor digit.
 */
bool method_is_override_name(struct view decoded_name);
/*
 * Some frameworks take the method from the query: what was judged would not be what is done
 * (PN-09). Some split it at ';' as well.
 */
bool method_is_overridden(const struct target *t);
/* The i-th method's name, or the empty view at the end: for suggestions. */
struct view method_at(size_t i);

#endif

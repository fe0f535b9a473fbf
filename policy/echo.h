/*
 * The echo host: a name that exeat answers for itself, to every sandbox of the policy, so that a way in can be
 * tried without a rule for it and without a byte that leaves (docs/decisions/0011). It is reserved: no service
 * has it as its host, and a star does not mean it.
 */
#ifndef POLICY_ECHO_H
#define POLICY_ECHO_H

#include "policy/authority.h"

#define ECHO_HOST "echo.exeat.internal"

bool echo_is_host(const struct authority *a);
/* Whether something is there: TLS on port 443, clear HTTP on port 80. */
bool echo_is_open(const struct authority *a, bool tls);

#endif

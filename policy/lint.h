/*
 * What is suspicious in a policy that loads (`exeat policy lint`). Pure.
 */
#ifndef POLICY_LINT_H
#define POLICY_LINT_H

#include "policy/policy.h"

struct lint_finding {
    const char *code; /* stable: docs/policy.md lists them */
    struct position at;
    char text[256];     /* what is wrong */
    const char *remedy; /* what to do about it */
};

/*
 * Calls found for each finding; the order is that of services and their lines, then of grants. now: seconds
 * since 1970.
 */
void policy_lint(const struct policy *p, uint64_t now,
                 void (*found)(void *ctx, const struct lint_finding *f), void *ctx);

#endif

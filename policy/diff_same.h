/*
 * Parts of two policies that say the same. For diff.c: what is the same on both sides needs no comparing,
 * however complicated it is. All may say false where a yes is hard to see, never the other way round.
 *
 * Names are compared; positions and expectations are not.
 */
#ifndef POLICY_DIFF_SAME_H
#define POLICY_DIFF_SAME_H

#include "policy/rules.h"

/* The same methods, path and conditions, whatever they are of. */
bool rule_same(const struct rule *a, const struct rule *b);
/*
 * The same name and all that is judged of a service beside its lines, its hosts and ports, and what is
 * asked of addresses and upstreams.
 */
bool service_head_same(const struct service *a, const struct service *b);
/* These, and the same lines in the same order. */
bool service_same(const struct service *a, const struct service *b);
/* Operations of services with the same head: the same name, credential, and word `anonymous`. */
bool operation_same(const struct operation *a, const struct operation *b);
/* The same sandbox blocks with the same lines of grants in the same order. */
bool blocks_same(const struct policy *a, const struct policy *b);

#endif

/*
 * What a request carries, weighed against the credential of its operation
 * (P7). Internal to policy/. Pure.
 */
#ifndef POLICY_JUDGE_MATERIAL_H
#define POLICY_JUDGE_MATERIAL_H

#include "policy/policy.h"

_Static_assert(MATERIALS_MAX <= 32, "a material is one bit of verdict.swaps");

/* Whether m is well-formed and where this place is. */
bool material_stands_in(const struct material *m, const struct credential_place *place);
/*
 * The gravest fault of what the request carries, or REASON_ALLOWED; c is NULL where the operation has no
 * credential. *swaps: bits of the materials to replace.
 */
enum reason judge_materials(const struct service *s, const struct credential *c,
                            const struct request_facts *f, uint32_t *swaps);

#endif

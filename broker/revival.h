/*
 * Revival: what a restored copy of the vault brings back. Whoever was removed, or issued anew, since
 * the copy was made is served again by what it held then, and a secret has its earlier value: the
 * operator and the audit trail are told their names. Pure.
 */
#ifndef BROKER_REVIVAL_H
#define BROKER_REVIVAL_H

#include "broker/inventory.h"

/* What was there before: zeroed before revival_note, freed with revival_free. */
struct revival {
    struct buf sandboxes, secrets;
};

/* before: NULL when the vault was locked. ERR_MEMORY. */
MUST_USE int revival_note(struct revival *r, const struct inventory *before);
bool revival_of_sandbox(const struct revival *r, const struct vault_sandbox *s);
bool revival_of_secret(const struct revival *r, const struct vault_secret *s);
void revival_free(struct revival *r);

#endif

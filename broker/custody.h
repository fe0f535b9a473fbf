/*
 * Custody: what leases and the operator's requests share. The vault or why
 * there is none, the mandate in use, and the journal. Owned by the process
 * (broker/broker.c).
 */
#ifndef BROKER_CUSTODY_H
#define BROKER_CUSTODY_H

#include "broker/journal.h"
#include "broker/mandate.h"
#include "broker/vault.h"

struct custody {
    const char *directory;
    uint8_t *kek;        /* in the arena; NULL: none that is of use was given */
    struct vault *vault; /* NULL: locked, and `why` says why */
    char why[VAULT_WHY_SIZE];
    struct mandate *mandate; /* NULL before the first generation */
    struct journal *journal;
    uint64_t lent, refused; /* leases, for status */
};

/* Opens the vault with the content of vault.key; what is wrong with either is logged, and leaves it locked. */
void custody_open(struct custody *c, struct view key_text);
void custody_close(struct custody *c);
/* Grows with each change of the vault (vault_counter); 0 while it is locked. */
uint64_t custody_state(const struct custody *c);
/* Replaces the key by the one the vault was rekeyed with; kek is taken over. */
void custody_take_key(struct custody *c, uint8_t *kek);

#endif

/*
 * The broker's audit records (audit/record.h): one for each lease that was
 * given or refused, one for each thing an operator did, written before it is
 * done. What cannot be recorded is not done.
 */
#ifndef BROKER_LEDGER_H
#define BROKER_LEDGER_H

#include "base/loop.h"
#include "policy/authority.h"
#include "policy/reason.h"

struct ledger;

struct ledger_lease {
    uint32_t lane, generation, version; /* version 0: none was lent */
    struct view sandbox, credential;
    const struct authority *authority;
    enum reason reason;
};

struct ledger_event {
    const char *event; /* "secret_added" */
    uint32_t uid;
    struct view sandbox, credential; /* empty where there is none */
    uint32_t version;                /* of the secret; 0: none */
    uint64_t state;                  /* the vault's counter before it was done */
    const char *detail;              /* or NULL */
};

struct ledger *ledger_new(struct loop *l);
void ledger_free(struct ledger *g);
/* Takes over the writing end that the parent sent; replaces an earlier one. ERR_MEMORY. */
MUST_USE int ledger_attach(struct ledger *g, int fd);
/* A decision when refused, an event when lent. Anything but 0: nothing may be lent. */
MUST_USE int ledger_lease(struct ledger *g, const struct ledger_lease *lease);
/* Anything but 0: it must not be done. */
MUST_USE int ledger_event(struct ledger *g, const struct ledger_event *event);

#endif

/*
 * The broker's audit records (audit/record.h): one for each lease that was
 * given or refused, one for each thing an operator did, written before it is
 * done. What cannot be recorded is not done.
 */
#ifndef BROKER_JOURNAL_H
#define BROKER_JOURNAL_H

#include "base/loop.h"
#include "policy/authority.h"
#include "policy/reason.h"

struct journal;

struct journal_lease {
    uint32_t lane, generation, version; /* version 0: none was lent */
    bool unenforced;                    /* the lane */
    struct view sandbox, credential;
    const struct authority *authority;
    enum reason reason;
    const char *event;          /* what is recorded when it was lent */
    const char *detail;         /* when it was refused, beyond the reason; or NULL */
    const uint8_t *certificate; /* the fingerprint of what was lent; NULL: a secret was */
};

struct journal_event {
    const char *event; /* "secret_added" */
    uint32_t uid;
    struct view sandbox, credential; /* empty where there is none */
    uint32_t version;                /* of the secret; 0: none */
    uint64_t state;                  /* the vault's counter before it was done */
    const char *detail;              /* or NULL */
};

struct journal *journal_new(struct loop *l);
void journal_free(struct journal *g);
/* Takes over the writing end that the parent sent, for the first time or again. ERR_MEMORY, ERR_SYSTEM. */
MUST_USE int journal_attach(struct journal *g, int fd);
/* Audit is gone until then: nothing may be done. */
void journal_away(struct journal *g);
/* A decision when refused, an event when lent. Anything but 0: nothing may be lent. */
MUST_USE int journal_lease(struct journal *g, const struct journal_lease *lease);
/* Anything but 0: it must not be done. */
MUST_USE int journal_event(struct journal *g, const struct journal_event *event);

#endif

/*
 * A desk: requests, as control passes the operator's on, or of attach: reads their descriptors,
 * has them done (broker/action.h), and answers. What changes the registry is
 * answered only once a generation that holds the new registry is in use, so
 * that who reads "added" can use what was added.
 */
#ifndef BROKER_DESK_H
#define BROKER_DESK_H

#include "base/child.h"
#include "broker/custody.h"

struct desk;

struct desk_hooks {
    /* The registry may have changed: tell the parent, and for which sandbox. */
    void (*registry)(void *ctx, enum registry_change change, struct view sandbox);
    /* A secret was rotated, removed or restored: no lane may go on using it. */
    void (*recall)(void *ctx, struct view credential);
    /* The peer broke the contract; its channel is gone. */
    void (*bad)(void *ctx);
    void *ctx;
};

/* whole: for control, which may ask everything; else for attach, which may add and remove sandboxes. */
struct desk *desk_new(struct loop *l, struct custody *c, const struct desk_hooks *hooks,
                      bool whole);
void desk_free(struct desk *o);
/* Takes over the peer's channel; an earlier one and its requests end. When attach's ends, so does what it had issued. ERR_MEMORY. */
MUST_USE int desk_attach(struct desk *o, int fd);
/* A generation is in use whose registry is of this state of the vault: answers who waited for it, or for an earlier one. */
void desk_in_use(struct desk *o, uint64_t state);

#endif

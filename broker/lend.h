/*
 * Lending: the channels to the lanes' egress and what is asked on them. The
 * lane is known by the channel; nothing that egress says is believed.
 */
#ifndef BROKER_LEND_H
#define BROKER_LEND_H

#include "broker/custody.h"

struct lender;

/* bad is told of a lane whose channel was dropped because it broke the contract. */
struct lender *lender_new(struct loop *l, struct custody *c, void (*bad)(void *ctx, uint32_t lane),
                          void *ctx);
void lender_free(struct lender *n);
/* Takes over fd; replaces the lane's earlier channel. ERR_MEMORY. */
MUST_USE int lender_add(struct lender *n, uint32_t id, int fd);
void lender_remove(struct lender *n, uint32_t id);
/* Tells every lane to forget the credential's lease (PH-13). */
void lender_recall(struct lender *n, struct view credential);
size_t lender_lanes(const struct lender *n);

#endif

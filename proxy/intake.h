/*
 * Reading a request head, and what it begins: a tunnel, an exchange or a refusal.
 */
#ifndef PROXY_INTAKE_H
#define PROXY_INTAKE_H

#include "policy/admission.h"
#include "proxy/client.h"

/* For a client that has just been accepted, and was not simply let in. */
void intake_admit(struct client *c, enum admitted admitted);
/* Step of CLIENT_RELAYED; and the client ended, or was too slow, before its header was whole. */
enum client_step intake_relayed(struct client *c, struct view *input);
void intake_relayed_ended(struct client *c);
/* Step of CLIENT_FIRST: what is spoken here. */
enum client_step intake_first(struct client *c, struct view *input);
/* Step of CLIENT_IDLE and CLIENT_HEAD. */
enum client_step intake_step(struct client *c, struct view *input);
/* The client ended, or was too slow, inside a head. */
void intake_ended(struct client *c);
void intake_late(struct client *c);

#endif

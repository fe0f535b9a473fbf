/*
 * The broker: lends secrets.
 *
 * Run by: the parent, one process, shared by all lanes.
 * It alone holds: the key-encryption key, the vault and its directory, and the
 * secrets in clear, inside the locked arena.
 * Takes: from the parent generations, vault.key as a file, and its peers; from
 * each lane's egress LEASE_ASK; from control the operator's requests, with
 * descriptors that it reads itself (broker/broker_messages.h).
 * Sends: leases to the lane that asked; LEASE_DROP to every lane when a secret
 * is rotated or removed; the registry of what it issued to the parent, at
 * start and at each change; audit records for every lease and every request.
 * Never: touches HTTP, DNS or the network; opens a file outside its directory;
 * lends because egress says so: lane, sandbox, credential, authority and the
 * placeholder are checked against its own copies; dies because a peer sent
 * nonsense. Without a readable vault it stays up and lends nothing.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include "base/loop.h"
#include "base/role.h"

/* The process. 0, or 1 when it could not start or its loop failed. */
int broker_main(const struct role_args *args);

/* The same without arena and narrowing, for tests: serves PARENT_FD on the loop. NULL on failure. */
struct broker;
struct broker *broker_new(struct loop *l, const struct role_args *args);
void broker_free(struct broker *b);

#endif

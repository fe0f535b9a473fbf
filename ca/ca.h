/*
 * ca: the process that uses the CA's private key, and nothing else.
 *
 * Run by the parent, one for the whole daemon. It alone holds the key: PARENT_FILE "ca-key",
 * "ca-cert" and, while a rotation overlaps, "ca-previous", all PEM. From each lane's egress it takes
 * CA_ASK_LEAF (ca/ca_messages.h) and signs a leaf when its own copy of the policy lets a sandbox of
 * that lane reach the host over TLS, only for the one public key that the parent named with the lane
 * (its proxy's), and at most `new-names` a minute. Each leaf is recorded ("leaf_minted") before it
 * leaves; what is asked for and not allowed is recorded as well ("leaf_refused").
 *
 * A reload brings key and certificate anew: another CA signs from that generation's commit on, and every
 * egress is told to forget the leaves of the one before (CA_CHANGED).
 *
 * It does not start with a key that is not the certificate's, nor when the clock stands outside the
 * CA's validity: every leaf would be refused by clients, and nobody would see why.
 *
 * Never: opens a file or socket, sees a request, believes what egress judged.
 */
#ifndef CA_CA_H
#define CA_CA_H

#include "base/loop.h"
#include "base/role.h"

struct ca;

int ca_main(const struct role_args *args);
/* What ca_main does once its rights are narrowed, with its parent on PARENT_FD; for tests. */
int ca_serve(const struct role_args *args);
/* The same, to be run by the caller's loop. NULL: no memory. */
struct ca *ca_new(struct loop *loop, const struct role_args *args);
void ca_free(struct ca *c);

#endif

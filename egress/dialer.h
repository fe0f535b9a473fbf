/*
 * The dialer: the one process that makes outward sockets and asks DNS.
 *
 * Run by the parent, one for all lanes. It alone holds the right to connect. It
 * takes DIAL_ASK and DIAL_CANCEL (egress/dialer_messages.h) from each lane's
 * egress, knows the lane by the channel, and judges by its own copy of the
 * generation; from outside it reads DNS answers and, with an upstream proxy, the head of its answer.
 *
 * It never sees plaintext, a secret or a key: what is sent over a connection it made is between egress
 * and the upstream. It never asks DNS for a name, nor connects to an address, that policy has not
 * allowed to a sandbox of the lane that asks; it passes no connection on that is not recorded.
 */
#ifndef EGRESS_DIALER_H
#define EGRESS_DIALER_H

#include "base/role.h"

int dialer_main(const struct role_args *args);

#endif

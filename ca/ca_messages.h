/*
 * What ca and others say to each other. One channel for each lane's egress;
 * parent says which lane and for which public key (as PARENT_PEER's name:
 * the SubjectPublicKeyInfo, which proxy gave the parent at its start).
 */
#ifndef CA_CA_MESSAGES_H
#define CA_CA_MESSAGES_H

#include "base/channel.h"

enum { CA_NAME_MAX = 255, CA_CERT_MAX = 8192 };

/* egress to ca */
enum {
    /* block canonical host (a name, or an address literal without brackets), u16 port. Generation N must be ca's. A
     * host in another form breaks the contract: the channel is dropped. */
    CA_ASK_LEAF = 1,
};

/* ca to egress */
enum {
    /* same id. block leaf DER, block chain DER (empty as long as our root signs leaves itself: clients have it), u64 not
     * after in seconds */
    CA_LEAF = 1,
    /* same id. u16 enum reason: host_not_allowed (not in the lane's table), rate, not_ready (another generation),
     * ca_unavailable (also when the record could not be written) */
    CA_REFUSED = 2,
    CA_CHANGED = 3, /* id 0: another CA signs from now on. Forget the leaves of the one before. */
};

#endif

/*
 * What broker and others say to each other. Channels to a lane's egress live
 * in the locked arena at both ends. Control passes the operator's typed
 * messages; secrets come as descriptors that broker reads itself.
 */
#ifndef BROKER_BROKER_MESSAGES_H
#define BROKER_BROKER_MESSAGES_H

#include "base/channel.h"

enum { SECRET_MAX = 8192, LEASE_MAX = SECRET_MAX + 256 };

/* egress to broker */
enum {
    /* block sandbox, block credential, block canonical host, u16 port, 32 bytes fingerprint of the placeholder that was
     * presented. Generation N must be broker's. Broker checks lane, sandbox, credential, authority and that it issued the
     * placeholder for these. */
    LEASE_ASK = 1,
};

/* broker to egress */
enum {
    LEASE = 1, /* same id. u32 version of the secret, u32 seconds, block secret */
    LEASE_REFUSED =
        2, /* same id. u16 enum reason (placeholder_wrong_identity, broker_unavailable when there is no such secret or the vault is locked, not_ready) */
    LEASE_DROP =
        3, /* block credential: rotated or removed. Forget the lease now; go on guarding. */
};

/* control to broker; each is answered by BROKER_DONE */
enum {
    BROKER_SECRET_ADD = 1,    /* fd to read the value from; block name, block like (prefix) */
    BROKER_SECRET_ROTATE = 2, /* fd; block name */
    BROKER_SECRET_REMOVE = 3, /* block name */
    BROKER_SECRET_LIST = 4,
    BROKER_SANDBOX_ADD =
        5, /* block name: issues token and placeholders (again: the old ones end) */
    BROKER_SANDBOX_REMOVE = 6, /* block name */
    BROKER_SANDBOX_LIST = 7,
    BROKER_VAULT_BACKUP = 8,  /* fd to write an encrypted copy to */
    BROKER_VAULT_RESTORE = 9, /* fd to read a copy from */
    BROKER_VAULT_REKEY = 10,  /* fd with the new 32-byte key-encryption key */
};

/* broker to control */
enum {
    /* same id. u8 err (0 or -code); block text: on failure a sentence, else a JSON value: for SECRET_LIST an array of
     * {name, like, version, created, rotated}; for SANDBOX_LIST an array of {name, declared, registered, credentials};
     * for SANDBOX_ADD {name, token, placeholders: [{credential, value}]} */
    BROKER_DONE = 1,
};

#endif

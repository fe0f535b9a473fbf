/*
 * What broker and others say to each other. Channels to a lane's egress live
 * in the locked arena at both ends. Control passes the operator's typed
 * messages on; secrets come as descriptors that broker reads itself.
 */
#ifndef BROKER_BROKER_MESSAGES_H
#define BROKER_BROKER_MESSAGES_H

#include "base/channel.h"

enum {
    SECRET_MAX = 8192,
    CERTIFICATE_CHAIN_MAX = 8192, /* of a client certificate, DER */
    CERTIFICATE_PEM_MAX = 16384,  /* as an operator gives it */
    LEASE_MAX = SECRET_MAX + 256, /* with a secret, or a chain and the digits of a key */
    LEASE_REFUSED_MAX = 256,
};

/* egress to broker */
enum {
    /* block sandbox, block credential, block canonical host, u16 port, 32 bytes fingerprint of the placeholder that was
     * presented. Generation N must be broker's. Broker checks lane, sandbox, credential, authority and that it issued the
     * placeholder for these. */
    LEASE_ASK = 1,
    /* block sandbox, block name, block canonical host, u16 port: the client certificate that the service shows there, for a
     * handshake whose upstream is verified and asks for one. No placeholder is involved. */
    LEASE_ASK_CERTIFICATE = 2,
};

/* broker to egress */
enum {
    /* same id. u32 version of the secret, u32 seconds, u16 how many bytes at its beginning placeholders have as well, block secret */
    LEASE = 1,
    /* same id. u16 enum reason: not_ready (another generation), placeholder_wrong_identity (not issued for this sandbox
     * and credential, or ended), placeholder_wrong_destination (not granted at this authority), broker_unavailable (the
     * vault is locked or cannot be read), audit_unavailable */
    LEASE_REFUSED = 2,
    LEASE_DROP =
        3, /* block credential: rotated or removed. Forget the lease now; go on guarding. */
    /* same id. 32 bytes SHA-256 of the first certificate, block chain (DER, one after another, the client's own first), block digits of the private key
     * (base/client_key.h). For this one handshake. */
    LEASE_CERTIFICATE = 4,
    /* same id. u16 enum reason: not_ready, certificate_unavailable, broker_unavailable, audit_unavailable; block
     * detail: a sentence fragment for the record */
    LEASE_CERTIFICATE_REFUSED = 5,
};

/*
 * Control to broker. Each but BROKER_CANCEL begins with u32 uid of the operator, as the kernel
 * told control, and is answered by BROKER_DONE. A value that is read from a
 * descriptor ends at its end, or for a terminal at the end of the line.
 */
enum {
    BROKER_SECRET_ADD =
        1, /* fd to read the value from; u8 allow short, block name, block like (prefix), block PEM of a client
              certificate, whose private key the value is (PEM); empty: a plain secret */
    BROKER_SECRET_ROTATE = 2, /* fd; u8 allow short, block name, block PEM, as for add */
    BROKER_SECRET_REMOVE = 3, /* block name */
    BROKER_SECRET_LIST = 4,
    BROKER_SANDBOX_ADD =
        5, /* block name: issues token and placeholders (again: the old ones end) */
    BROKER_SANDBOX_REMOVE = 6, /* block name */
    BROKER_SANDBOX_LIST = 7,
    BROKER_VAULT_BACKUP = 8,  /* fd to write an encrypted copy to */
    BROKER_VAULT_RESTORE = 9, /* fd to read a copy from */
    BROKER_VAULT_REKEY = 10,  /* fd with the new key-encryption key, as in vault.key */
    BROKER_CANCEL =
        11, /* whoever asked with this id is gone: stop reading its descriptor. Not answered. */
};

/* broker to control */
enum {
    /* same id. u8 err (0 or -code); block text: on failure a sentence, else a JSON value: for SECRET_LIST an array of
     * {name, like, version, created, rotated (when it ever was), kind ("secret", "client certificate"), and of the latter subject,
     * not_after, fingerprint}; for SANDBOX_LIST an array of {name, declared, registered, issued: [credentials], not_issued: [credentials]};
     * for SANDBOX_ADD {name, token, placeholders: [{credential, value}]}; for the others an object of what was done.
     * What changes the registry is answered once a generation with it is in use. */
    BROKER_DONE = 1,
};

/* Bodies of control's messages and of BROKER_DONE. */
enum {
    BROKER_ASK_MAX = 512,
    BROKER_VALUE_MAX = BROKER_ASK_MAX + CERTIFICATE_PEM_MAX,
    BROKER_TEXT_MAX = 512 * 1024
};

#endif

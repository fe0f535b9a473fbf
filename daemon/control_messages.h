/*
 * What the operator's command and control say to each other over the control
 * socket: the frames of base/channel.h. A client asks one thing at a time and
 * is answered by one CONTROL_DONE; who may not ask gets a CONTROL_DONE with
 * id 0 at once. Control is indifferent to bodies: it adds the client's uid, as the
 * kernel has it, and passes them to broker or to the parent.
 */
#ifndef DAEMON_CONTROL_MESSAGES_H
#define DAEMON_CONTROL_MESSAGES_H

#include "broker/broker_messages.h"

/* command to control */
enum {
    CONTROL_STATUS = 1,
    CONTROL_RELOAD = 2, /* with the body "yes": also a policy that newly allows something */
    CONTROL_STOP = 3,   /* the JSON has the parent's `pid`, which goes on for a moment */
    CONTROL_HEAD = 4,
    CONTROL_SANDBOX_PROBE =
        5, /* the name: has an attached sandbox probed again; escapes end its lane */
    /* From here on a broker message's number plus CONTROL_FOR_BROKER, with its body (without the uid) and descriptor. */
    CONTROL_FOR_BROKER = 16,
    CONTROL_SECRET_ADD = CONTROL_FOR_BROKER + BROKER_SECRET_ADD,
    CONTROL_SECRET_ROTATE = CONTROL_FOR_BROKER + BROKER_SECRET_ROTATE,
    CONTROL_SECRET_REMOVE = CONTROL_FOR_BROKER + BROKER_SECRET_REMOVE,
    CONTROL_SECRET_LIST = CONTROL_FOR_BROKER + BROKER_SECRET_LIST,
    CONTROL_SANDBOX_ADD = CONTROL_FOR_BROKER + BROKER_SANDBOX_ADD,
    CONTROL_SANDBOX_REMOVE = CONTROL_FOR_BROKER + BROKER_SANDBOX_REMOVE,
    CONTROL_SANDBOX_LIST = CONTROL_FOR_BROKER + BROKER_SANDBOX_LIST,
    CONTROL_VAULT_BACKUP = CONTROL_FOR_BROKER + BROKER_VAULT_BACKUP,
    CONTROL_VAULT_RESTORE = CONTROL_FOR_BROKER + BROKER_VAULT_RESTORE,
    CONTROL_VAULT_REKEY = CONTROL_FOR_BROKER + BROKER_VAULT_REKEY,
};

/* control to command */
enum {
    /* same id (0: not permitted, or too many clients). u8 err (0 or -code), block text: JSON, or on failure a sentence. */
    CONTROL_DONE = 1,
};

enum {
    CONTROL_ASK_MAX = 256,                                     /* a request's body */
    CONTROL_VALUE_MAX = CONTROL_ASK_MAX + CERTIFICATE_PEM_MAX, /* that of add and rotate */
    CONTROL_CONFIRMED = 3,                                     /* bytes of "yes" */
    CONTROL_CLIENTS_MAX = 16,                                  /* at once */
    CONTROL_IDLE_SECONDS = 30,                                 /* without a request */
    CONTROL_HEAD_SECONDS = 5,  /* for a head, which audit signs at once or not at all */
    CONTROL_ASK_SECONDS = 180, /* for an answer; longer than anything broker waits for */
};

#endif

/*
 * Reasons: why a request was allowed or refused. One stable code each, which
 * the sandbox, the record, `exeat policy explain` and the documents use.
 */
#ifndef POLICY_REASON_H
#define POLICY_REASON_H

#include "base/bytes.h"

enum reason {
    REASON_ALLOWED,
    /* policy: 403 */
    REASON_UNKNOWN_SANDBOX,
    REASON_HOST_NOT_ALLOWED,
    REASON_PORT_NOT_ALLOWED,
    REASON_CLEAR_NOT_ALLOWED,     /* plain HTTP to a service that is not `clear` */
    REASON_OPERATION_NOT_ALLOWED, /* no operation of the host matches method and path, and conditions */
    REASON_OPERATION_NOT_GRANTED, /* one matches, but this sandbox has no grant for it */
    REASON_NEVER,                 /* a `never` line matches */
    REASON_FOREIGN_CREDENTIAL,
    REASON_CREDENTIAL_MISSING,         /* 403, or 401 where a Basic challenge helps the client */
    REASON_PLACEHOLDER_WRONG_IDENTITY, /* shown as foreign_credential */
    REASON_PLACEHOLDER_WRONG_DESTINATION,
    REASON_PLACEHOLDER_WRONG_PLACE,
    REASON_PLACEHOLDER_REPEATED,
    REASON_SECOND_TARGET, /* a field that names another resource (X-Amz-Copy-Source, Destination) */
    REASON_DNS_MESSAGE,   /* a question about names, which no line says it is for */
    REASON_SPLICED,       /* a request, where only TLS is passed on */
    REASON_NOT_OFFERED,   /* the policy asks for what the data path does not do yet */
    REASON_METHOD_OVERRIDE, /* X-HTTP-Method-Override and its like, _method= */
    REASON_UPGRADE_NOT_ALLOWED,
    REASON_ADDRESS_NOT_ALLOWED,  /* the name resolves to an address that is refused */
    REASON_PROTOCOL_NOT_ALLOWED, /* after CONNECT: neither TLS nor HTTP/1 */
    REASON_PEER_NOT_ALLOWED,     /* the listener is not for whoever connected */
    REASON_SANDBOX_SUSPENDED,    /* its answers held too many parts of a secret */
    /* limits of grants */
    REASON_GRANT_ENDED,      /* `until` has passed */
    REASON_GRANT_USED,       /* `uses` */
    REASON_GRANT_BYTES,      /* `bytes out` */
    REASON_GRANT_RATE,       /* 429 */
    REASON_GRANT_CONCURRENT, /* 429 */
    /* identity: 421, 407, TLS alert */
    REASON_AUTHORITY_MISMATCH,  /* Host is not the tunnel's authority: 421 */
    REASON_SNI_MISMATCH,        /* alert unrecognized_name */
    REASON_PROXY_AUTH_REQUIRED, /* 407 */
    /* malformed: 400 and its like */
    REASON_MALFORMED_REQUEST,
    REASON_MALFORMED_TARGET,
    REASON_MALFORMED_AUTHORITY,
    REASON_MALFORMED_HELLO,
    REASON_EXPECTATION,     /* 417 */
    REASON_METHOD_REFUSED,  /* 405: CONNECT inside a tunnel, TRACE */
    REASON_HEAD_TOO_LARGE,  /* 431 */
    REASON_TARGET_TOO_LONG, /* 414 */
    REASON_BODY_TOO_LARGE,  /* 413 */
    REASON_BODY_CODING,     /* 415: a coded body that must be looked into */
    REASON_REQUEST_TIMEOUT, /* 408 */
    REASON_RATE,            /* 429 */
    REASON_TOO_MANY,        /* 503: a limit of concurrent things */
    /* ours: 503 */
    REASON_AUDIT_UNAVAILABLE,
    REASON_BROKER_UNAVAILABLE,
    REASON_CA_UNAVAILABLE,
    REASON_DIALER_UNAVAILABLE,
    REASON_INSPECT_UNAVAILABLE,
    REASON_SECRET_UNFIT,            /* it cannot be spelled in the credential's place */
    REASON_CERTIFICATE_UNAVAILABLE, /* the client certificate of the service cannot be shown */
    REASON_NOT_READY,               /* no generation is in use yet */
    REASON_NOT_PROBED,              /* the sandbox was not found to be tight yet */
    /* upstream: 502, 504 */
    REASON_NAME_NOT_RESOLVED,
    REASON_CONNECT_FAILED,
    REASON_CONNECT_TIMEOUT,
    REASON_UPSTREAM_TLS, /* handshake or certificate; detail in the record */
    REASON_UPSTREAM_TIMEOUT,
    REASON_UPSTREAM_CLOSED,
    REASON_MALFORMED_ANSWER,
    REASON_ANSWER_CODING, /* a content coding that cannot be scanned */
    REASON_ANSWER_TOO_LARGE,
    /* ends without a refusal; only in records */
    REASON_CLIENT_CLOSED,
    REASON_CLIENT_TLS, /* the client's handshake failed */
    REASON_CUT,        /* by a newer generation or a stop */
    REASON_COUNT
};

struct reason_info {
    const char *code;  /* "host_not_allowed" */
    uint16_t status;   /* of the refusal; 0 where there is none */
    enum reason shown; /* what the sandbox is told (itself, unless that would tell too much) */
    const char *title; /* one sentence without a full stop */
    const char *hint;  /* what to do about it, addressed to the user of the sandbox */
};

const struct reason_info *reason_info(enum reason r);
/* Of REASON_OPERATION_NOT_ALLOWED where an operation has the method and path: the same code, with other words. */
const struct reason_info *reason_info_of_conditions(void);
/* ERR_MISSING */
MUST_USE int reason_find(struct view code, enum reason *out);

#endif

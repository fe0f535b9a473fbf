/*
 * The header of the PROXY protocol, version 2, with which a relay before exeat tells whose connection it hands on
 * (haproxy.org, proxy-protocol.txt, 2.2): a pure function over the bytes that came first on a connection.
 *
 * Only whoever the listener names may say so (policy/admission.h): to anybody else these bytes are no request.
 */
#ifndef HTTP_PROXY_V2_H
#define HTTP_PROXY_V2_H

#include "policy/address.h"

enum {
    PROXY_V2_START = 16, /* signature, version and command, family, length */
    PROXY_V2_MAX = 4096, /* of the whole header; longer ones are refused */
};

struct proxy_v2 {
    bool
        has_client; /* else the connection is the relay's own (LOCAL), or it does not tell (UNSPEC) */
    struct address client;
    uint16_t port;
};

/*
 * 0 and how many bytes the header is, ERR_AGAIN, or ERR_BAD with *why, a static sentence fragment. The verdict on a
 * prefix never changes with what follows, but for ERR_AGAIN. TCP over IPv4 and IPv6 only; what is said beyond
 * the addresses (TLVs) must be well-formed and is not looked at.
 */
MUST_USE int proxy_v2_read(struct view bytes, size_t *used, struct proxy_v2 *out, const char **why);

/* Whether the bytes begin with the signature. */
bool proxy_v2_starts(struct view bytes);

#endif

/*
 * Who is asking: the sandbox of the lane, or on a shared listener the one that proves itself by
 * its proxy token (RFC 9110 11.7, Basic). On an owned listener a token, if sent, must be that sandbox's (XS-03); where nothing
 * forces the sandbox through it, any user of this machine can connect to it, and a token is wanted.
 */
#ifndef EGRESS_IDENTITY_H
#define EGRESS_IDENTITY_H

#include "egress/lane.h"
#include "policy/reason.h"

enum { IDENTITY_SIZE = SANDBOX_NAME_MAX + 1 };

/* What an identity rests on: the lane, or a token. */
struct proof {
    bool by_token;
    uint8_t fingerprint[FINGERPRINT_SIZE]; /* of the token */
};

/*
 * n_fields Proxy-Authorization fields were sent, value is the first; captured: by a way in that has no place for one. 0 and the sandbox's name; or ERR_DENIED with
 * REASON_PROXY_AUTH_REQUIRED or REASON_RATE. Every refusal takes the same time and says the same.
 */
MUST_USE int identity_find(struct lane *l, bool captured, size_t n_fields, struct view value,
                           char name[IDENTITY_SIZE], struct proof *proof, enum reason *why);
/* Whether an identity that was found by an older generation holds in the present one. */
bool identity_holds(const struct lane *l, const char *name, const struct proof *proof);

#endif

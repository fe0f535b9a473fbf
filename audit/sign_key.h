/*
 * The key that signs heads, in audit's directory: sign.key (0600), made at the first start, and
 * sign.pub beside it for everybody. When sign.key is gone a new one is made, and the old public key
 * stays in sign.pub, so that older heads can still be verified.
 */
#ifndef AUDIT_SIGN_KEY_H
#define AUDIT_SIGN_KEY_H

#include "audit/chain_head.h"

/* *made: there was no key. ERR_CRYPTO: sign.key or sign.pub cannot be used; ERR_SYSTEM, ERR_LIMIT, ERR_MEMORY. */
MUST_USE int sign_key_open(int dir, struct chain_signer **signer, struct chain_keys **keys,
                           bool *made);
/* The public keys of sign.pub alone, for who verifies. ERR_MISSING and the above. */
MUST_USE int sign_key_public(int dir, const char *name, struct chain_keys **out);

#endif

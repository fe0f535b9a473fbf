/*
 * Substitution: the real secret in the place of the placeholder, once, in the
 * one field that the judge named (PH-05, PH-08, PH-10). Pure.
 *
 * egress/exchange.c does this last, when the verdict allows, the lease is
 * there and the upstream's certificate was verified (P6):
 *
 *     struct buf value, head;                          both in the arena (P2)
 *     buf_init_secret(&value, SUBSTITUTE_MAX);
 *     buf_init_secret(&head, ...);
 *     substitute_request(&fields, &materials.at[verdict.swap], secret, &value);
 *     http1_write_request(&head, ..., &fields, ...);
 *
 * `fields` is a copy of the record's fields for the wire; the record itself
 * keeps the placeholder, which is what audit sees. From then on the fields
 * point into `value`: they are not to be logged, kept or looked at again. What
 * was put in is never searched for placeholders.
 */
#ifndef EGRESS_SUBSTITUTE_H
#define EGRESS_SUBSTITUTE_H

#include "http/message.h"
#include "policy/provenance.h"

/* Scheme, and a secret of SECRET_MAX beside the other half of a Basic, in base64. */
enum { SUBSTITUTE_MAX = 32 * 1024 };

/*
 * Whether these bytes may stand in a field: not empty, no control (CR, LF, NUL
 * and HTAB among them), no SP at either end. The vault checked it as well.
 */
bool substitute_is_sendable(struct view secret);

/*
 * Appends to out (a buffer in the arena) the field's value with the secret in
 * place of m->token: the whole value; behind m->scheme, as it was sent, and one
 * SP; or as one half of a Basic, the other half unchanged, in canonical base64.
 * ERR_BAD: the value is not the one that m was read from, m is of another
 * place, the secret is not sendable, or it holds a colon and is to be a user.
 * ERR_MEMORY: out is full. Then nothing of out may be used.
 */
MUST_USE int substitute_field(const struct material *m, struct view value, struct view secret,
                              struct buf *out);

/*
 * Finds the one field that m names and lets its value point to what was
 * appended to out, which must not change while the fields are in use. ERR_BAD
 * also when there are several of that name, or none.
 */
MUST_USE int substitute_request(struct fields *fields, const struct material *m, struct view secret,
                                struct buf *out);

#endif

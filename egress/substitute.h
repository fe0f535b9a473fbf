/*
 * Substitution: the real secret in the place of the placeholder, where the judge
 * said so and nowhere else (PH-04, PH-05, PH-08, PH-10). Pure.
 *
 * egress/send.c does this last, when the verdict allows, the lease is there and
 * the upstream's certificate was verified (P6):
 *
 *     struct fields fields = ...;                      a copy of the record's
 *     struct view target = ...;
 *     buf_init_secret(&values, SUBSTITUTE_MAX);        both in the arena (P2)
 *     buf_init_secret(&head, ...);
 *     substitute_request(&fields, &target, &materials, verdict.swaps, secret, &values);
 *     http1_write_request(&head, ..., target, &fields, ...);
 *
 * The record itself keeps the placeholder, which is what audit sees. From then on fields and
 * target point into `values`: they are not to be logged, kept or looked at again. What
 * was put in is never searched for placeholders.
 */
#ifndef EGRESS_SUBSTITUTE_H
#define EGRESS_SUBSTITUTE_H

#include "http/message.h"
#include "policy/provenance.h"

/* A head with secrets in it; and how many bytes a byte of a secret may become ("%2B"). */
enum { SUBSTITUTE_MAX = 1 << 20, SUBSTITUTE_GROWTH = 3 };

/*
 * Whether these bytes can be spelled in a place. Nowhere: none, a control (CR, LF, NUL and HTAB among
 * them), SP at either end; the vault checked that as well. A user of Basic has no colon (RFC 7617), a cookie the
 * octets of RFC 6265, JSON is UTF-8. In a target or form each byte can stand that has an encoding. NULL when
 * it can, or a static sentence fragment for the operator.
 */
const char *substitute_misfit(enum place place, struct view secret);

/*
 * Appends the secret as it is spelled in a place: percent-encoded but for unreserved characters (RFC 3986 2.3)
 * in a target or form; inside of a JSON string escaped; elsewhere as it is, also in one half of Basic, which base64
 * then holds.
 */
void substitute_spell(enum place place, struct view secret, struct buf *out);

/*
 * Puts the secret in the place of each material of `swaps` (bits of m): its `raw` bytes of a field's value or of
 * the target change, all others stay. Of Basic the other half stays and the base64 is canonical. What
 * changed points into out, a buffer in the arena, which must not change while it is in use. ERR_BAD: a
 * material is not what stands there, or stands in neither, or the secret cannot be spelled; ERR_MEMORY.
 * Then nothing of out, fields and target may be used.
 */
MUST_USE int substitute_request(struct fields *fields, struct view *target,
                                const struct materials *m, uint32_t swaps, struct view secret,
                                struct buf *out);

#endif

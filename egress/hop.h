/*
 * The hop: an operator's HTTP proxy between us and the world. What is said to
 * it is CONNECT (RFC 9110 9.3.6); what it answers is read up to the end of its head. Pure.
 */
#ifndef EGRESS_HOP_H
#define EGRESS_HOP_H

#include "policy/authority.h"

enum { HOP_HEAD_MAX = 8192 };

/* The whole request for a canonical authority. */
void hop_write(const struct authority *target, struct buf *out);

/*
 * Reads the answer's head from the bytes so far. 0 with *size the bytes of the head: what stands behind
 * belongs to the upstream. ERR_AGAIN; ERR_BAD: no HTTP/1 status line, or a control character in the head;
 * ERR_LIMIT: no end within HOP_HEAD_MAX.
 */
MUST_USE int hop_read(struct view bytes, size_t *size, uint16_t *status);

#endif

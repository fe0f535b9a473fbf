/*
 * The half of an exchange towards the sandbox: answers parsed strictly, scanned for what was lent,
 * and handed to proxy as far as its credit goes.
 */
#ifndef EGRESS_ANSWER_H
#define EGRESS_ANSWER_H

#include "egress/exchange.h"

/* Reads and passes on as much as credit allows. The exchange may be gone afterwards. */
void answer_pump(struct exchange *ex);

/* From inspection.c: decoded bytes, and the end of the body. */
void answer_decoded(struct exchange *ex, struct view plain);
void answer_decoded_all(struct exchange *ex);

#endif

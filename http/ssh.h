/*
 * SSH (RFC 4253), as far as it takes to refuse it in words that ssh, and so git, prints.
 */
#ifndef HTTP_SSH_H
#define HTTP_SSH_H

#include "base/bytes.h"

/* Whether a client's first bytes are those of SSH's identification. */
bool ssh_starts(struct view bytes);
/*
 * Appends a server's identification and, before any key exchange, a disconnect with this text (at most
 * SSH_TEXT_MAX bytes of it).
 */
enum { SSH_TEXT_MAX = 600 };
void ssh_put_refusal(struct buf *out, struct view text);

#endif

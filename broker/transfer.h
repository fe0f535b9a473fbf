/*
 * Transfers: bytes to and from a descriptor that an operator passed, without
 * ever waiting for it: a slow pipe costs a deadline, not the broker.
 *
 * Pipes, sockets and terminals are switched to non-blocking for the length of
 * the transfer, and back. A terminal is read up to the end of the first line,
 * anything else to its end.
 */
#ifndef BROKER_TRANSFER_H
#define BROKER_TRANSFER_H

#include "base/bytes.h"
#include "base/loop.h"

struct transfer;

/*
 * Called once, never from inside transfer_read or transfer_write. result: 0,
 * ERR_LIMIT, ERR_TIMEOUT, ERR_SYSTEM or ERR_MEMORY; bytes: what was read, to be
 * freed with the transfer. The callee calls transfer_free.
 */
typedef void transfer_done(void *ctx, struct transfer *t, int result, struct view bytes);

/* Takes over fd. At most max bytes; secret: into the arena. NULL when out of memory (fd is closed). */
struct transfer *transfer_read(struct loop *l, int fd, size_t max, bool secret, unsigned seconds,
                               transfer_done *done, void *ctx);
/* Takes over fd and the bytes of *bytes, which is empty afterwards. A file is on the disk when it is done. */
struct transfer *transfer_write(struct loop *l, int fd, struct buf *bytes, unsigned seconds,
                                transfer_done *done, void *ctx);
/* Ends it at once, closing the descriptor; NULL is fine. */
void transfer_free(struct transfer *t);

#endif

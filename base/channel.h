/*
 * Channels: bounded, typed, binary messages between two roles over a Unix stream socket.
 *
 *   0        4       6        8      12          16
 *   +--------+-------+--------+------+-----------+------
 *   | length | type  | flags  | id   | generation| body        (big-endian)
 *   +--------+-------+--------+------+-----------+------
 *
 * `length` is that of the body. Flag 1: one descriptor travels with the message.
 * `generation` is the policy generation the sender judged by (0: none).
 *
 * Each end has a table of the messages it is willing to receive. A type that
 * is not in it, a body over its maximum, a descriptor that is not permitted or
 * one that is missing, a ONCE message that comes again: the channel is dropped
 * and its owner told, who must treat that as a hostile or dead peer. Nobody
 * calls and waits: an answer is another message with the same id.
 *
 * What is sent during a turn of the loop leaves in one write at its end, or when it is much; a long body
 * leaves at once, without being copied.
 */
#ifndef BASE_CHANNEL_H
#define BASE_CHANNEL_H

#include "base/bytes.h"
#include "base/loop.h"

struct channel;

struct message {
    uint16_t type;
    uint32_t id;
    uint32_t generation;
    struct view body; /* borrowed until the handler returns */
    int fd; /* -1, or a descriptor; the handler that wants it sets this to -1, else it is closed */
};

/* Anything but 0 drops the channel: the peer broke the contract. */
typedef int channel_handler(void *ctx, struct channel *ch, struct message *m);

enum channel_rule_flags {
    CHANNEL_FD = 1,   /* must carry one descriptor */
    CHANNEL_ONCE = 2, /* at most one in the channel's life */
};

struct channel_rule {
    uint16_t type; /* 1 to 63 */
    uint16_t flags;
    uint32_t max; /* of the body, in bytes; at most CHANNEL_BODY_MAX */
    channel_handler *handle;
    const char *name; /* for log lines */
};

#define CHANNEL_HEADER_SIZE ((size_t)16)
#define CHANNEL_BODY_MAX ((size_t)1 << 20)
/* More than this unsent drops the channel (ERR_LIMIT): credit must keep flows below it. */
#define CHANNEL_OUT_MAX ((size_t)8 << 20)

enum channel_flags {
    CHANNEL_SECRET = 1,  /* both buffers live in the locked arena */
    CHANNEL_READ = 2,    /* read() only: no descriptor can arrive (proxy's end) */
    CHANNEL_CLEARED = 4, /* both buffers keep nothing of what has passed */
};

/*
 * The channel is of no more use; the owner frees it. ERR_CLOSED: the peer is gone; ERR_BAD: it broke the
 * contract; ERR_LIMIT: it did not take what we sent, or we sent more than we should; ERR_SYSTEM.
 */
typedef void channel_closed(void *ctx, struct channel *ch, int why);

/*
 * Takes over fd, made non-blocking. The rules, which must outlive the channel,
 * and ctx are given to handlers. NULL when out of memory (fd is closed).
 */
struct channel *channel_new(struct loop *l, int fd, const struct channel_rule *rules,
                            size_t n_rules, unsigned flags, channel_closed *closed, void *ctx);
/* Closes at once; unsent bytes are lost. NULL is fine. May be called inside a handler or `closed`. */
void channel_free(struct channel *ch);

/*
 * A message whose body the caller appends to the returned buffer (the puts of
 * base/bytes.h) until channel_end. Never NULL: on a closed channel the bytes
 * go nowhere.
 */
struct buf *channel_begin(struct channel *ch, uint16_t type, uint32_t id, uint32_t generation);
void channel_end(struct channel *ch);
/* The same in one call. */
void channel_send(struct channel *ch, uint16_t type, uint32_t id, uint32_t generation,
                  struct view body);
/* With a descriptor, which is taken over and closed once sent. */
void channel_send_fd(struct channel *ch, uint16_t type, uint32_t id, uint32_t generation,
                     struct view body, int fd);
/* Writes now what is gathered (the loop does so at the end of a turn). */
void channel_flush(struct channel *ch);
/* Has drained(ctx) called whenever the kernel has taken everything after it had refused some, so also after channel_is_full. */
void channel_on_drained(struct channel *ch, void (*drained)(void *ctx), void *ctx);
/* Bytes gathered or waiting for the kernel. */
size_t channel_unsent(const struct channel *ch);
/* More than half of what it may hold is unsent, and the kernel takes no more: nothing should be asked. */
bool channel_is_full(const struct channel *ch);

/* A connected pair of close-on-exec stream sockets. ERR_SYSTEM. */
MUST_USE int channel_pair(int fds[2]);

#endif

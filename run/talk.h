/*
 * What the launcher and the first process of its sandbox say to each other, once each, over a socket
 * pair: the listening sockets come out, the environment goes in, the command's wait status comes out.
 */
#ifndef RUN_TALK_H
#define RUN_TALK_H

#include "base/bytes.h"

/* What the environment may take, in all. */
enum { TALK_ENVIRONMENT_MAX = 1 << 20 };

/* One descriptor, and its arrival: -1 when the other end is gone. */
MUST_USE int talk_send_fd(int s, int fd);
MUST_USE int talk_receive_fd(int s);

/* Blocks (bytes.h), each a "NAME=value". ERR_SYSTEM, ERR_CLOSED, ERR_LIMIT, ERR_BAD. */
MUST_USE int talk_send_environment(int s, struct view blocks);
MUST_USE int talk_receive_environment(int s, struct buf *blocks);

/* A status of waitpid(2). ERR_CLOSED: there will be none. */
MUST_USE int talk_send_status(int s, int status);
MUST_USE int talk_receive_status(int s, int *status);

#endif

/*
 * What the launcher and the processes of its sandbox say to each other. Over one socket pair, with the first process: the
 * listening sockets come out, the environment goes in, then a byte for each time that the sandbox is to be probed again; the
 * command's wait status comes out. Over another, of packets, with those that probe: reports (report.h) come out; a word
 * goes in when the command may begin.
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

/* Have the first process probe again; taken by it: ERR_AGAIN: nothing is there yet, ERR_CLOSED: the launcher is gone. */
MUST_USE int talk_send_again(int s);
MUST_USE int talk_receive_again(int s);

/* A report, appended to a buffer with room for REPORT_MAX; of nothing: the probes could not be made. ERR_CLOSED, ERR_SYSTEM. */
MUST_USE int talk_send_report(int line, struct view report);
MUST_USE int talk_receive_report(int line, struct buf *report);

/* The command may begin. */
MUST_USE int talk_send_go(int line);
MUST_USE int talk_receive_go(int line);

/* A status of waitpid(2). ERR_CLOSED: there will be none. */
MUST_USE int talk_send_status(int s, int status);
MUST_USE int talk_receive_status(int s, int *status);

#endif

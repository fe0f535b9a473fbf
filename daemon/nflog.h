/*
 * What rules of nftables log, as a netlink socket of nfnetlink_log gives it: the beginnings of the packets of one group. Who holds
 * the socket can ask the kernel for nothing by it without CAP_NET_ADMIN of his own.
 */
#ifndef DAEMON_NFLOG_H
#define DAEMON_NFLOG_H

#include "base/bytes.h"

/* A close-on-exec, non-blocking socket, or -1 with a sentence in why. */
int nflog_open(uint16_t group, struct buf *why);

#endif

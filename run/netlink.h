/*
 * What this namespace's network is told, in netlink(7): whole requests, and the kernel's word on them.
 */
#ifndef RUN_NETLINK_H
#define RUN_NETLINK_H

#include <stddef.h>

/* A close-on-exec socket for a protocol of the family (NETLINK_ROUTE, ...), or -1 with errno. */
int netlink_open(int protocol);
/* Sends what asks for one acknowledgement (NLM_F_ACK), and waits for it: 0, or -1 with errno. */
int netlink_ask(int s, const void *request, size_t n);

#endif

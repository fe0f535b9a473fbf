/*
 * What two policies ask of the addresses and upstreams of one host: no part of a verdict on a request, and
 * yet it opens. For diff.c.
 */
#ifndef POLICY_DIFF_REACH_H
#define POLICY_DIFF_REACH_H

#include "policy/rules.h"

/* Who speaks of a host and port in one policy. */
struct reach {
    const struct policy *policy;
    const struct service *service;
    uint16_t port;
};

/*
 * Whether `after` takes an address or upstream that `before` refuses: an address inside its ranges, one that
 * `never all` closed, a country or network, what the upstream shows, or what it is shown. Appends an example: "address 10.0.0.0 of the range 10.0.0.0/8".
 */
bool reach_is_wider(const struct reach *before, const struct reach *after, struct buf *example);

#endif

/*
 * /etc/resolv.conf, as far as the dialer cares: the nameserver lines. Search
 * domains and options are of no use to a process that asks for canonical names. Pure.
 */
#ifndef EGRESS_RESOLV_CONF_H
#define EGRESS_RESOLV_CONF_H

#include "policy/address.h"

struct resolv_conf {
    struct address servers[8];
    size_t n;
    size_t skipped; /* nameservers with a zone ("fe80::1%eth0"), which we cannot ask */
};

/*
 * Keeps the first eight. ERR_BAD with *line from 1: a nameserver that is no
 * plain address, or has anything behind it. ERR_MISSING when no server is left.
 */
MUST_USE int resolv_conf_read(struct view text, struct resolv_conf *out, size_t *line);

#endif

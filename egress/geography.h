/*
 * Geography: the country and the autonomous system of an address, as facts for
 * the record and for `country` and `asn` of the policy. The only file that knows libmaxminddb. Databases are the
 * operator's, optional, and mapped before the process narrows its rights.
 */
#ifndef EGRESS_GEOGRAPHY_H
#define EGRESS_GEOGRAPHY_H

#include "policy/address.h"

struct geography;

struct geography_facts {
    char country[3]; /* ISO 3166-1 alpha-2, or empty */
    char asn[11];    /* digits, or empty */
};

/*
 * Either path may be NULL: then there are no such facts. A file that is absent or broken is logged as
 * fatal by name and gives NULL, and the process must not serve (IP-14). A newer file is read by a restart.
 */
struct geography *geography_open(const char *country, const char *asn);
void geography_free(struct geography *g);
/* The number of digits in a fact; 0: not known. */
uint32_t geography_asn(const char *digits);
/* An address without an entry has empty facts. */
void geography_find(struct geography *g, const struct address *a, struct geography_facts *out);

#endif

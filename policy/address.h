/*
 * Addresses: decided on their 4 or 16 bytes, never on their spelling.
 */
#ifndef POLICY_ADDRESS_H
#define POLICY_ADDRESS_H

#include "base/bytes.h"

struct address {
    uint8_t family; /* 4 or 6 */
    uint8_t bytes[16];
};

struct range {
    struct address base;
    uint8_t bits; /* prefix length */
};

/* The IANA special-purpose registries (RFC 6890 and successors), as far as a dialer cares. */
enum address_class {
    ADDRESS_PUBLIC,
    ADDRESS_UNSPECIFIED, /* 0.0.0.0/8, :: */
    ADDRESS_LOOPBACK,
    ADDRESS_PRIVATE, /* RFC 1918, fc00::/7, fec0::/10 */
    ADDRESS_LINK_LOCAL,
    ADDRESS_METADATA, /* cloud metadata services, wherever they are */
    ADDRESS_SHARED,   /* 100.64.0.0/10 */
    ADDRESS_MULTICAST,
    ADDRESS_BROADCAST,
    ADDRESS_DOCUMENTATION,
    ADDRESS_BENCHMARK,
    ADDRESS_RESERVED, /* 240/4, 192.0.0.0/24, 100::/64, ORCHID, and the like */
    ADDRESS_TRANSLATED, /* NAT64, 6to4, Teredo, ISATAP, v4-compatible: an IPv4 address inside that is not public */
};

/* Four decimals without leading zeros, or RFC 4291 text without zone. ERR_BAD for every other spelling. */
MUST_USE int address_parse(struct view text, struct address *out);
enum { ADDRESS_TEXT_SIZE = 46 };
/* RFC 5952 (IPv4-mapped with a dotted quad); out holds at least ADDRESS_TEXT_SIZE bytes. */
void address_format(const struct address *a, char *out);
bool address_equal(const struct address *a, const struct address *b);
/*
 * The class after unpacking. An IPv4-mapped address has the class of its IPv4
 * address. NAT64 (64:ff9b::/96), 6to4, Teredo, ISATAP, SIIT and v4-compatible forms
 * are ADDRESS_METADATA when what is inside is that (so that no wide range opens it),
 * else ADDRESS_TRANSLATED when it is not public; 64:ff9b:1::/48 is
 * ADDRESS_TRANSLATED whole. IPv6 outside 2000::/3 is never public, NAT64 apart. A
 * network's own NAT64 prefix cannot be known here.
 */
enum address_class address_classify(const struct address *a);
/* False: it is nobody's, or more than one's, and is never dialled whatever a policy says. */
bool address_is_one(const struct address *a);
/* Whether who dials a may arrive at `to`: it is that, or a form of IPv6 (as above) that carries it. */
bool address_reaches(const struct address *a, const struct address *to);
/* "loopback", "private", ... Static. */
const char *address_class_name(enum address_class c);

/*
 * `10.0.0.0/8`, `fd00::/8`, or a lone address. ERR_BAD also when bits beyond the
 * prefix are set. A range of IPv4-mapped addresses becomes the range of IPv4 addresses.
 */
MUST_USE int range_parse(struct view text, struct range *out);
/* Whether a is in r. An IPv4-mapped address is compared as its IPv4 address. */
bool range_holds(const struct range *r, const struct address *a);

#endif

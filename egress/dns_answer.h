/*
 * DNS answers (RFC 1035 4.1), read from the wire by us: c-ares carries the
 * question and picks the packet, this file says what the packet means. Pure.
 *
 * Only what follows from the name that was asked counts: the CNAME chain that
 * starts there, in whatever order its links stand, and the addresses of the
 * name at its end. Records of other names, types and classes (HTTPS, SVCB and
 * their address hints, RFC 9460; additional and authority sections) are ignored.
 */
#ifndef EGRESS_DNS_ANSWER_H
#define EGRESS_DNS_ANSWER_H

#include "policy/authority.h"

enum { DNS_ADDRESSES_MAX = 64, DNS_ALIASES_MAX = 8 };

enum dns_type { DNS_A = 1, DNS_CNAME = 5, DNS_AAAA = 28 };

struct dns_answer {
    struct address addresses[DNS_ADDRESSES_MAX];
    size_t n_addresses;
    /* The chain without the asked name, each a canonical host (policy/authority.h). */
    char aliases[DNS_ALIASES_MAX][HOST_SIZE];
    size_t n_aliases;
};

/*
 * Reads an answer to the question (name, type); name is canonical. 0 also when
 * it holds no address. ERR_BAD: another question, truncated (TC) or cut short,
 * a compression pointer that does not point backwards, an address of the wrong
 * size, a chain that is a loop or longer than DNS_ALIASES_MAX, an alias that is no
 * canonical host (a dot or NUL inside a label, ...), more than DNS_ADDRESSES_MAX
 * addresses. Then *why is a static sentence fragment and nothing of *out may be used.
 */
MUST_USE int dns_answer_read(struct view message, const char *name, enum dns_type type,
                             struct dns_answer *out, const char **why);

#endif

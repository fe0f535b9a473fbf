/*
 * Authorities: the one canonical form of a host and port (promise P3).
 *
 * Computed once, by authority_parse; the same bytes are then matched by rules,
 * asked of DNS, sent as SNI, verified in the certificate, written as Host and
 * recorded. What cannot be put in that form is refused, never repaired.
 *
 * Canonical: lower-case letters, digits, '-' and '_' in labels of 1 to 63
 * bytes, no label that starts or ends with '-', 253 bytes at most, no final dot (one is
 * dropped), no userinfo, no percent-encoding, no byte outside ASCII; a last
 * label that is numeric (decimal or 0x...) makes it a failed address, refused.
 * IPv4 only as four plain decimals, IPv6 only in brackets without a zone
 * (RFC 3986 3.2.2), written back in the RFC 5952 form.
 */
#ifndef POLICY_AUTHORITY_H
#define POLICY_AUTHORITY_H

#include "base/bytes.h"
#include "policy/address.h"

enum { HOST_SIZE = 256 };

enum host_kind { HOST_NAME, HOST_ADDRESS };

struct authority {
    char host[HOST_SIZE]; /* canonical, without brackets; NUL-terminated */
    enum host_kind kind;
    struct address address; /* when kind is HOST_ADDRESS */
    uint16_t port;          /* 1 to 65535 */
};

/*
 * Reads `host[:port]` (RFC 3986 authority without userinfo). default_port 0
 * means that a port must be there (CONNECT, RFC 9110 9.3.6). A port is 1 to 5
 * digits without a leading zero, 1 to 65535. ERR_BAD: *why, if not NULL, is a
 * static sentence fragment ("a label is empty").
 */
MUST_USE int authority_parse(struct view text, uint16_t default_port, struct authority *out,
                             const char **why);
/* A host alone, by the same rules (SNI, SOCKS, the policy's text); port is set to the one given. */
MUST_USE int authority_parse_host(struct view text, uint16_t port, struct authority *out,
                                  const char **why);
/*
 * The host of a message between processes: `out->host` of another authority, IPv6 without brackets. ERR_BAD when it is not
 * spelled as authority_parse writes it, or the port is 0: then the sender did not judge what it asks for.
 */
MUST_USE int authority_read(struct view host, uint16_t port, struct authority *out);
bool authority_equal(const struct authority *a, const struct authority *b);
/* Same host bytes; ports do not matter. */
bool authority_same_host(const struct authority *a, const struct authority *b);
/* `host` or `host:port` when port differs from default_port; IPv6 in brackets. For Host and for records. */
void authority_write(const struct authority *a, uint16_t default_port, struct buf *out);

#endif

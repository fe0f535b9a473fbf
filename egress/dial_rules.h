/*
 * What the dialer judges by: its own copy of a generation, made from the
 * parent's text and not from anything egress says (design: nobody believes egress).
 */
#ifndef EGRESS_DIAL_RULES_H
#define EGRESS_DIAL_RULES_H

#include "egress/own_addresses.h"
#include "egress/resolver.h"
#include "policy/bundle.h"

struct dial_rules {
    uint32_t generation;
    struct bundle bundle; /* its views point into the text */
    struct policy *policy;
    char *policy_file; /* its name, which the policy's positions point to */
    struct resolver_server servers[RESOLVERS_MAX]; /* whom to ask for names */
    size_t n_servers;
    struct static_host *hosts; /* by name, those of one in the order of the text; owned */
    size_t n_hosts;
    struct own_addresses own;
    bool has_hop; /* leave through an HTTP proxy */
    struct authority hop;
};

/*
 * Compiles text, which must outlive the rules. system: the servers to ask when the text names none.
 * ERR_BAD (the text, its policy, an own address or the hop), ERR_LIMIT, ERR_MEMORY.
 */
MUST_USE int dial_rules_new(uint32_t generation, struct view text,
                            const struct resolver_server *system, size_t n_system,
                            struct dial_rules **out);
void dial_rules_free(struct dial_rules *r); /* NULL is fine */

/* Whether this lane serves this sandbox. */
bool dial_rules_serve(const struct dial_rules *r, uint32_t lane, struct view sandbox);
/* The operator's addresses of a host, which stand in place of DNS; how many, at most max. */
size_t dial_rules_static(const struct dial_rules *r, const char *host, struct address *out,
                         size_t max);

/*
 * NULL when the address may be dialled for the service, else a static sentence fragment that
 * follows the address: its class is not permitted by the service, or it is our own.
 */
const char *dial_rules_refuse(const struct dial_rules *r, struct interfaces *here,
                              const struct service *s, const struct address *a, uint16_t port);

#endif

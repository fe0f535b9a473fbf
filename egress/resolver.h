/*
 * The resolver: one question for A and one for AAAA per lookup, to the servers
 * the operator named. The only file that knows c-ares, which does transport
 * (ids, ports, retries, EDNS, TCP after truncation); egress/dns_answer.h reads the answers.
 *
 * No search domains, no hosts file, no aliases file, no name that is special,
 * no cache: a lookup is always two questions on the wire (DN-01), and nothing
 * asks for a name but the caller, who has judged it (P5).
 */
#ifndef EGRESS_RESOLVER_H
#define EGRESS_RESOLVER_H

#include "base/loop.h"
#include "egress/dns_answer.h"

enum { RESOLVED_MAX = 2 * DNS_ADDRESSES_MAX, RESOLVED_ALIASES_SIZE = 2048 };

struct resolver;
struct lookup;

struct resolver_server {
    struct address address;
    uint16_t port;
};

struct resolved {
    /*
     * 0: at least one address. ERR_MISSING: no such name, or no address. ERR_BAD: an answer broke the
     * rules of egress/dns_answer.h, then none of the name's answers is used. ERR_TIMEOUT. ERR_SYSTEM: no server to
     * ask, or they failed. ERR_MEMORY: we have no descriptor, or no memory, to ask with.
     */
    int result;
    const char *why; /* static sentence fragment when result is not 0 */
    struct address addresses[RESOLVED_MAX];
    size_t n;
    char aliases[RESOLVED_ALIASES_SIZE]; /* both chains, names separated by SP, each once */
};

/* r is borrowed until it returns. */
typedef void resolver_done(void *ctx, const struct resolved *r);

/*
 * Opens files (random numbers, in newer libraries also the system's configuration, which is then not used): call
 * it before the process narrows its rights. NULL on failure. At most `most` lookups are in progress.
 */
struct resolver *resolver_new(struct loop *l, size_t most);
/* Ends all lookups without telling anybody. NULL is fine. */
void resolver_free(struct resolver *r);
/* Whom to ask from now on. Lookups in progress are asked anew of the new servers. ERR_MEMORY, ERR_SYSTEM. */
MUST_USE int resolver_use(struct resolver *r, const struct resolver_server *servers, size_t n);

/*
 * Asks for a canonical name (not an address). `done` is called once, never
 * before this returns, after at most `milliseconds`. Once one family has given addresses
 * the other is waited for 250 ms more (RFC 8305 3). NULL when out of memory or too many are in progress.
 */
struct lookup *resolver_ask(struct resolver *r, const char *name, unsigned milliseconds,
                            resolver_done *done, void *ctx);
/* The answer is not wanted any more; `done` will not be called. Not after it was called. */
void lookup_cancel(struct lookup *l);
/* Lookups not yet answered by the servers, also those that were cancelled or timed out. */
size_t resolver_lookups(const struct resolver *r);

#endif

/*
 * The rules of nftables that lead sandboxes to the listeners of a configuration: those of `listen` lines that name an
 * `interface` or a `source`. A table of inet:
 *
 *   spoofed     what comes in by an interface from other addresses than its listeners' sources is dropped
 *   redirected  connections, and questions for names, are led to the listeners, by REDIRECT
 *   refused     connections are led to the listeners that have `tproxy`; what else comes from there is refused at once, for
 *               the host and for others behind it
 *   kept        of what was let through nothing begins that the host would forward
 *
 * and, for listeners that name a `port` of a bridge, one of bridge:
 *
 *   ports       what comes in by a port from other addresses than its sources is dropped
 *   between     nothing goes from or to another port of the bridge
 *
 * A rule is made once, as text for people and as the JSON that `nft -j list ruleset` has for it; no sets, whose
 * order nft chooses.
 */
#ifndef CLI_NFT_RULES_H
#define CLI_NFT_RULES_H

#include "daemon/config.h"

#include <jansson.h>

#define NFT_TABLE "exeat"

enum nft_chain {
    NFT_SPOOFED,
    NFT_REDIRECTED,
    NFT_REFUSED,
    NFT_KEPT,
    NFT_PORTS,
    NFT_BETWEEN,
    NFT_CHAINS
};

/* As nft lists it. */
struct nft_chain_info {
    const char *family, *name, *type, *hook, *priority; /* priority: the word for prio */
    int prio;
};

struct nft_rule {
    struct nft_rule *next;
    enum nft_chain chain;
    struct buf text; /* ` iifname "veth-a" ... accept`, from its first SP on */
    json_t *expr;
};

struct nft_rules {
    struct nft_rule *first, **last;
    bool marks4,
        marks6; /* TPROXY leads packets of IPv4, of IPv6, which takes routes (cli/nft_routes.h) */
};

const struct nft_chain_info *nft_chain_info(enum nft_chain chain);
bool nft_chain_is_of(enum nft_chain chain, const char *family);
/* {"chain": ...}, as `nft -j` takes it; NULL: no memory. */
json_t *nft_chain_json(enum nft_chain chain);
/* The families that have a table each, in order; NULL at the end. */
extern const char *const nft_families[];
/* Whether rules are made for the listener: it names an interface or a source. */
bool nft_rules_lead_to(const struct config_listener *l);
/* Whether there is any rule in the table of the family. */
bool nft_rules_some(const struct nft_rules *r, const char *family);
/*
 * ERR_MISSING: no listener has an interface or a source. ERR_BAD: nothing could arrive at one of them; *bad is it.
 * ERR_MEMORY. Whatever the result, to be freed.
 */
MUST_USE int nft_rules_make(const struct config *c, struct nft_rules *out,
                            const struct config_listener **bad);
void nft_rules_free(struct nft_rules *r);
void nft_rule_free(struct nft_rule *r);

#endif

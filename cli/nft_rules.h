/*
 * The rules of nftables that lead sandboxes to the listeners of a configuration: those of `listen` lines that name an
 * `interface` or a `source`. One table, whose chains all stand where packets come in:
 *
 *   spoofed     what comes in by an interface from other addresses than its listeners' sources is dropped
 *   redirected  connections, and questions for names, are led to the listeners
 *   refused     what else comes from there is refused at once, for the host and for others behind it
 *
 * A rule is made once, as text for people and as the JSON that `nft -j list ruleset` has for it; no sets, whose
 * order nft chooses.
 */
#ifndef CLI_NFT_RULES_H
#define CLI_NFT_RULES_H

#include "daemon/config.h"

#include <jansson.h>

#define NFT_FAMILY "inet"
#define NFT_TABLE "exeat"

enum nft_chain { NFT_SPOOFED, NFT_REDIRECTED, NFT_REFUSED, NFT_CHAINS };

/* As nft lists it. */
struct nft_chain_info {
    const char *name, *type, *hook, *priority; /* priority: the word for prio */
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
};

const struct nft_chain_info *nft_chain_info(enum nft_chain chain);
/*
 * ERR_MISSING: no listener has an interface or a source. ERR_BAD: nothing could arrive at one of them; *bad is it.
 * ERR_MEMORY. Whatever the result, to be freed.
 */
MUST_USE int nft_rules_make(const struct config *c, struct nft_rules *out,
                            const struct config_listener **bad);
void nft_rules_free(struct nft_rules *r);

#endif

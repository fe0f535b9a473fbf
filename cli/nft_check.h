/*
 * Whether rules are loaded as a configuration has them, and what else TPROXY takes: routes, and interfaces of which it can
 * take the packets.
 */
#ifndef CLI_NFT_CHECK_H
#define CLI_NFT_CHECK_H

#include "cli/nft_rules.h"

/*
 * Prints a line for each difference between the rules and a listing (of `nft -j list ruleset`), as JSON an array of them, or that
 * there is none. here: the configuration, where the listing is of this host as it is now; else NULL, and only rules are
 * looked at. EXIT_YES: no difference, EXIT_NO: some, EXIT_UNSEEN after saying why it cannot look.
 */
int nft_check(bool json, const struct nft_rules *rules, struct view listing,
              const struct config *here);

#endif

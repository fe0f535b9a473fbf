/*
 * Bridges of which br_netfilter shows packets to the rules of IP before they are IP's. A socket that TPROXY chooses for a packet
 * there is forgotten on the way up, and no rule sees the packet again: its sender is reset.
 */
#ifndef CLI_NFT_BRIDGES_H
#define CLI_NFT_BRIDGES_H

#include "base/bytes.h"

/*
 * Whether the interface is a bridge of which that is so for family 4 or 6: *setting is what to mend it with then, else NULL.
 * An interface that is not there is none. ERR_SYSTEM.
 */
MUST_USE int nft_bridge_look(const char *interface, uint8_t family, const char **setting);

#endif

/*
 * Settings of interfaces with which TPROXY cannot take their packets, though rules and routes are as they should be. -1: what could
 * not be read was told.
 */
#ifndef CLI_NFT_INTERFACES_H
#define CLI_NFT_INTERFACES_H

#include "base/bytes.h"

/*
 * A bridge of which br_netfilter shows packets to the rules of IP before they are IP's. A socket that TPROXY chooses for a packet
 * there is forgotten on the way up, and no rule sees the packet again: its sender is reset.
 *
 * Whether the interface is such a bridge for family 4 or 6: *setting is what to mend it with then, else NULL.
 * An interface that is not there is none.
 */
MUST_USE int nft_bridge_look(const char *interface, uint8_t family, const char **setting);
/*
 * An interface whose packets' sources are looked up with their mark (src_valid_mark, which wg-quick sets): with ours, each source is
 * an address of this host, and dropped. Of IPv4 alone. *setting is what to mend it with, or NULL; "": what counts for all interfaces.
 */
MUST_USE int nft_source_look(const char *interface, const char **setting);

#endif

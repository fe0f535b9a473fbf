/*
 * Where packets go that TPROXY chose a socket for: the rules of nftables mark them, and routing has to bring packets with the
 * mark to this host, whatever their destination, by a rule and a route for each family. Without these the kernel sends
 * them on, or away.
 */
#ifndef CLI_NFT_ROUTES_H
#define CLI_NFT_ROUTES_H

#include "base/bytes.h"

enum { NFT_MARK = 0x6578 /* "ex", of packets */, NFT_ROUTE_TABLE = 0x6578 };

enum nft_route_fault {
    NFT_ROUTE_NO_RULE = 1,
    NFT_ROUTE_NO_ROUTE = 2,
    NFT_ROUTE_LATE = 4, /* both are there, and another rule comes before */
};

/* Appends the commands for family 4 or 6, one a line, each behind what stands in before. */
void nft_routes_write(uint8_t family, const char *before, struct buf *out);
/* The command that mends a fault of the family; NFT_ROUTE_LATE: NULL. */
const char *nft_route_remedy(uint8_t family, enum nft_route_fault fault);
/*
 * Asks the kernel where a packet with the mark goes, and if not to this host, why: *faults, 0 for none.
 * ERR_SYSTEM.
 */
MUST_USE int nft_routes_look(uint8_t family, unsigned *faults);

#endif

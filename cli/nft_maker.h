/*
 * A rule of nftables in the making: begun, statements put one behind the other, and ended, by which it is among the rules. Each
 * statement is put as text for people and as the JSON that `nft -j` lists for it.
 */
#ifndef CLI_NFT_MAKER_H
#define CLI_NFT_MAKER_H

#include "cli/nft_rules.h"

struct maker {
    struct nft_rules *rules;
    struct nft_rule *now; /* NULL: none is begun */
    bool failed;          /* out of memory */
};

void maker_begin(struct maker *m, enum nft_chain chain);
/* One that is there already, since listeners share an interface, is not made twice. */
void maker_end(struct maker *m);

/* Takes over statement. */
void maker_put(struct maker *m, json_t *statement, const char *text);
/* `iifname "tap0"`, `oifname "tap0"`, `meta l4proto tcp` */
void maker_put_meta(struct maker *m, const char *key, const char *value);
/* `icmpv6 type nd-router-solicit`; takes over value, which is written so. */
void maker_put_payload(struct maker *m, const char *protocol, const char *field, json_t *value,
                       const char *written);
/* `tcp dport 443` */
void maker_put_port(struct maker *m, const char *protocol, uint16_t port);
/* `ip saddr 10.0.0.0/8`; of another protocol: `arp saddr ip 10.0.0.2` */
void maker_put_range(struct maker *m, const char *field, const struct range *r);
void maker_put_range_of(struct maker *m, const char *protocol, const char *field,
                        const struct range *r);
void maker_put_address(struct maker *m, const char *field, const struct address *a);
/* `ct state established`, `ct status dnat`, `ct direction original` */
void maker_put_connection(struct maker *m, const char *key, const char *value);

/* Ends it by `accept` or `drop`. */
void maker_end_plainly(struct maker *m, const char *verdict);
/* By REDIRECT, or DNAT to the listener's own address. */
void maker_end_leading_to(struct maker *m, const struct config_listener *l);
/* By TPROXY: it takes them where a socket has the listener's place; else the next rule is asked. */
void maker_end_diverting(struct maker *m, const struct config_listener *l);
/* By a reset, of TCP alone, or by ICMP. */
void maker_end_refusing(struct maker *m, bool tcp);

bool maker_is_wildcard(const struct address *a);

#endif

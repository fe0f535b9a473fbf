#include "cli/nft_rules.h"

#include "cli/nft_maker.h"
#include "policy/admission.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOGGED_A_SECOND = 50,
    LOGGED_BYTES = 68, /* the longest header of IPv4, and UDP's */
};

static const struct nft_chain_info chains[NFT_CHAINS] = {
    [NFT_SPOOFED] = {"inet", "spoofed", "filter", "prerouting", "raw", -300},
    [NFT_REDIRECTED] = {"inet", "redirected", "nat", "prerouting", "dstnat", -100},
    [NFT_REFUSED] = {"inet", "refused", "filter", "prerouting", "dstnat + 10", -90},
    [NFT_KEPT] = {"inet", "kept", "filter", "forward", "filter", 0},
    [NFT_PORTS] = {"bridge", "ports", "filter", "prerouting", "filter", -200},
    [NFT_BETWEEN] = {"bridge", "between", "filter", "forward", "filter", -200},
};

const char *const nft_families[] = {"inet", "bridge", NULL};

const struct nft_chain_info *nft_chain_info(enum nft_chain chain) {
    return &chains[chain];
}

bool nft_chain_is_of(enum nft_chain chain, const char *family) {
    return strcmp(chains[chain].family, family) == 0;
}

json_t *nft_chain_json(enum nft_chain chain) {
    const struct nft_chain_info *info = &chains[chain];
    return json_pack("{s:{s:s,s:s,s:s,s:s,s:s,s:i,s:s}}", "chain", "family", info->family, "table",
                     NFT_TABLE, "name", info->name, "type", info->type, "hook", info->hook, "prio",
                     info->prio, "policy", "accept");
}

bool nft_rules_some(const struct nft_rules *r, const char *family) {
    for (const struct nft_rule *rule = r->first; rule; rule = rule->next)
        if (strcmp(chains[rule->chain].family, family) == 0)
            return true;
    return false;
}

/* ---- whose packets ---- */

/* A listener, and one of its sources; NULL where it names none. */
struct packets {
    const struct config_listener *of;
    const struct range *source;
};

typedef void rule_writer(struct maker *m, const struct packets *p);

bool nft_rules_lead_to(const struct config_listener *l) {
    return l->place == PLACE_INTERNET && l->way != WAY_LOGGED &&
           (l->interface[0] || view_starts(l->admit, VIEW("source=")));
}

/* Begins a rule about them, as far as interface and address tell. */
static void begin_from(struct maker *m, enum nft_chain chain, const struct packets *p) {
    maker_begin(m, chain);
    if (p->of->interface[0])
        maker_put_meta(m, "iifname", p->of->interface);
    if (p->source)
        maker_put_range(m, "saddr", p->source);
    else
        maker_put_meta(m, "nfproto", p->of->address.family == 4 ? "ipv4" : "ipv6");
}

/* The same, of all that shares an interface, whatever its address. */
static void begin_scope(struct maker *m, enum nft_chain chain, const struct packets *p) {
    maker_begin(m, chain);
    if (p->of->interface[0])
        maker_put_meta(m, "iifname", p->of->interface);
    else if (p->source)
        maker_put_range(m, "saddr", p->source);
}

/*
 * To the listener's own address, if it has one. That tells the family, too: before it, nft would not
 * list the match of one.
 */
static void begin_to(struct maker *m, enum nft_chain chain, const struct packets *p,
                     const char *connection) {
    bool anywhere = maker_is_wildcard(&p->of->address);
    if (anywhere || p->source)
        begin_from(m, chain, p);
    else
        begin_scope(m, chain, p);
    if (connection)
        maker_put_connection(m, "status", connection);
    if (!anywhere)
        maker_put_address(m, "daddr", &p->of->address);
}

static void each_source(struct maker *m, const struct config_listener *l, rule_writer *write) {
    struct admission a;
    if (!nft_rules_lead_to(l))
        return;
    if (admission_read(l->admit, &a) != 0 || a.kind != ADMIT_SOURCES) {
        write(m, &(struct packets){l, NULL});
        return;
    }
    for (size_t i = 0; i < a.n; i++)
        if (a.of[i].range.base.family == l->address.family)
            write(m, &(struct packets){l, &a.of[i].range});
}

static void each(struct maker *m, const struct config *c, rule_writer *write) {
    for (const struct config_listener *l = c->listeners; l; l = l->next)
        each_source(m, l, write);
}

/* ---- spoofed ---- */

static void write_source(struct maker *m, const struct packets *p) {
    if (!p->source || !p->of->interface[0])
        return;
    begin_from(m, NFT_SPOOFED, p);
    maker_end_plainly(m, "accept");
}

/* Finding neighbours takes addresses of the link, and none before there is one. */
static void write_neighbours(struct maker *m, enum nft_chain chain, const char *interface) {
    static const struct range link = {{6, {0xfe, 0x80}}, 10}, none = {{6, {0}}, 128};
    const struct range *ranges[] = {&link, &none};
    for (size_t i = 0; i < 2; i++) {
        maker_begin(m, chain);
        maker_put_meta(m, "iifname", interface);
        maker_put_range(m, "saddr", ranges[i]);
        maker_put_meta(m, "l4proto", "ipv6-icmp");
        maker_end_plainly(m, "accept");
    }
}

static void write_spoofed(struct maker *m, const struct packets *p) {
    if (!p->source || !p->of->interface[0])
        return;
    write_neighbours(m, NFT_SPOOFED, p->of->interface);
    maker_begin(m, NFT_SPOOFED);
    maker_put_meta(m, "iifname", p->of->interface);
    maker_end_plainly(m, "drop");
}

/* ---- at a bridge ---- */

static void begin_port(struct maker *m, enum nft_chain chain, const char *way,
                       const struct packets *p) {
    maker_begin(m, chain);
    maker_put_meta(m, way, p->of->port_of_bridge);
}

static void write_port_source(struct maker *m, const struct packets *p) {
    if (!p->source || !p->of->port_of_bridge[0])
        return;
    begin_port(m, NFT_PORTS, "iifname", p);
    maker_put_range(m, "saddr", p->source);
    maker_end_plainly(m, "accept");
    if (p->source->base.family != 4)
        return;
    begin_port(m, NFT_PORTS, "iifname", p);
    maker_put_range_of(m, "arp", "saddr ip", p->source);
    maker_end_plainly(m, "accept");
}

static void write_port(struct maker *m, const struct packets *p) {
    if (!p->source || !p->of->port_of_bridge[0])
        return;
    write_neighbours(m, NFT_PORTS, p->of->port_of_bridge);
    begin_port(m, NFT_PORTS, "iifname", p);
    maker_end_plainly(m, "drop");
    begin_port(m, NFT_BETWEEN, "iifname", p);
    maker_end_plainly(m, "drop");
    begin_port(m, NFT_BETWEEN, "oifname", p);
    maker_end_plainly(m, "drop");
}

/* ---- redirected ---- */

static const char *protocol_of(const struct config_listener *l) {
    return l->way == WAY_DNS_UDP ? "udp" : "tcp";
}

/* The proxy's own address is no other host's. */
static void write_explicit(struct maker *m, enum nft_chain chain, const struct packets *p) {
    if (p->of->way != WAY_EXPLICIT)
        return;
    begin_to(m, chain, p, NULL);
    maker_put_port(m, "tcp", p->of->port);
    maker_end_plainly(m, "accept");
}

static void write_left(struct maker *m, const struct packets *p) {
    write_explicit(m, NFT_REDIRECTED, p);
}

static void write_names(struct maker *m, const struct packets *p) {
    if (p->of->way != WAY_DNS_UDP && p->of->way != WAY_DNS_TCP)
        return;
    begin_from(m, NFT_REDIRECTED, p);
    maker_put_port(m, protocol_of(p->of), 53);
    maker_end_leading_to(m, p->of);
}

static void write_connections(struct maker *m, const struct packets *p) {
    if (p->of->way != WAY_TRANSPARENT || p->of->tproxy)
        return;
    begin_from(m, NFT_REDIRECTED, p);
    maker_put_meta(m, "l4proto", "tcp");
    maker_end_leading_to(m, p->of);
}

/* ---- refused ---- */

static void write_answers(struct maker *m, enum nft_chain chain, const struct packets *p) {
    begin_scope(m, chain, p);
    maker_put_connection(m, "state", "established");
    maker_end_plainly(m, "accept");
    /* What the way back says of them: too long, unreachable. */
    begin_scope(m, chain, p);
    maker_put_connection(m, "state", "related");
    maker_put_meta(m, "l4proto", p->of->address.family == 4 ? "icmp" : "ipv6-icmp");
    maker_end_plainly(m, "accept");
}

/*
 * By our rules: those of another table lead elsewhere. A question to where the listener for names is
 * anyway is led nowhere, and has no mark of it.
 */
static void write_led(struct maker *m, const struct packets *p) {
    if (p->of->way == WAY_EXPLICIT || p->of->tproxy)
        return;
    bool is_meant = p->of->way != WAY_TRANSPARENT && p->of->port == 53;
    begin_to(m, NFT_REFUSED, p, is_meant ? NULL : "dnat");
    maker_put_port(m, protocol_of(p->of), p->of->port);
    maker_end_plainly(m, "accept");
}

static void write_arrived(struct maker *m, const struct packets *p) {
    write_led(m, p);
    write_explicit(m, NFT_REFUSED, p);
}

/* All packets of a connection, but not what answers one that came from elsewhere. */
static void write_diverted(struct maker *m, const struct packets *p) {
    if (!p->of->tproxy)
        return;
    begin_from(m, NFT_REFUSED, p);
    maker_put_meta(m, "l4proto", "tcp");
    maker_put_connection(m, "direction", "original");
    maker_end_diverting(m, p->of);
    if (p->of->address.family == 4)
        m->rules->marks4 = true;
    else
        m->rules->marks6 = true;
}

static void write_let_through(struct maker *m, const struct packets *p) {
    static const char *const neighbours[] = {"nd-router-solicit", "nd-neighbor-solicit",
                                             "nd-neighbor-advert"};
    write_answers(m, NFT_REFUSED, p);
    for (size_t i = 0; i < 3 && p->of->interface[0]; i++) {
        begin_scope(m, NFT_REFUSED, p);
        maker_put_payload(m, "icmpv6", "type", json_string(neighbours[i]), neighbours[i]);
        maker_end_plainly(m, "accept");
    }
}

static void write_refusals(struct maker *m, enum nft_chain chain, const struct packets *p) {
    begin_scope(m, chain, p);
    maker_end_refusing(m, true);
    begin_scope(m, chain, p);
    maker_end_refusing(m, false);
}

/* Before they are refused; the rest of so many in a second is refused unseen. */
static void write_logged(struct maker *m, const struct packets *p) {
    char text[64];
    if (!p->of->nflog)
        return;
    begin_from(m, NFT_REFUSED, p);
    maker_put_meta(m, "l4proto", "udp");
    snprintf(text, sizeof text, "limit rate %d/second burst 5 packets", LOGGED_A_SECOND);
    maker_put(m,
              json_pack("{s:{s:i,s:i,s:s}}", "limit", "rate", LOGGED_A_SECOND, "burst", 5, "per",
                        "second"),
              text);
    snprintf(text, sizeof text, "log group %u snaplen %d", p->of->nflog, LOGGED_BYTES);
    maker_put(
        m, json_pack("{s:{s:i,s:i}}", "log", "group", (int)p->of->nflog, "snaplen", LOGGED_BYTES),
        text);
    maker_end(m);
}

static void write_refused(struct maker *m, const struct packets *p) {
    write_refusals(m, NFT_REFUSED, p);
}

/* ---- kept ---- */

/* A port on a wildcard, what another table leads elsewhere, and neighbours' messages are let through for this host. */
static void write_kept_answers(struct maker *m, const struct packets *p) {
    write_answers(m, NFT_KEPT, p);
}

static void write_kept(struct maker *m, const struct packets *p) {
    write_refusals(m, NFT_KEPT, p);
}

/* ---- all ---- */

/* Of what comes in by an interface, nothing is for loopback, unless TPROXY chooses the socket. */
static const struct config_listener *find_unreachable(const struct config *c) {
    for (const struct config_listener *l = c->listeners; l; l = l->next)
        if (nft_rules_lead_to(l) && !l->tproxy && address_classify(&l->address) == ADDRESS_LOOPBACK)
            return l;
    return NULL;
}

int nft_rules_make(const struct config *c, struct nft_rules *out,
                   const struct config_listener **bad) {
    static rule_writer *const writers[] = {
        write_source,       write_spoofed,  write_left,        write_names,  write_connections,
        write_arrived,      write_diverted, write_let_through, write_logged, write_refused,
        write_kept_answers, write_kept,     write_port_source, write_port};
    struct maker m = {.rules = out};
    *out = (struct nft_rules){.last = &out->first};
    *bad = find_unreachable(c);
    if (*bad)
        return ERR_BAD;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        each(&m, c, writers[i]);
    if (m.failed)
        return ERR_MEMORY;
    return out->first ? 0 : ERR_MISSING;
}

void nft_rule_free(struct nft_rule *r) {
    buf_free(&r->text);
    json_decref(r->expr);
    free(r);
}

void nft_rules_free(struct nft_rules *r) {
    while (r->first) {
        struct nft_rule *next = r->first->next;
        nft_rule_free(r->first);
        r->first = next;
    }
}

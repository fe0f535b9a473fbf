#include "run/capture.h"

#include "run/netlink.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * table inet exeat {
 *     chain prerouting {
 *         type filter hook prerouting priority mangle;
 *         meta l4proto tcp socket transparent { 0, 1 } accept
 *         meta l4proto tcp ip daddr != 127.0.0.0/8 tproxy ip to :PORT
 *         meta l4proto tcp ip6 daddr != ::1 tproxy ip6 to :PORT
 *     }
 * }
 *
 * Said in netlink, since a sandbox's host may have no nft. Not by REDIRECT, before which nobody can look for sockets, so
 * that servers inside would be found on loopback only.
 */
#define TABLE "exeat"
#define CHAIN "prerouting"

enum { PRIORITY = -150 /* mangle */, BATCH_SIZE = 2048 };

struct batch {
    _Alignas(struct nlmsghdr) uint8_t at[BATCH_SIZE];
    size_t n;
};

/* ---- messages and attributes ---- */

static void *put(struct batch *b, const void *bytes, size_t n) {
    assert(b->n + NLMSG_ALIGN(n) <= sizeof b->at);
    void *at = b->at + b->n;
    if (n > 0)
        memcpy(at, bytes, n);
    b->n += NLMSG_ALIGN(n);
    return at;
}

static struct nlmsghdr *begin(struct batch *b, uint16_t type, uint16_t flags, uint8_t family,
                              uint16_t subsystem) {
    const struct nlmsghdr header = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags};
    const struct nfgenmsg generic = {
        .nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(subsystem)};
    struct nlmsghdr *m = put(b, &header, sizeof header);
    put(b, &generic, sizeof generic);
    return m;
}

static void end(const struct batch *b, struct nlmsghdr *m) {
    m->nlmsg_len = (uint32_t)(b->at + b->n - (uint8_t *)m);
}

static struct nlmsghdr *begin_new(struct batch *b, uint16_t type, uint16_t flags) {
    return begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_CREATE | flags,
                 NFPROTO_INET, 0);
}

static void put_attribute(struct batch *b, uint16_t type, const void *bytes, size_t n) {
    const struct nlattr header = {(uint16_t)(sizeof header + n), type};
    put(b, &header, sizeof header);
    put(b, bytes, n);
}

static void put_text(struct batch *b, uint16_t type, const char *text) {
    put_attribute(b, type, text, strlen(text) + 1);
}

static void put_number(struct batch *b, uint16_t type, uint32_t x) {
    x = htonl(x);
    put_attribute(b, type, &x, sizeof x);
}

static struct nlattr *open_nest(struct batch *b, uint16_t type) {
    const struct nlattr header = {sizeof header, type | NLA_F_NESTED};
    return put(b, &header, sizeof header);
}

static void close_nest(const struct batch *b, struct nlattr *nest) {
    nest->nla_len = (uint16_t)(b->at + b->n - (uint8_t *)nest);
}

/* ---- expressions ---- */

struct expression {
    struct nlattr *element, *data;
};

static struct expression begin_expression(struct batch *b, const char *name) {
    struct expression e = {.element = open_nest(b, NFTA_LIST_ELEM)};
    put_text(b, NFTA_EXPR_NAME, name);
    e.data = open_nest(b, NFTA_EXPR_DATA);
    return e;
}

static void end_expression(const struct batch *b, struct expression e) {
    close_nest(b, e.data);
    close_nest(b, e.element);
}

static void put_meta(struct batch *b, enum nft_meta_keys key) {
    struct expression e = begin_expression(b, "meta");
    put_number(b, NFTA_META_DREG, NFT_REG_1);
    put_number(b, NFTA_META_KEY, key);
    end_expression(b, e);
}

static void put_compare(struct batch *b, enum nft_cmp_ops op, const void *bytes, size_t n) {
    struct expression e = begin_expression(b, "cmp");
    put_number(b, NFTA_CMP_SREG, NFT_REG_1);
    put_number(b, NFTA_CMP_OP, op);
    struct nlattr *data = open_nest(b, NFTA_CMP_DATA);
    put_attribute(b, NFTA_DATA_VALUE, bytes, n);
    close_nest(b, data);
    end_expression(b, e);
}

static void put_is(struct batch *b, enum nft_meta_keys key, uint8_t value) {
    put_meta(b, key);
    put_compare(b, NFT_CMP_EQ, &value, sizeof value);
}

/* The rule ends here where no socket is found. */
static void put_socket(struct batch *b) {
    struct expression e = begin_expression(b, "socket");
    put_number(b, NFTA_SOCKET_KEY, NFT_SOCKET_TRANSPARENT);
    put_number(b, NFTA_SOCKET_DREG, NFT_REG_1);
    end_expression(b, e);
}

static void put_accept(struct batch *b) {
    struct expression e = begin_expression(b, "immediate");
    put_number(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    struct nlattr *data = open_nest(b, NFTA_IMMEDIATE_DATA);
    struct nlattr *verdict = open_nest(b, NFTA_DATA_VERDICT);
    put_number(b, NFTA_VERDICT_CODE, NF_ACCEPT);
    close_nest(b, verdict);
    close_nest(b, data);
    end_expression(b, e);
}

/* The destination is not this one: its first bytes, of the network header from offset on. */
static void put_destination_is_not(struct batch *b, uint32_t offset, const void *bytes, size_t n) {
    struct expression e = begin_expression(b, "payload");
    put_number(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
    put_number(b, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    put_number(b, NFTA_PAYLOAD_OFFSET, offset);
    put_number(b, NFTA_PAYLOAD_LEN, (uint32_t)n);
    end_expression(b, e);
    put_compare(b, NFT_CMP_NEQ, bytes, n);
}

static void put_hand_over(struct batch *b, uint8_t family, uint16_t port) {
    struct expression e = begin_expression(b, "immediate");
    port = htons(port);
    put_number(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    struct nlattr *data = open_nest(b, NFTA_IMMEDIATE_DATA);
    put_attribute(b, NFTA_DATA_VALUE, &port, sizeof port);
    close_nest(b, data);
    end_expression(b, e);
    e = begin_expression(b, "tproxy");
    put_number(b, NFTA_TPROXY_FAMILY, family);
    put_number(b, NFTA_TPROXY_REG_PORT, NFT_REG_1);
    end_expression(b, e);
}

/* ---- the table ---- */

static void put_table(struct batch *b) {
    struct nlmsghdr *m = begin_new(b, NFT_MSG_NEWTABLE, 0);
    put_text(b, NFTA_TABLE_NAME, TABLE);
    end(b, m);
}

static void put_chain(struct batch *b) {
    struct nlmsghdr *m = begin_new(b, NFT_MSG_NEWCHAIN, 0);
    put_text(b, NFTA_CHAIN_TABLE, TABLE);
    put_text(b, NFTA_CHAIN_NAME, CHAIN);
    put_text(b, NFTA_CHAIN_TYPE, "filter");
    struct nlattr *hook = open_nest(b, NFTA_CHAIN_HOOK);
    put_number(b, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
    put_number(b, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY);
    close_nest(b, hook);
    end(b, m);
}

struct rule {
    struct nlmsghdr *message;
    struct nlattr *expressions;
};

static struct rule begin_rule(struct batch *b, bool last) {
    struct rule r = {
        .message = begin_new(b, NFT_MSG_NEWRULE, last ? NLM_F_APPEND | NLM_F_ACK : NLM_F_APPEND)};
    put_text(b, NFTA_RULE_TABLE, TABLE);
    put_text(b, NFTA_RULE_CHAIN, CHAIN);
    r.expressions = open_nest(b, NFTA_RULE_EXPRESSIONS);
    return r;
}

static void end_rule(const struct batch *b, struct rule r) {
    close_nest(b, r.expressions);
    end(b, r.message);
}

static void put_rule_of_sockets(struct batch *b) {
    struct rule r = begin_rule(b, false);
    put_is(b, NFT_META_L4PROTO, IPPROTO_TCP);
    put_socket(b);
    put_accept(b);
    end_rule(b, r);
}

static void put_rule_of_family(struct batch *b, uint8_t family, uint16_t port, bool last) {
    static const uint8_t loopback4[1] = {127}, loopback6[16] = {[15] = 1};
    struct rule r = begin_rule(b, last);
    put_is(b, NFT_META_NFPROTO, family);
    put_is(b, NFT_META_L4PROTO, IPPROTO_TCP);
    if (family == NFPROTO_IPV4)
        put_destination_is_not(b, 16, loopback4, sizeof loopback4);
    else
        put_destination_is_not(b, 24, loopback6, sizeof loopback6);
    put_hand_over(b, family, port);
    end_rule(b, r);
}

int capture_ports(uint16_t port, bool ipv6) {
    struct batch b = {.n = 0};
    end(&b, begin(&b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
    put_table(&b);
    put_chain(&b);
    put_rule_of_sockets(&b);
    put_rule_of_family(&b, NFPROTO_IPV4, port, !ipv6);
    if (ipv6)
        put_rule_of_family(&b, NFPROTO_IPV6, port, true);
    end(&b, begin(&b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
    int s = netlink_open(NETLINK_NETFILTER);
    int result = s < 0 ? -1 : netlink_ask(s, b.at, b.n);
    int why = errno;
    if (s >= 0)
        close(s);
    errno = why;
    return result;
}

#include "http/unreachable.h"

#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <string.h>

enum {
    ICMP_HEAD = 8,
    IPV6_HEAD = 40,
    IPV4_PROTOCOL = 9,
    IPV4_ADDRESSES = 12,
    IPV6_NEXT = 6,
    IPV6_ADDRESSES = 8,
    PROTOCOL_ICMP = 1,
    PROTOCOL_UDP = 17,
    PORTS = 4, /* bytes of the datagram's head that are wanted */
};

static uint16_t number_at(struct view v, size_t at) {
    return (uint16_t)(v.p[at] << 8 | v.p[at + 1]);
}

static unsigned version_of(struct view packet) {
    return packet.n > 0 ? packet.p[0] >> 4 : 0;
}

/* Bytes of the header, with its options; 0: there is no whole one. */
static size_t head_of_ipv4(struct view packet) {
    size_t n = packet.n > 0 ? 4u * (packet.p[0] & 15u) : 0;
    return version_of(packet) == 4 && n >= 20 && packet.n >= n ? n : 0;
}

static struct address address_at(struct view packet, uint8_t family, size_t at) {
    struct address a = {.family = family};
    view_copy(view_slice(packet, at, at + (family == 4 ? 4 : 16)), (char *)a.bytes);
    return a;
}

/* The packet that was refused, at its IP header. */
static int read_refused(struct view packet, uint8_t family, size_t head, struct unreachable *out) {
    size_t addresses = family == 4 ? IPV4_ADDRESSES : IPV6_ADDRESSES, size = family == 4 ? 4 : 16;
    uint8_t protocol = head > 0 ? packet.p[family == 4 ? IPV4_PROTOCOL : IPV6_NEXT] : 0;
    if (protocol != PROTOCOL_UDP || packet.n < head + PORTS)
        return ERR_BAD;
    *out = (struct unreachable){.from = address_at(packet, family, addresses),
                                .to = address_at(packet, family, addresses + size),
                                .from_port = number_at(packet, head),
                                .to_port = number_at(packet, head + 2)};
    return 0;
}

static bool says(struct view message, uint8_t type, uint8_t code) {
    return message.n >= ICMP_HEAD && message.p[0] == type && message.p[1] == code;
}

int unreachable_read(struct view packet, struct unreachable *out) {
    enum { UNREACHABLE4 = 3, PORT4 = 3, UNREACHABLE6 = 1, PORT6 = 4 };
    size_t head = head_of_ipv4(packet);
    if (head > 0) {
        struct view message = view_skip(packet, head), refused = view_skip(message, ICMP_HEAD);
        return packet.p[IPV4_PROTOCOL] == PROTOCOL_ICMP && says(message, UNREACHABLE4, PORT4)
                   ? read_refused(refused, 4, head_of_ipv4(refused), out)
                   : ERR_BAD;
    }
    struct view refused = view_skip(packet, ICMP_HEAD);
    bool whole = version_of(refused) == 6 && refused.n >= IPV6_HEAD;
    return says(packet, UNREACHABLE6, PORT6) ? read_refused(refused, 6, whole ? IPV6_HEAD : 0, out)
                                             : ERR_BAD;
}

/* The packet at its IP header, or nothing. */
static struct view logged_packet(struct view attributes) {
    struct nlattr a;
    while (attributes.n >= sizeof a) {
        memcpy(&a, attributes.p, sizeof a);
        if (a.nla_len < sizeof a || a.nla_len > attributes.n)
            break;
        if (a.nla_type == NFULA_PAYLOAD)
            return view_slice(attributes, sizeof a, a.nla_len);
        attributes = view_skip(attributes, NLA_ALIGN(a.nla_len));
    }
    return (struct view){NULL, 0};
}

int unreachable_read_logged(struct view message, struct unreachable *out) {
    const uint16_t kind = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET;
    struct nlmsghdr head;
    if (message.n < sizeof head)
        return ERR_BAD;
    memcpy(&head, message.p, sizeof head);
    if (head.nlmsg_type != kind || head.nlmsg_len > message.n)
        return ERR_BAD;
    struct view packet = logged_packet(
        view_skip(view_head(message, head.nlmsg_len), sizeof head + sizeof(struct nfgenmsg)));
    bool six = version_of(packet) == 6 && packet.n >= IPV6_HEAD;
    return six ? read_refused(packet, 6, IPV6_HEAD, out)
               : read_refused(packet, 4, head_of_ipv4(packet), out);
}

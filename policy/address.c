#include "policy/address.h"

#include <stdio.h>
#include <string.h>

/* ---- text to bytes ---- */

/* 0 to 255 in decimal, without a leading zero: "0177" and "08" mean different things to different readers. */
static int parse_octet(struct view text, uint8_t *out) {
    uint64_t x;
    if (text.n == 0 || text.n > 3 || (text.n > 1 && text.p[0] == '0'))
        return ERR_BAD;
    if (view_number(text, 255, &x) != 0)
        return ERR_BAD;
    *out = (uint8_t)x;
    return 0;
}

static int parse_ipv4(struct view text, uint8_t out[4]) {
    for (int i = 0; i < 4; i++) {
        size_t dot = view_find(text, '.');
        bool last = i == 3;
        if (last != (dot == text.n))
            return ERR_BAD;
        if (parse_octet(view_cut(&text, '.'), &out[i]) != 0)
            return ERR_BAD;
    }
    return 0;
}

/* One to four hexadecimal digits. */
static int parse_group(struct view text, uint8_t out[2]) {
    unsigned x = 0;
    if (text.n == 0 || text.n > 4)
        return ERR_BAD;
    for (size_t i = 0; i < text.n; i++) {
        int digit = hex_value(text.p[i]);
        if (digit < 0)
            return ERR_BAD;
        x = x << 4 | (unsigned)digit;
    }
    out[0] = (uint8_t)(x >> 8);
    out[1] = (uint8_t)x;
    return 0;
}

/* Groups separated by single ':', the last perhaps a dotted quad; empty text is no group. */
static int parse_groups(struct view text, uint8_t out[16], size_t *size) {
    size_t n = 0;
    for (bool more = text.n > 0; more;) {
        more = view_find(text, ':') < text.n;
        struct view group = view_cut(&text, ':');
        if (!more && view_find(group, '.') < group.n) {
            if (n + 4 > 16 || parse_ipv4(group, out + n) != 0)
                return ERR_BAD;
            n += 4;
            continue;
        }
        if (n + 2 > 16 || parse_group(group, out + n) != 0)
            return ERR_BAD;
        n += 2;
    }
    *size = n;
    return 0;
}

/* RFC 4291 2.2: eight groups, or fewer around one "::" that stands for at least one. */
static int parse_ipv6(struct view text, uint8_t out[16]) {
    uint8_t head[16], tail[16];
    size_t n_head, n_tail = 0;
    size_t gap = view_search(text, VIEW("::"));
    bool has_gap = gap < text.n;
    struct view before = view_head(text, gap);
    struct view after = view_skip(text, gap + 2);
    if (has_gap && view_find(before, '.') < before.n)
        return ERR_BAD;
    if (parse_groups(before, head, &n_head) != 0)
        return ERR_BAD;
    if (has_gap && parse_groups(after, tail, &n_tail) != 0)
        return ERR_BAD;
    if (has_gap ? n_head + n_tail > 14 : n_head != 16)
        return ERR_BAD;
    memset(out, 0, 16);
    memcpy(out, head, n_head);
    memcpy(out + 16 - n_tail, tail, n_tail);
    return 0;
}

int address_parse(struct view text, struct address *out) {
    struct address a = {0};
    bool six = view_find(text, ':') < text.n;
    int rc = six ? parse_ipv6(text, a.bytes) : parse_ipv4(text, a.bytes);
    if (rc != 0)
        return rc;
    a.family = six ? 6 : 4;
    *out = a;
    return 0;
}

/* ---- bytes to text ---- */

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

static bool is_mapped(const struct address *a) {
    return a->family == 6 && memcmp(a->bytes, mapped_prefix, sizeof mapped_prefix) == 0;
}

static void format_ipv4(const uint8_t b[4], char *out, size_t size) {
    snprintf(out, size, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
}

static unsigned group_at(const uint8_t b[16], int i) {
    return (unsigned)(b[2 * i] << 8 | b[2 * i + 1]);
}

/* The longest run of at least two zero groups, the first of equals (RFC 5952 4.2). */
static int longest_zeros(const uint8_t b[16], int *length) {
    int best = -1;
    *length = 1;
    for (int i = 0; i < 8; i++) {
        int n = 0;
        while (i + n < 8 && group_at(b, i + n) == 0)
            n++;
        if (n > *length) {
            best = i;
            *length = n;
        }
    }
    return best;
}

static void format_ipv6(const uint8_t b[16], char *out, size_t size) {
    int n_zeros, zeros = longest_zeros(b, &n_zeros);
    size_t at = 0;
    for (int i = 0; i < 8;) {
        if (i == zeros) {
            at += (size_t)snprintf(out + at, size - at, "::");
            i += n_zeros;
            continue;
        }
        bool colon = i > 0 && (zeros < 0 || i != zeros + n_zeros);
        at += (size_t)snprintf(out + at, size - at, "%s%x", colon ? ":" : "", group_at(b, i));
        i++;
    }
}

void address_format(const struct address *a, char *out) {
    char quad[16];
    if (a->family == 4) {
        format_ipv4(a->bytes, out, ADDRESS_TEXT_SIZE);
    } else if (is_mapped(a)) {
        format_ipv4(a->bytes + 12, quad, sizeof quad);
        snprintf(out, ADDRESS_TEXT_SIZE, "::ffff:%s", quad);
    } else {
        format_ipv6(a->bytes, out, ADDRESS_TEXT_SIZE);
    }
}

bool address_equal(const struct address *a, const struct address *b) {
    return a->family == b->family && memcmp(a->bytes, b->bytes, a->family == 4 ? 4 : 16) == 0;
}

/* ---- ranges ---- */

static struct address ipv4_of(const uint8_t bytes[4]) {
    struct address a = {.family = 4};
    memcpy(a.bytes, bytes, 4);
    return a;
}

static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits) {
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

static bool clear_beyond(const struct address *a, unsigned bits) {
    unsigned all = a->family == 4 ? 32 : 128;
    for (unsigned i = bits; i < all; i++)
        if (a->bytes[i / 8] >> (7 - i % 8) & 1)
            return false;
    return true;
}

int range_parse(struct view text, struct range *out) {
    struct view rest = text;
    struct range r;
    bool has_bits = view_find(text, '/') < text.n;
    struct view address = view_cut(&rest, '/');
    if (address_parse(address, &r.base) != 0)
        return ERR_BAD;
    uint64_t all = r.base.family == 4 ? 32 : 128, bits = all;
    if (has_bits && (view_number(rest, all, &bits) != 0 || (rest.n > 1 && rest.p[0] == '0')))
        return ERR_BAD;
    if (!clear_beyond(&r.base, (unsigned)bits))
        return ERR_BAD;
    /* Addresses are compared after unpacking, so a mapped range must be unpacked too or hold nothing. */
    if (is_mapped(&r.base) && bits >= 96) {
        r.base = ipv4_of(r.base.bytes + 12);
        bits -= 96;
    }
    r.bits = (uint8_t)bits;
    *out = r;
    return 0;
}

bool range_holds(const struct range *r, const struct address *a) {
    struct address plain = is_mapped(a) ? ipv4_of(a->bytes + 12) : *a;
    return plain.family == r->base.family && same_prefix(plain.bytes, r->base.bytes, r->bits);
}

/* ---- classes ---- */

struct class_row {
    uint8_t bytes[16];
    uint8_t bits;
    enum address_class class;
};

/* The first row that holds decides. */
static const struct class_row ipv4_classes[] = {
    {{169, 254, 169, 254}, 32, ADDRESS_METADATA}, /* most clouds */
    {{169, 254, 170, 2}, 32, ADDRESS_METADATA},   /* Amazon ECS tasks */
    {{169, 254, 170, 23}, 32, ADDRESS_METADATA},  /* Amazon EKS pods */
    {{169, 254, 0, 23}, 32, ADDRESS_METADATA},    /* Tencent */
    {{169, 254, 42, 42}, 32, ADDRESS_METADATA},   /* Scaleway */
    {{100, 100, 100, 200}, 32, ADDRESS_METADATA}, /* Alibaba */
    {{192, 0, 0, 192}, 32, ADDRESS_METADATA},     /* Oracle */
    {{168, 63, 129, 16}, 32, ADDRESS_METADATA},   /* Azure's wire server */
    {{0}, 8, ADDRESS_UNSPECIFIED},
    {{10}, 8, ADDRESS_PRIVATE},
    {{100, 64}, 10, ADDRESS_SHARED},
    {{127}, 8, ADDRESS_LOOPBACK},
    {{169, 254}, 16, ADDRESS_LINK_LOCAL},
    {{172, 16}, 12, ADDRESS_PRIVATE},
    {{192, 0, 0}, 24, ADDRESS_RESERVED},
    {{192, 0, 2}, 24, ADDRESS_DOCUMENTATION},
    {{192, 31, 196}, 24, ADDRESS_RESERVED}, /* AS112 */
    {{192, 52, 193}, 24, ADDRESS_RESERVED}, /* AMT */
    {{192, 88, 99}, 24, ADDRESS_RESERVED},  /* 6to4 relays, deprecated */
    {{192, 168}, 16, ADDRESS_PRIVATE},
    {{192, 175, 48}, 24, ADDRESS_RESERVED}, /* AS112 */
    {{198, 18}, 15, ADDRESS_BENCHMARK},
    {{198, 51, 100}, 24, ADDRESS_DOCUMENTATION},
    {{203, 0, 113}, 24, ADDRESS_DOCUMENTATION},
    {{224}, 4, ADDRESS_MULTICAST},
    {{255, 255, 255, 255}, 32, ADDRESS_BROADCAST},
    {{240}, 4, ADDRESS_RESERVED},
    {{0}, 0, ADDRESS_PUBLIC},
};

/* Only 2000::/3 is global unicast; what no row names outside of it is reserved. */
static const struct class_row ipv6_classes[] = {
    {{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, 128, ADDRESS_METADATA}, /* Amazon */
    {{0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23}, 128, ADDRESS_METADATA},              /* Amazon EKS */
    {{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}, 128, ADDRESS_METADATA}, /* Google */
    {{0xfd, 0x00, 0x00, 0x42, [15] = 0x42}, 128, ADDRESS_METADATA},              /* Scaleway */
    {{0xfd, 0x00, 0xa9, 0xfe, 0xa9, 0xfe, [15] = 0x01}, 128, ADDRESS_METADATA},  /* Akamai */
    {{0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe}, 128, ADDRESS_METADATA},        /* OpenStack */
    {{0}, 128, ADDRESS_UNSPECIFIED},
    {{[15] = 1}, 128, ADDRESS_LOOPBACK},
    {{0xfc}, 7, ADDRESS_PRIVATE},
    {{0xfe, 0x80}, 10, ADDRESS_LINK_LOCAL},
    {{0xfe, 0xc0}, 10, ADDRESS_PRIVATE},
    {{0xff}, 8, ADDRESS_MULTICAST},
    {{0x20, 0x01, 0x00, 0x02}, 48, ADDRESS_BENCHMARK},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, ADDRESS_DOCUMENTATION},
    {{0x3f, 0xff}, 20, ADDRESS_DOCUMENTATION},
    {{0x20, 0x01}, 23, ADDRESS_RESERVED},                           /* IETF: Teredo, ORCHID */
    {{0x26, 0x20, 0x00, 0x4f, 0x80, 0x00}, 48, ADDRESS_RESERVED},   /* AS112 */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, ADDRESS_TRANSLATED}, /* RFC 8215 */
    {{0x00, 0x64, 0xff, 0x9b}, 96, ADDRESS_PUBLIC}, /* what is inside was looked at */
    {{0x20}, 3, ADDRESS_PUBLIC},
    {{0}, 0, ADDRESS_RESERVED},
};

static enum address_class class_in(const struct class_row *rows, const uint8_t *bytes) {
    while (!same_prefix(rows->bytes, bytes, rows->bits))
        rows++;
    return rows->class;
}

/* Forms of IPv6 addresses that carry an IPv4 address which somebody on the way would dial. */
static const struct carrier {
    uint8_t bytes[16], mask[16];
    uint8_t at;       /* where the IPv4 address stands */
    uint8_t inverted; /* 0xff when its bits are */
} carriers[] = {
    /* NAT64, RFC 6052 */
    {{0x00, 0x64, 0xff, 0x9b},
     {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
     12,
     0},
    /* 6to4, RFC 3056 */
    {{0x20, 0x02}, {0xff, 0xff}, 2, 0},
    /* Teredo, RFC 4380: the server, and the client */
    {{0x20, 0x01}, {0xff, 0xff, 0xff, 0xff}, 4, 0},
    {{0x20, 0x01}, {0xff, 0xff, 0xff, 0xff}, 12, 0xff},
    /* ISATAP under any prefix, RFC 5214; the masked bit says whether the address is unique */
    {{[10] = 0x5e, [11] = 0xfe}, {[8] = 0xfd, 0xff, 0xff, 0xff}, 12, 0},
    /* SIIT, RFC 2765 */
    {{[8] = 0xff, [9] = 0xff},
     {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
     12,
     0},
    /* IPv4-compatible, RFC 4291 2.5.5.1 */
    {{0}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 12, 0},
};

static bool carrier_matches(const struct carrier *c, const uint8_t bytes[16]) {
    for (int i = 0; i < 16; i++)
        if ((bytes[i] & c->mask[i]) != c->bytes[i])
            return false;
    return true;
}

static void carried(const struct carrier *c, const uint8_t bytes[16], uint8_t inner[4]) {
    for (int i = 0; i < 4; i++)
        inner[i] = bytes[c->at + i] ^ c->inverted;
}

static enum address_class carried_class(const struct carrier *c, const uint8_t bytes[16]) {
    uint8_t inner[4];
    carried(c, bytes, inner);
    enum address_class class = class_in(ipv4_classes, inner);
    if (class == ADDRESS_PUBLIC || class == ADDRESS_METADATA)
        return class;
    return ADDRESS_TRANSLATED;
}

static bool is_plain_low(const uint8_t b[16]) {
    static const uint8_t zeros[15];
    return memcmp(b, zeros, sizeof zeros) == 0 && b[15] <= 1;
}

static enum address_class classify_ipv6(const uint8_t bytes[16]) {
    if (!is_plain_low(bytes)) /* "::" and "::1" are not IPv4-compatible addresses */
        for (size_t i = 0; i < sizeof carriers / sizeof carriers[0]; i++) {
            if (!carrier_matches(&carriers[i], bytes))
                continue;
            enum address_class class = carried_class(&carriers[i], bytes);
            if (class != ADDRESS_PUBLIC)
                return class;
        }
    return class_in(ipv6_classes, bytes);
}

bool address_reaches(const struct address *a, const struct address *to) {
    uint8_t inner[4];
    if (address_equal(a, to))
        return true;
    if (a->family != 6 || to->family != 4)
        return false;
    if (is_mapped(a))
        return memcmp(a->bytes + 12, to->bytes, 4) == 0;
    for (size_t i = 0; i < sizeof carriers / sizeof carriers[0]; i++) {
        carried(&carriers[i], a->bytes, inner);
        if (carrier_matches(&carriers[i], a->bytes) && memcmp(inner, to->bytes, 4) == 0)
            return true;
    }
    return false;
}

enum address_class address_classify(const struct address *a) {
    if (a->family == 4)
        return class_in(ipv4_classes, a->bytes);
    if (is_mapped(a))
        return class_in(ipv4_classes, a->bytes + 12);
    return classify_ipv6(a->bytes);
}

const char *address_class_name(enum address_class c) {
    static const char *const names[] = {
        [ADDRESS_PUBLIC] = "public",         [ADDRESS_UNSPECIFIED] = "unspecified",
        [ADDRESS_LOOPBACK] = "loopback",     [ADDRESS_PRIVATE] = "private",
        [ADDRESS_LINK_LOCAL] = "link-local", [ADDRESS_METADATA] = "metadata",
        [ADDRESS_SHARED] = "shared",         [ADDRESS_MULTICAST] = "multicast",
        [ADDRESS_BROADCAST] = "broadcast",   [ADDRESS_DOCUMENTATION] = "documentation",
        [ADDRESS_BENCHMARK] = "benchmark",   [ADDRESS_RESERVED] = "reserved",
        [ADDRESS_TRANSLATED] = "translated",
    };
    return names[c];
}

bool address_is_one(const struct address *a) {
    enum address_class c = address_classify(a);
    return c != ADDRESS_UNSPECIFIED && c != ADDRESS_MULTICAST && c != ADDRESS_BROADCAST;
}

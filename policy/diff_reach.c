#include "policy/diff_reach.h"

#include <string.h>

/* ---- ranges ---- */

static uint8_t bits_of(const struct address *a) {
    return a->family == 4 ? 32 : 128;
}

static bool holds_range(const struct range *outer, const struct range *inner) {
    return outer->bits <= inner->bits && range_holds(outer, &inner->base);
}

static struct range half_of(const struct range *r, bool upper) {
    struct range half = {r->base, (uint8_t)(r->bits + 1)};
    if (upper)
        half.base.bytes[r->bits / 8] |= (uint8_t)(0x80 >> r->bits % 8);
    return half;
}

/*
 * The first part of r that none of the ranges holds. Parts are halved only where a range begins inside them. A
 * metadata address is opened by a range of itself alone, so a wider one does not hold it.
 */
static bool find_outside(const struct range_rule *ranges, const struct range *r,
                         struct range *outside) {
    bool inside = false,
         alone = r->bits == bits_of(&r->base) && address_classify(&r->base) == ADDRESS_METADATA;
    for (const struct range_rule *q = ranges; q; q = q->next) {
        if (holds_range(&q->range, r) && (!alone || q->range.bits == r->bits))
            return false;
        inside = inside || (q->range.base.family == r->base.family && holds_range(r, &q->range));
    }
    if (!inside || r->bits == bits_of(&r->base)) {
        *outside = *r;
        return true;
    }
    struct range lower = half_of(r, false), upper = half_of(r, true);
    return find_outside(ranges, &lower, outside) || find_outside(ranges, &upper, outside);
}

static bool wider_ranges(const struct service *before, const struct service *after,
                         struct buf *example) {
    char text[2][ADDRESS_TEXT_SIZE];
    for (const struct range_rule *r = after->ranges; r; r = r->next) {
        struct range outside;
        if (!find_outside(before->ranges, &r->range, &outside))
            continue;
        address_format(&outside.base, text[0]);
        address_format(&r->range.base, text[1]);
        buf_printf(example, "address %s of the range %s/%u", text[0], text[1], r->range.bits);
        return true;
    }
    return false;
}

/* ---- countries and networks ---- */

static bool names_country(const struct location_rule *l, struct view country) {
    for (size_t i = 0; i < l->n; i++)
        if (view_equal(l->countries[i], country))
            return true;
    return false;
}

static bool names_system(const struct location_rule *l, uint64_t system) {
    for (size_t i = 0; i < l->n; i++)
        if (l->systems[i] == system)
            return true;
    return false;
}

static struct view other_country(const struct service *const s[2], uint8_t memory[2]) {
    for (unsigned i = 0; i < 26 * 26; i++) {
        memory[0] = (uint8_t)('A' + i / 26);
        memory[1] = (uint8_t)('A' + i % 26);
        if (!names_country(&s[0]->country, view_of(memory, 2)) &&
            !names_country(&s[1]->country, view_of(memory, 2)))
            break;
    }
    return view_of(memory, 2);
}

static uint32_t other_system(const struct service *const s[2]) {
    uint32_t n = 64496; /* RFC 5398: for documentation */
    while (names_system(&s[0]->asn, n) || names_system(&s[1]->asn, n))
        n++;
    return n;
}

static bool opens(const struct service *const s[2], struct view country, uint32_t system,
                  struct buf *example) {
    if (service_permits_location(s[0], country, system) ||
        !service_permits_location(s[1], country, system))
        return false;
    if (country.n > 0)
        buf_printf(example, "an address in the country %.*s", VIEW_ARG(country));
    else
        buf_put_str(example, "an address in an unknown country");
    if (system != 0)
        buf_printf(example, " and the network %u", system);
    else
        buf_put_str(example, " and an unknown network");
    return true;
}

static bool opens_in(const struct service *const s[2], struct view country, struct buf *example) {
    if (opens(s, country, 0, example) || opens(s, country, other_system(s), example))
        return true;
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < s[i]->asn.n; k++)
            if (opens(s, country, (uint32_t)s[i]->asn.systems[k], example))
                return true;
    return false;
}

/* Every country and network that one of them names, one that none does, and what is not known. */
static bool wider_location(const struct service *before, const struct service *after,
                           struct buf *example) {
    const struct service *const s[2] = {before, after};
    uint8_t memory[2];
    if (opens_in(s, (struct view){NULL, 0}, example) ||
        opens_in(s, other_country(s, memory), example))
        return true;
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < s[i]->country.n; k++)
            if (opens_in(s, s[i]->country.countries[k], example))
                return true;
    return false;
}

/* ---- upstreams ---- */

/* Other roots vouch for other upstreams, even if fewer; a further pin only narrows; another certificate is another right there. */
static bool wider_upstream(const struct upstream_terms *before, const struct upstream_terms *after,
                           struct buf *example) {
    bool same_pin = before->pin && after->pin && memcmp(before->pin, after->pin, 32) == 0;
    if (!view_equal(before->ca, after->ca))
        buf_printf(example,
                   after->ca.n > 0 ? "an upstream with a certificate of %.*s"
                                   : "an upstream with a certificate of any trusted CA%.*s",
                   VIEW_ARG(after->ca));
    else if (before->pin && !same_pin)
        buf_put_str(example, "an upstream with another key than the one that was pinned");
    else if (after->client_certificate.n > 0 &&
             !view_equal(before->client_certificate, after->client_certificate))
        buf_printf(example, "an upstream that is shown the client certificate %.*s",
                   VIEW_ARG(after->client_certificate));
    else
        return false;
    return true;
}

/* ---- addresses that are closed everywhere ---- */

static bool opens_address(const struct host_rule *h, const struct reach *after,
                          struct buf *example) {
    const struct authority *base = &h->pattern.base;
    if (h->pattern.reach != REACH_EXACT || base->kind != HOST_ADDRESS ||
        !service_permits_address(after->service, &base->address) ||
        policy_never_address(after->policy, &base->address, after->port))
        return false;
    buf_printf(example, "address %s, which 'never all' closed", base->host);
    return true;
}

static bool fewer_closed(const struct reach *before, const struct reach *after,
                         struct buf *example) {
    for (const struct service *s = before->policy->services; s; s = s->next)
        for (const struct host_rule *h = s->hosts; h; h = h->next)
            if (s->never_all.line != 0 && service_covers_port(s, before->port) &&
                opens_address(h, after, example))
                return true;
    return false;
}

bool reach_is_wider(const struct reach *before, const struct reach *after, struct buf *example) {
    const struct service *a = before->service, *b = after->service;
    return wider_ranges(a, b, example) || fewer_closed(before, after, example) ||
           wider_location(a, b, example) || wider_upstream(&a->upstream, &b->upstream, example);
}

#include "egress/own_addresses.h"

#include "policy/authority.h"

#include <string.h>

/* The IPv4 address behind a prefix of 96 bits; others as they are. */
static struct address unpack(const struct address *a, const uint8_t prefix[12]) {
    struct address inner = {.family = 4};
    if (a->family != 6 || memcmp(a->bytes, prefix, 12) != 0)
        return *a;
    memcpy(inner.bytes, a->bytes + 12, 4);
    return inner;
}

struct address address_unmap(const struct address *a) {
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return unpack(a, mapped);
}

/* A translator (RFC 6052) would bring what is sent to our own IPv4 address back to us. */
static struct address untranslate(const struct address *a) {
    static const uint8_t nat64[12] = {0, 0x64, 0xff, 0x9b};
    struct address unmapped = address_unmap(a);
    return unpack(&unmapped, nat64);
}

int own_addresses_add(struct own_addresses *own, const struct address *a, uint16_t port) {
    if (own->n == OWN_ADDRESSES_MAX)
        return ERR_LIMIT;
    own->at[own->n].address = address_unmap(a);
    own->at[own->n++].port = port;
    return 0;
}

int own_addresses_read(struct own_addresses *own, struct view blocks) {
    struct reader r = reader_of(blocks);
    while (!r.bad && !view_is_empty(r.rest)) {
        struct authority a;
        if (authority_parse(read_block(&r, HOST_SIZE), 0, &a, NULL) != 0 || a.kind != HOST_ADDRESS)
            return ERR_BAD;
        if (own_addresses_add(own, &a.address, a.port) != 0)
            return ERR_LIMIT;
    }
    return r.bad ? ERR_BAD : 0;
}

const char *own_addresses_refuse(const struct own_addresses *own, struct interfaces *here,
                                 const struct address *a, uint16_t port) {
    struct address inner = untranslate(a);
    enum address_class class = address_classify(&inner);
    bool is_here = class == ADDRESS_LOOPBACK || interfaces_hold(here, &inner);
    if (class == ADDRESS_UNSPECIFIED || class == ADDRESS_MULTICAST || class == ADDRESS_BROADCAST)
        return "is no address of one machine";
    if (is_here && class == ADDRESS_PUBLIC)
        return "is an address of this machine";
    for (size_t i = 0; i < own->n; i++) {
        const struct address *at = &own->at[i].address;
        bool every = address_classify(at) == ADDRESS_UNSPECIFIED;
        if (own->at[i].port == port && (every ? is_here : address_equal(at, &inner)))
            return "is exeat's own";
    }
    return NULL;
}

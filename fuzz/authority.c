/* What is taken is in canonical form, and reads back as itself. */
#include "policy/authority.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_form(const struct authority *a) {
    struct view host = view_str(a->host);
    assert(host.n > 0 && host.n <= 253 && a->port > 0);
    for (size_t i = 0; i < host.n; i++) {
        uint8_t c = host.p[i];
        assert(c == to_lower(c));
        assert(is_alnum(c) || strchr(a->kind == HOST_NAME ? "-_." : ".:", c));
    }
    if (a->kind == HOST_NAME) {
        struct address none;
        assert(host.p[0] != '.' && host.p[host.n - 1] != '.');
        assert(address_parse(host, &none) != 0);
    }
}

/* Written and read again it is the same address, of the same class; it reaches itself, and is in the range that is it alone. */
static void check_address(struct view text) {
    struct address a, again;
    struct range alone;
    char out[ADDRESS_TEXT_SIZE];
    if (address_parse(text, &a) != 0)
        return;
    address_format(&a, out);
    assert(address_parse(view_str(out), &again) == 0 && address_equal(&a, &again));
    assert(address_classify(&a) == address_classify(&again));
    assert(address_class_name(address_classify(&a)) && address_reaches(&a, &a));
    assert(range_parse(view_str(out), &alone) == 0 && range_holds(&alone, &a));
}

static void check_range(struct view text) {
    struct range r;
    if (range_parse(text, &r) != 0)
        return;
    assert(r.bits <= (r.base.family == 4 ? 32 : 128) && range_holds(&r, &r.base));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct authority a, again;
    struct buf out;
    check_address(view_of(data, size));
    check_range(view_of(data, size));
    if (authority_parse(view_of(data, size), 443, &a, NULL) != 0)
        return 0;
    check_form(&a);
    buf_init(&out, 512);
    authority_write(&a, 443, &out);
    assert(authority_parse(buf_view(&out), 443, &again, NULL) == 0);
    assert(authority_equal(&a, &again));
    buf_free(&out);
    return 0;
}

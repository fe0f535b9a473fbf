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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct authority a, again;
    struct range r;
    struct buf out;
    (void)!range_parse(view_of(data, size), &r);
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

#include "policy/bundle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool x) {
    if (!x)
        abort();
}

/* What the sections hold that roles walk through, and what that says of itself. */
static void walk(const struct bundle *b) {
    struct static_host host;
    struct attach_right right;
    struct registry_entry entry;
    struct view rest = b->static_hosts, service, pem, name, names;
    while (bundle_host(&rest, &host))
        must(host.address.family == 4 || host.address.family == 6);
    for (rest = b->attach_rights; bundle_right(&rest, &right);)
        for (names = right.names; lane_sandbox(&names, &name);)
            must(name.n > 0);
    for (rest = b->own_anchors; bundle_anchors(&rest, &service, &pem);)
        must(service.n + pem.n <= b->own_anchors.n);
    for (rest = b->registry; registry_next(&rest, &entry);) {
        must(entry.kind == REGISTRY_LOCKED || entry.sandbox.n > 0);
        must((entry.kind == REGISTRY_PLACEHOLDER) == (entry.credential.n > 0));
    }
    for (size_t i = 0; i < GENERATED_RANGES; i++)
        must(b->synthetic[i].bits <= 128);
    must(b->n_resolvers <= RESOLVERS_MAX);
}

/* What is read is written back as the same bytes, so that no two texts mean one bundle. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bundle b;
    struct buf again;
    if (bundle_read(view_of(data, size), &b) != 0)
        return 0;
    struct lane_info lane;
    struct view lanes = b.lanes, name;
    while (bundle_lane(&lanes, &lane)) {
        struct lane_info found;
        struct view names = lane.names;
        while (lane_sandbox(&names, &name))
            if (name.n == 0)
                abort();
        if (bundle_find_lane(&b, lane.id, &found) != 0)
            abort();
    }
    walk(&b);
    buf_init(&again, size);
    bundle_write(&b, &again);
    if (!buf_ok(&again) || !view_equal(buf_view(&again), view_of(data, size)))
        abort();
    buf_free(&again);
    return 0;
}

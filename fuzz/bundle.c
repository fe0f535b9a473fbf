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

/* What stands before the sections: another limit makes another beginning, by which seeds would be nothing. */
static void put_beginning(struct buf *out) {
    struct bundle nothing = {.policy_file = VIEW("")};
    struct buf limits, text;
    buf_init(&limits, 4096);
    buf_init(&text, 65536);
    limits_default(&nothing.limits);
    limits_write(&nothing.limits, &limits);
    bundle_write(&nothing, &text);
    size_t before = view_search(buf_view(&text), buf_view(&limits));
    buf_put(out, view_head(buf_view(&text), before + buf_len(&limits)));
    buf_free(&limits);
    buf_free(&text);
}

/* What is read is written back as the same bytes, so that no two texts mean one bundle. */
static void check(struct view text) {
    struct bundle b;
    struct buf again;
    struct lane_info lane;
    if (bundle_read(text, &b) != 0)
        return;
    struct view lanes = b.lanes, name;
    while (bundle_lane(&lanes, &lane)) {
        struct lane_info found;
        struct view names = lane.names;
        while (lane_sandbox(&names, &name))
            must(name.n > 0);
        must(bundle_find_lane(&b, lane.id, &found) == 0);
    }
    walk(&b);
    buf_init(&again, text.n);
    bundle_write(&b, &again);
    must(buf_ok(&again) && view_equal(buf_view(&again), text));
    buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf text;
    check(view_of(data, size));
    buf_init(&text, size + 65536);
    put_beginning(&text);
    buf_put(&text, view_of(data, size));
    check(buf_view(&text));
    buf_free(&text);
    return 0;
}

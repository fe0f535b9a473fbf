#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/bundle.h"

#include <string.h>

static struct buf text, lanes, hosts, registry, own, anchors;

static struct registry_entry entry(enum registry_kind kind, const char *sandbox,
                                   const char *credential) {
    struct registry_entry e = {
        .kind = kind, .sandbox = view_str(sandbox), .credential = view_str(credential)};
    memset(e.fingerprint, kind, sizeof e.fingerprint);
    return e;
}

static struct static_host host(const char *name, const char *address) {
    struct static_host h = {.name = view_str(name)};
    assert_int_equal(address_parse(view_str(address), &h.address), 0);
    return h;
}

/* A bundle with something in every section. */
static struct bundle sample(void) {
    struct bundle b = {.policy_file = VIEW("/etc/exeat/policy"),
                       .policy_text = VIEW("sandbox a { }"),
                       .n_resolvers = 2,
                       .resolver_ports = {53, 5353},
                       .upstream_proxy = VIEW("proxy.test:3128"),
                       .anchors = VIEW("-----BEGIN"),
                       .audit_durable = true};
    limits_default(&b.limits);
    b.limits.v[LIMIT_CONNECTIONS] = 7;
    assert_int_equal(address_parse(VIEW("192.0.2.53"), &b.resolvers[0]), 0);
    assert_int_equal(address_parse(VIEW("2001:db8::53"), &b.resolvers[1]), 0);
    bundle_put_lane(&lanes, &(struct lane_info){1, false, VIEW("worker-1"), true, false});
    bundle_put_lane(&lanes, &(struct lane_info){3, true, VIEW("a b c"), false, false});
    bundle_put_lane(&lanes, &(struct lane_info){4, true, VIEW(""), false, false});
    bundle_put_lane(&lanes, &(struct lane_info){5, false, VIEW("d"), false, true});
    struct static_host h4 = host("a.test", "10.0.0.1"), h6 = host("a.test", "::1");
    bundle_put_host(&hosts, &h4);
    bundle_put_host(&hosts, &h6);
    struct registry_entry token = entry(REGISTRY_TOKEN, "a", ""),
                          placeholder = entry(REGISTRY_PLACEHOLDER, "a", "key");
    registry_put(&registry, &token);
    registry_put(&registry, &placeholder);
    buf_put_block(&own, VIEW("127.0.0.1:3128"));
    bundle_put_anchors(&anchors, VIEW("api"), VIEW("-----BEGIN own"));
    b.lanes = buf_view(&lanes);
    b.static_hosts = buf_view(&hosts);
    b.registry = buf_view(&registry);
    b.own_addresses = buf_view(&own);
    b.own_anchors = buf_view(&anchors);
    return b;
}

static int setup(void **state) {
    (void)state;
    buf_init(&text, 1 << 20);
    buf_init(&lanes, 1 << 16);
    buf_init(&hosts, 1 << 16);
    buf_init(&registry, 1 << 16);
    buf_init(&own, 1 << 16);
    buf_init(&anchors, 1 << 16);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    buf_free(&text);
    buf_free(&lanes);
    buf_free(&hosts);
    buf_free(&registry);
    buf_free(&own);
    buf_free(&anchors);
    return 0;
}

static void what_was_written_is_read(void **state) {
    (void)state;
    struct bundle b = sample(), r;
    bundle_write(&b, &text);
    assert_true(buf_ok(&text));
    assert_int_equal(bundle_read(buf_view(&text), &r), 0);
    assert_memory_equal(&r.limits, &b.limits, sizeof b.limits);
    assert_true(view_equal(r.policy_file, b.policy_file));
    assert_true(view_equal(r.policy_text, b.policy_text));
    assert_true(view_equal(r.upstream_proxy, b.upstream_proxy));
    assert_true(view_equal(r.own_addresses, b.own_addresses));
    assert_true(view_equal(r.anchors, b.anchors));
    struct view rest = r.own_anchors, service, pem;
    assert_true(bundle_anchors(&rest, &service, &pem));
    assert_true(view_equal(service, VIEW("api")) && view_equal(pem, VIEW("-----BEGIN own")));
    assert_false(bundle_anchors(&rest, &service, &pem));
    assert_int_equal(r.n_resolvers, 2);
    assert_true(address_equal(&r.resolvers[0], &b.resolvers[0]));
    assert_true(address_equal(&r.resolvers[1], &b.resolvers[1]));
    assert_int_equal(r.resolver_ports[1], 5353);
    assert_true(r.audit_durable);
}

static void lanes_are_walked_and_found(void **state) {
    (void)state;
    struct bundle b = sample();
    struct lane_info lane;
    struct view rest = b.lanes, name, names;
    assert_true(bundle_lane(&rest, &lane));
    assert_int_equal(lane.id, 1);
    assert_true(!lane.shared && lane.unenforced);
    assert_true(view_equal(lane.names, VIEW("worker-1")));
    assert_true(bundle_lane(&rest, &lane));
    assert_true(lane.shared && !lane.unenforced && !lane.closed);
    assert_true(bundle_lane_unenforced(b.lanes, 1));
    assert_false(bundle_lane_unenforced(b.lanes, 3) || bundle_lane_unenforced(b.lanes, 2));
    names = lane.names;
    static const char *const expected[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(lane_sandbox(&names, &name));
        assert_true(view_equal(name, view_str(expected[i])));
    }
    assert_false(lane_sandbox(&names, &name));
    assert_true(bundle_lane(&rest, &lane));
    assert_true(bundle_lane(&rest, &lane));
    assert_true(lane.id == 5 && lane.closed && !lane.shared && !lane.unenforced);
    assert_false(bundle_lane(&rest, &lane));
    assert_int_equal(rest.n, 0);
    assert_int_equal(bundle_find_lane(&b, 3, &lane), 0);
    assert_int_equal(lane.id, 3);
    assert_int_equal(bundle_find_lane(&b, 2, &lane), ERR_MISSING);
}

static void hosts_and_the_registry_are_walked(void **state) {
    (void)state;
    struct bundle b = sample();
    struct static_host h;
    struct registry_entry e;
    struct view rest = b.static_hosts;
    assert_true(bundle_host(&rest, &h));
    assert_true(view_equal(h.name, VIEW("a.test")));
    assert_int_equal(h.address.family, 4);
    assert_true(bundle_host(&rest, &h));
    assert_int_equal(h.address.family, 6);
    assert_false(bundle_host(&rest, &h));
    rest = b.registry;
    assert_true(registry_next(&rest, &e));
    assert_int_equal(e.kind, REGISTRY_TOKEN);
    assert_int_equal(e.fingerprint[FINGERPRINT_SIZE - 1], REGISTRY_TOKEN);
    assert_true(registry_next(&rest, &e));
    assert_true(view_equal(e.credential, VIEW("key")));
    assert_false(registry_next(&rest, &e));
    assert_int_equal(rest.n, 0);
}

static void a_bundle_that_was_cut_or_has_more_is_bad(void **state) {
    (void)state;
    struct bundle b = sample(), r;
    bundle_write(&b, &text);
    for (size_t n = 0; n < buf_len(&text); n++)
        assert_int_equal(bundle_read(view_head(buf_view(&text), n), &r), ERR_BAD);
    buf_put_u8(&text, 0);
    assert_int_equal(bundle_read(buf_view(&text), &r), ERR_BAD);
}

/* Writes a sample with one thing spoiled. */
static int read_spoiled(void (*spoil)(struct bundle *b)) {
    struct bundle b = sample(), r;
    spoil(&b);
    bundle_write(&b, &text);
    return bundle_read(buf_view(&text), &r);
}

static void nothing(struct bundle *b) {
    (void)b;
}

static void limit_out_of_range(struct bundle *b) {
    b->limits.v[LIMIT_CONNECTIONS] = 0;
}

static void lane_twice(struct bundle *b) {
    bundle_put_lane(&lanes, &(struct lane_info){5, false, VIEW("x"), false, false});
    b->lanes = buf_view(&lanes);
}

static void lane_zero(struct bundle *b) {
    buf_reset(&lanes);
    bundle_put_lane(&lanes, &(struct lane_info){0, false, VIEW("x"), false, false});
    b->lanes = buf_view(&lanes);
}

static void lane_of_two(struct bundle *b) {
    bundle_put_lane(&lanes, &(struct lane_info){6, false, VIEW("x y"), false, false});
    b->lanes = buf_view(&lanes);
}

static void lane_of_nobody(struct bundle *b) {
    bundle_put_lane(&lanes, &(struct lane_info){6, false, VIEW(""), false, false});
    b->lanes = buf_view(&lanes);
}

static void lane_with_a_gap(struct bundle *b) {
    bundle_put_lane(&lanes, &(struct lane_info){6, true, VIEW("x  y"), false, false});
    b->lanes = buf_view(&lanes);
}

static void half_a_lane(struct bundle *b) {
    b->lanes.n--;
}

static void half_a_host(struct bundle *b) {
    b->static_hosts.n--;
}

static void half_an_entry(struct bundle *b) {
    b->registry.n--;
}

static void half_an_own_address(struct bundle *b) {
    b->own_addresses.n--;
}

static void half_an_anchor(struct bundle *b) {
    b->own_anchors.n--;
}

static void anchors_of_nobody(struct bundle *b) {
    bundle_put_anchors(&anchors, VIEW(""), VIEW("x"));
    b->own_anchors = buf_view(&anchors);
}

static void placeholder_for_nothing(struct bundle *b) {
    struct registry_entry e = entry(REGISTRY_PLACEHOLDER, "a", "");
    registry_put(&registry, &e);
    b->registry = buf_view(&registry);
}

static void token_of_nobody(struct bundle *b) {
    struct registry_entry e = entry(REGISTRY_TOKEN, "", "");
    registry_put(&registry, &e);
    b->registry = buf_view(&registry);
}

static void entry_of_no_kind(struct bundle *b) {
    struct registry_entry e = entry((enum registry_kind)3, "a", "k");
    registry_put(&registry, &e);
    b->registry = buf_view(&registry);
}

static void resolver_port_zero(struct bundle *b) {
    b->resolver_ports[1] = 0;
}

static void host_of_no_family(struct bundle *b) {
    bundle_put_host(&hosts, &(struct static_host){VIEW("x"), {.family = 5}});
    b->static_hosts = buf_view(&hosts);
}

static void a_bundle_with_a_bad_section_is_bad(void **state) {
    static void (*const spoilers[])(struct bundle *) = {
        limit_out_of_range,      lane_twice,          lane_zero,        lane_of_two,
        lane_of_nobody,          lane_with_a_gap,     half_a_lane,      half_a_host,
        half_an_entry,           half_an_own_address, half_an_anchor,   anchors_of_nobody,
        placeholder_for_nothing, token_of_nobody,     entry_of_no_kind, resolver_port_zero,
        host_of_no_family,
    };
    assert_int_equal(read_spoiled(nothing), 0);
    for (size_t i = 0; i < sizeof spoilers / sizeof spoilers[0]; i++) {
        teardown(state);
        setup(state);
        if (read_spoiled(spoilers[i]) != ERR_BAD)
            fail_msg("case %zu must be bad", i);
    }
}

static void a_malformed_registry_is_told_from_its_end(void **state) {
    (void)state;
    struct bundle b = sample();
    struct registry_entry e;
    struct view rest = view_head(b.registry, b.registry.n - 1);
    assert_true(registry_next(&rest, &e));
    assert_false(registry_next(&rest, &e));
    assert_int_not_equal(rest.n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(lanes_are_walked_and_found, setup, teardown),
        cmocka_unit_test_setup_teardown(hosts_and_the_registry_are_walked, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bundle_that_was_cut_or_has_more_is_bad, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bundle_with_a_bad_section_is_bad, setup, teardown),
        cmocka_unit_test_setup_teardown(a_malformed_registry_is_told_from_its_end, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

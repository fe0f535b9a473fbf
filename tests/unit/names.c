/* Questions over UDP, as a courier hands them over: who is let in, and what becomes of who is not. */
#include "tests/unit/proxy_world.h"

#include "http/dns_query.h"
#include "policy/admission.h"
#include "policy/reason.h"

struct udp {
    struct world *world;
    struct admission admission;
    int proxy, courier;
};

static void udp_begin(struct udp *u, const char *admission) {
    int fds[2];
    assert_int_equal(admission_read(view_str(admission), &u->admission), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    u->proxy = fds[0];
    u->courier = fds[1];
    u->world = world_new();
    struct proxy_listener listener = {
        .fd = u->proxy, .way = WAY_DNS_UDP, .admission = &u->admission};
    world_start(u->world, &listener, 1);
}

/* Each was told once. */
static void udp_end(struct udp *u) {
    egress_hears_nothing(u->world);
    world_free(u->world);
    close(u->proxy);
    close(u->courier);
}

/* The question for a.test, asked by peer. */
static void courier_hands_over(struct udp *u, const char *peer) {
    static const char question[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\1";
    struct buf b;
    buf_init(&b, 512);
    buf_put_u32(&b, 7);
    buf_put_block(&b, view_str(peer));
    buf_put_block(&b, VIEW("10.0.0.1:53"));
    buf_put(&b, view_of(question, sizeof question - 1));
    struct view v = buf_view(&b);
    assert_int_equal(write(u->courier, v.p, v.n), v.n);
    buf_free(&b);
}

static enum reason egress_hears_question(struct udp *u, const char *peer, const char *detail) {
    struct reader r = reader_of(heard_view(egress_hears(u->world, LANE_LOOKUP)));
    assert_true(view_equal(read_block(&r, 64), VIEW("a.test")));
    assert_int_equal(read_u16(&r), QUERY_A);
    assert_true(view_equal(read_block(&r, 64), view_str(peer)));
    assert_true(view_equal(read_block(&r, 64), VIEW("10.0.0.1:53")));
    enum reason why = (enum reason)read_u16(&r);
    assert_true(view_equal(read_block(&r, 512), view_str(detail)));
    assert_true(read_done(&r));
    return why;
}

static void whoever_has_a_source_of_the_listener_may_ask(void **state) {
    static const char *const peers[] = {"10.0.0.2:5353", "[fd00::7]:1"};
    struct udp u;
    (void)state;
    udp_begin(&u, "source=10.0.0.2,fd00::/64");
    for (size_t i = 0; i < 2; i++) {
        courier_hands_over(&u, peers[i]);
        assert_int_equal(egress_hears_question(&u, peers[i], ""), REASON_ALLOWED);
    }
    udp_end(&u);
}

static void whoever_has_another_source_is_told_of_as_such_xs_02(void **state) {
    static const char *const peers[] = {"10.0.0.3:5353", "[fe80::7]:1", "", "unknown"};
    struct udp u;
    (void)state;
    udp_begin(&u, "source=10.0.0.2,fd00::/64");
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        courier_hands_over(&u, peers[i]);
        assert_int_equal(egress_hears_question(&u, peers[i], ADMISSION_REFUSED),
                         REASON_PEER_NOT_ALLOWED);
    }
    udp_end(&u);
}

static void a_listener_without_sources_hears_everybody(void **state) {
    struct udp u;
    (void)state;
    udp_begin(&u, "");
    courier_hands_over(&u, "192.0.2.1:9");
    assert_int_equal(egress_hears_question(&u, "192.0.2.1:9", ""), REASON_ALLOWED);
    udp_end(&u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_has_a_source_of_the_listener_may_ask),
        cmocka_unit_test(whoever_has_another_source_is_told_of_as_such_xs_02),
        cmocka_unit_test(a_listener_without_sources_hears_everybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

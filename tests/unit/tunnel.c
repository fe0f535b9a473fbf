/* What egress hears of tunnels from a proxy that keeps the contract, and from one that does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/tunnel.h"

static int hear_failed(uint32_t id, uint16_t why, struct view detail) {
    static struct lane lane = {.last_tunnel = 1};
    struct buf b;
    buf_init(&b, LANE_TEXT_MAX + 16);
    buf_put_u16(&b, why);
    buf_put_block(&b, detail);
    struct message m = {.type = LANE_FAILED, .id = id, .body = buf_view(&b), .fd = -1};
    int result = tunnel_take_failed(&lane, &m);
    buf_free(&b);
    return result;
}

/* Those of proxy/gate.c; the tunnel has ended meanwhile. Another would end the lane, for all its sandboxes. */
static void whatever_proxy_says_of_a_tunnel_that_failed_is_heard(void **state) {
    static const enum reason said[] = {REASON_PROTOCOL_NOT_ALLOWED, REASON_MALFORMED_HELLO,
                                       REASON_CLIENT_TLS, REASON_REQUEST_TIMEOUT, REASON_TOO_MANY};
    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        assert_int_equal(hear_failed(1, (uint16_t)said[i], VIEW("out of memory")), 0);
}

static void a_reason_that_proxy_cannot_know_is_refused(void **state) {
    (void)state;
    assert_int_equal(hear_failed(1, REASON_ALLOWED, VIEW("")), ERR_BAD);
    assert_int_equal(hear_failed(1, REASON_HOST_NOT_ALLOWED, VIEW("")), ERR_BAD);
    assert_int_equal(hear_failed(1, REASON_COUNT, VIEW("")), ERR_BAD);
    assert_int_equal(hear_failed(1, UINT16_MAX, VIEW("")), ERR_BAD);
    assert_int_equal(hear_failed(2, REASON_CLIENT_TLS, VIEW("no such tunnel yet")), ERR_BAD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_proxy_says_of_a_tunnel_that_failed_is_heard),
        cmocka_unit_test(a_reason_that_proxy_cannot_know_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Dials side by side: cancelled, bounded, in turn, and a lane that dies over them. */
#include "tests/unit/dialer_world.h"

static void a_cancelled_ask_is_not_answered_and_leaves_no_connection(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_loopback);
    send_ask(&w, 1, 7, 1, "a", true, "api.allowed.test", w.port);
    channel_send(w.lanes[0].channel, DIAL_CANCEL, 7, 1, (struct view){NULL, 0});
    channel_send(w.lanes[0].channel, DIAL_CANCEL, 99, 1, (struct view){NULL, 0});
    turn_for(w.loop, 400);
    assert_int_equal(w.lanes[0].n, 0);
    assert_false(w.lanes[0].closed);
    assert_false(upstream_was_reached(&w));
    assert_null(next_record(&w));
    world_close(&w);
}

static void a_cancelled_ask_keeps_its_place_while_dns_works(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_silence, 4, 8);
    use_generation(&w, 1);
    for (uint32_t id = 1; id <= 2; id++) {
        send_ask(&w, 1, id, 1, "a", true, "api.allowed.test", w.port);
        turn_for(w.loop, 30);
        channel_send(w.lanes[0].channel, DIAL_CANCEL, id, 1, (struct view){NULL, 0});
    }
    turn_for(w.loop, 30);
    assert_refused(ask(&w, "api.allowed.test"), REASON_TOO_MANY);
    turn_for(w.loop, 1200);
    send_ask(&w, 1, 50, 1, "a", true, "127.0.0.1", w.port);
    assert_false(answer(&w, 1, 1000)->refused);
    world_close(&w);
}

static void dials_of_a_lane_are_bounded_and_the_other_lane_goes_on(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_silence, 8, 8);
    use_generation(&w, 1);
    for (uint32_t id = 1; id <= 5; id++)
        send_ask(&w, 1, id, 1, "a", true, "api.allowed.test", w.port);
    struct answer *a = answer(&w, 1, 500);
    assert_refused(a, REASON_TOO_MANY);
    assert_int_equal(a->id, 5);
    send_ask(&w, 2, 1, 1, "b", true, "api.allowed.test", w.port);
    turn_for(w.loop, 50);
    assert_int_equal(w.lanes[1].n, 0);
    world_close(&w);
}

static void dials_of_a_sandbox_are_bounded_and_its_neighbour_goes_on(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_silence, 8, 16);
    use_generation(&w, 1);
    for (uint32_t id = 1; id <= 5; id++)
        send_ask(&w, 2, id, 1, "b", true, "api.allowed.test", w.port);
    struct answer *a = answer(&w, 2, 500);
    assert_refused(a, REASON_TOO_MANY);
    assert_int_equal(a->id, 5);
    send_ask(&w, 2, 6, 1, "d", true, "127.0.0.1", w.port);
    assert_false(answer(&w, 2, 500)->refused);
    world_close(&w);
}

static void sandboxes_of_a_lane_take_turns(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_loopback, 16, 1);
    use_generation(&w, 1);
    send_ask(&w, 2, 1, 1, "b", true, "b1.allowed.test", w.port);
    send_ask(&w, 2, 2, 1, "b", true, "b2.allowed.test", w.port);
    send_ask(&w, 2, 3, 1, "d", true, "d1.allowed.test", w.port);
    turn_for(w.loop, 300);
    assert_int_equal(w.lanes[1].n, 3);
    assert_string_equal(w.asked, "b1.allowed.test d1.allowed.test b2.allowed.test ");
    world_close(&w);
}

static void hanging_dials_of_a_sandbox_do_not_delay_its_neighbour(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_silence, 16, 8);
    use_generation(&w, 1);
    for (uint32_t id = 1; id <= 8; id++)
        send_ask(&w, 2, id, 1, "b", true, "api.allowed.test", w.port);
    turn_for(w.loop, 50);
    send_ask(&w, 2, 9, 1, "d", true, "127.0.0.1", w.port);
    turn_for(w.loop, 200);
    assert_int_equal(w.lanes[1].n, 1);
    assert_false(w.lanes[1].answers[0].refused);
    world_close(&w);
}

static void lanes_take_turns(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_loopback, 8, 1);
    use_generation(&w, 1);
    send_ask(&w, 1, 1, 1, "a", true, "a1.allowed.test", w.port);
    send_ask(&w, 1, 2, 1, "a", true, "a2.allowed.test", w.port);
    send_ask(&w, 1, 3, 1, "a", true, "a3.allowed.test", w.port);
    send_ask(&w, 2, 1, 1, "b", true, "b1.allowed.test", w.port);
    send_ask(&w, 2, 2, 1, "b", true, "b2.allowed.test", w.port);
    turn_for(w.loop, 500);
    assert_int_equal(w.lanes[0].n, 3);
    assert_int_equal(w.lanes[1].n, 2);
    const char *turns[] = {
        "a1.allowed.test b1.allowed.test a2.allowed.test b2.allowed.test a3.allowed.test ",
        "b1.allowed.test a1.allowed.test b2.allowed.test a2.allowed.test a3.allowed.test "};
    if (strcmp(w.asked, turns[0]) != 0)
        assert_string_equal(w.asked, turns[1]);
    world_close(&w);
}

static void a_lane_whose_dials_hang_does_not_delay_another(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_silence, 8, 8);
    use_generation(&w, 1);
    for (uint32_t id = 1; id <= 8; id++)
        send_ask(&w, 2, id, 1, "b", true, "api.allowed.test", w.port);
    turn_for(w.loop, 50);
    send_ask(&w, 1, 1, 1, "a", true, "127.0.0.1", w.port);
    turn_for(w.loop, 200);
    assert_int_equal(w.lanes[0].n, 1);
    assert_false(w.lanes[0].answers[0].refused);
    world_close(&w);
}

static void an_ask_that_waits_is_answered_in_time_all_the_same(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_silence, 8, 1);
    use_generation(&w, 1);
    for (uint32_t id = 1; id <= 4; id++)
        send_ask(&w, 1, id, 1, "a", true, "api.allowed.test", w.port);
    uint64_t start = clock_mono();
    bool never = false;
    while (w.lanes[0].n < 4 && clock_mono() - start < 4000000000u)
        (void)turn_until(w.loop, &never, 20);
    assert_int_equal(w.lanes[0].n, 4);
    /* dns-time and connect-time are one second each. */
    assert_true(clock_mono() - start < 2600000000u);
    assert_int_equal(w.lanes[0].answers[3].reason, REASON_CONNECT_TIMEOUT);
    world_close(&w);
}

static void a_dead_lane_takes_its_dials_along(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_loopback);
    send_ask(&w, 1, 1, 1, "a", true, "api.allowed.test", w.port);
    channel_flush(w.lanes[0].channel);
    channel_free(w.lanes[0].channel);
    w.lanes[0].channel = NULL;
    turn_for(w.loop, 300);
    assert_false(upstream_was_reached(&w));
    assert_int_equal(w.bad_peers, 0);
    open_lane(&w, 1);
    assert_false(ask(&w, "api.allowed.test")->refused);
    world_close(&w);
}

static void many_connections_at_once_are_all_handed_over(void **state) {
    struct world w;
    (void)state;
    world_prepare(&w, dns_loopback, 128, 128);
    use_generation(&w, 1);
    for (uint32_t id = 1; id <= 40; id++)
        send_ask(&w, 1, id, 1, "a", true, "127.0.0.1", w.port);
    turn_for(w.loop, 500);
    assert_int_equal(w.lanes[0].n, 40);
    for (size_t i = 0; i < 40; i++)
        assert_false(w.lanes[0].answers[i].refused);
    world_close(&w);
}

static void asking_twice_with_one_id_drops_the_lane(void **state) {
    struct world w;
    (void)state;
    world_open(&w, dns_silence);
    send_ask(&w, 1, 1, 1, "a", true, "api.allowed.test", w.port);
    send_ask(&w, 1, 1, 1, "a", true, "other.allowed.test", w.port);
    assert_true(turn_until(w.loop, &w.lanes[0].closed, 1000));
    assert_int_equal(w.bad_peers, 1);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_ask_is_not_answered_and_leaves_no_connection),
        cmocka_unit_test(a_cancelled_ask_keeps_its_place_while_dns_works),
        cmocka_unit_test(dials_of_a_lane_are_bounded_and_the_other_lane_goes_on),
        cmocka_unit_test(dials_of_a_sandbox_are_bounded_and_its_neighbour_goes_on),
        cmocka_unit_test(sandboxes_of_a_lane_take_turns),
        cmocka_unit_test(hanging_dials_of_a_sandbox_do_not_delay_its_neighbour),
        cmocka_unit_test(lanes_take_turns),
        cmocka_unit_test(a_lane_whose_dials_hang_does_not_delay_another),
        cmocka_unit_test(an_ask_that_waits_is_answered_in_time_all_the_same),
        cmocka_unit_test(a_dead_lane_takes_its_dials_along),
        cmocka_unit_test(many_connections_at_once_are_all_handed_over),
        cmocka_unit_test(asking_twice_with_one_id_drops_the_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/loop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char order[64];
static struct loop *the_loop;
static struct deferred a, b, c;

static void note(void *ctx) {
    strcat(order, ctx);
}

static void note_and_defer_b(void *ctx) {
    note(ctx);
    loop_defer(the_loop, &b);
}

static void note_and_forget_b(void *ctx) {
    note(ctx);
    loop_forget(the_loop, &b);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    note(ctx);
}

static int open_loop(void **state) {
    (void)state;
    order[0] = 0;
    the_loop = loop_new();
    a = (struct deferred){.run = note, .ctx = "a"};
    b = (struct deferred){.run = note, .ctx = "b"};
    c = (struct deferred){.run = note, .ctx = "c"};
    return the_loop ? 0 : -1;
}

static int close_loop(void **state) {
    (void)state;
    loop_free(the_loop);
    return 0;
}

static struct event *timer_in(unsigned ms) {
    const struct timeval tv = {0, (long)ms * 1000};
    struct event *e = event_new(loop_base(the_loop), -1, 0, on_timer, "t");
    event_add(e, &tv);
    return e;
}

static void deferred_work_runs_once_in_order_at_the_end_of_the_turn(void **state) {
    (void)state;
    struct event *e = timer_in(1);
    loop_defer(the_loop, &b);
    loop_defer(the_loop, &a);
    loop_defer(the_loop, &b); /* stays where it is */
    assert_string_equal(order, "");
    assert_int_equal(loop_turn(the_loop), 0);
    assert_string_equal(order, "bat");
    assert_false(a.queued || b.queued);
    event_free(e);
}

static void what_is_first_runs_before_what_was_deferred_earlier(void **state) {
    (void)state;
    c.first = true;
    loop_defer(the_loop, &a);
    loop_defer(the_loop, &c);
    loop_defer(the_loop, &b);
    loop_defer(the_loop, &c);
    struct event *e = timer_in(1);
    assert_int_equal(loop_turn(the_loop), 0);
    assert_string_equal(order, "cabt");
    loop_defer(the_loop, &c); /* alone: the queue's end is right, too */
    loop_defer(the_loop, &a);
    loop_stop(the_loop);
    assert_int_equal(loop_turn(the_loop), 0);
    assert_string_equal(order, "cabtca");
    event_free(e);
}

static void work_deferred_by_work_runs_in_the_same_turn(void **state) {
    (void)state;
    struct event *e = timer_in(1000);
    a.run = note_and_defer_b;
    loop_defer(the_loop, &a);
    loop_defer(the_loop, &c);
    struct event *soon = timer_in(1);
    assert_int_equal(loop_turn(the_loop), 0);
    assert_string_equal(order, "acbt");
    event_free(e);
    event_free(soon);
}

static uint64_t seen[2];

static void on_look(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    *(uint64_t *)ctx = loop_now(the_loop);
}

/* Deadlines and rates are counted from it: one of before the wait would be late by all of that. */
static void the_time_of_a_turn_is_not_that_before_its_wait_and_does_not_change(void **state) {
    (void)state;
    const struct timeval in = {0, 20000};
    uint64_t before = clock_mono();
    assert_true(loop_now(the_loop) >= before);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            event_base_once(loop_base(the_loop), -1, EV_TIMEOUT, on_look, &seen[i], &in), 0);
    assert_int_equal(loop_turn(the_loop), 0);
    assert_true(seen[0] >= before + 20000000 && seen[0] <= clock_mono());
    if (seen[1] == 0)
        assert_int_equal(loop_turn(the_loop), 0);
    else
        assert_int_equal(seen[1], seen[0]);
    assert_true(seen[1] >= seen[0]);
}

static void forgotten_work_does_not_run(void **state) {
    (void)state;
    struct deferred *const all[] = {&a, &b, &c};
    struct event *e = timer_in(1000);
    for (size_t gone = 0; gone < 3; gone++) {
        order[0] = 0;
        for (size_t i = 0; i < 3; i++)
            loop_defer(the_loop, all[i]);
        loop_forget(the_loop, all[gone]);
        loop_forget(the_loop, all[gone]);
        /* And the queue is whole: its end takes more. */
        if (gone == 2)
            loop_defer(the_loop, &c);
        struct event *soon = timer_in(1);
        assert_int_equal(loop_turn(the_loop), 0);
        assert_string_equal(order, gone == 0 ? "bct" : gone == 1 ? "act" : "abct");
        event_free(soon);
    }
    event_free(e);
}

static void work_may_forget_other_work(void **state) {
    (void)state;
    struct event *e = timer_in(1);
    a.run = note_and_forget_b;
    loop_defer(the_loop, &a);
    loop_defer(the_loop, &b);
    loop_defer(the_loop, &c);
    assert_int_equal(loop_turn(the_loop), 0);
    assert_string_equal(order, "act");
    event_free(e);
}

static void stop_here(void *ctx) {
    note(ctx);
    loop_stop(the_loop);
}

static void a_stopped_loop_does_not_wait(void **state) {
    (void)state;
    struct event *e = timer_in(900);
    uint64_t start = clock_mono();
    a.run = stop_here;
    loop_defer(the_loop, &a);
    assert_int_equal(loop_run(the_loop), 0);
    assert_true(clock_mono() - start < 500000000u);
    assert_string_equal(order, "a");
    event_free(e);
}

static void a_loop_without_events_ends(void **state) {
    (void)state;
    struct event *e = timer_in(1);
    assert_int_equal(loop_run(the_loop), 0);
    assert_string_equal(order, "t");
    event_free(e);
}

static void a_broken_pipe_does_not_kill(void **state) {
    int fds[2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    assert_int_equal(write(fds[1], "x", 1), -1);
    close(fds[1]);
}

static void clocks_go_forward(void **state) {
    (void)state;
    uint64_t before = loop_now(the_loop);
    struct event *e = timer_in(5);
    assert_int_equal(loop_turn(the_loop), 0);
    assert_true(loop_now(the_loop) >= before + 4000000);
    assert_true(clock_mono() >= loop_now(the_loop));
    assert_true(clock_wall() > UINT64_C(1600000000) * 1000000000u);
    event_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(deferred_work_runs_once_in_order_at_the_end_of_the_turn,
                                        open_loop, close_loop),
        cmocka_unit_test_setup_teardown(what_is_first_runs_before_what_was_deferred_earlier,
                                        open_loop, close_loop),
        cmocka_unit_test_setup_teardown(work_deferred_by_work_runs_in_the_same_turn, open_loop,
                                        close_loop),
        cmocka_unit_test_setup_teardown(
            the_time_of_a_turn_is_not_that_before_its_wait_and_does_not_change, open_loop,
            close_loop),
        cmocka_unit_test_setup_teardown(forgotten_work_does_not_run, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(work_may_forget_other_work, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(a_stopped_loop_does_not_wait, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(a_loop_without_events_ends, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(a_broken_pipe_does_not_kill, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(clocks_go_forward, open_loop, close_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

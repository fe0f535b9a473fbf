/* What one sandbox may take of the limits of a lane that it shares with others. */
#include "egress/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct world {
    struct generation now;
    struct lane lane;
};

static int setup(void **state) {
    static struct world w;
    memset(&w, 0, sizeof w);
    limits_default(&w.now.limits);
    w.now.limits.v[LIMIT_CONNECTIONS] = 120;
    w.now.limits.v[LIMIT_EXCHANGES] = 12;
    w.now.shared = true;
    w.lane.now = &w.now;
    *state = &w;
    return 0;
}

/* Takes connections until there are no more for it; how many those were. */
static size_t take_all(struct lane *l, const char *sandbox, struct share **last) {
    size_t n = 0;
    for (struct share *s; (s = share_take(l, sandbox, SHARE_CONNECTIONS)); n++)
        *last = s;
    return n;
}

static void give(struct lane *l, struct share *s, size_t n) {
    while (n-- > 0)
        share_give(l, s, SHARE_CONNECTIONS);
}

static void rx_04_a_sandbox_of_its_own_lane_may_have_all(void **state) {
    struct world *w = *state;
    struct share *s = NULL;
    w->now.shared = false;
    assert_int_equal(take_all(&w->lane, "a", &s), 120);
    give(&w->lane, s, 120);
    assert_null(w->lane.shares);
}

static void rx_04_on_a_shared_lane_nobody_fills_it_for_the_others(void **state) {
    struct world *w = *state;
    struct share *a = NULL, *b = NULL, *c = NULL;
    assert_int_equal(take_all(&w->lane, "a", &a), 60);
    assert_int_equal(take_all(&w->lane, "b", &b), 30);
    assert_int_equal(take_all(&w->lane, "c", &c), 15);
    /* What the greedy one gives back is there for those who have less. */
    give(&w->lane, a, 30);
    assert_int_equal(take_all(&w->lane, "c", &c), 15);
    assert_int_equal(w->lane.taken[SHARE_CONNECTIONS], 90);
    give(&w->lane, a, 30);
    give(&w->lane, b, 30);
    give(&w->lane, c, 30);
    assert_null(w->lane.shares);
    assert_int_equal(w->lane.taken[SHARE_CONNECTIONS], 0);
}

static void rx_04_each_limit_is_shared_out_by_itself(void **state) {
    struct world *w = *state;
    struct share *s = NULL;
    assert_int_equal(take_all(&w->lane, "a", &s), 60);
    for (size_t i = 0; i < 6; i++)
        assert_ptr_equal(share_take(&w->lane, "a", SHARE_EXCHANGES), s);
    assert_null(share_take(&w->lane, "a", SHARE_EXCHANGES));
    for (size_t i = 0; i < 6; i++)
        share_give(&w->lane, s, SHARE_EXCHANGES);
    give(&w->lane, s, 60);
    assert_null(w->lane.shares);
}

static void rx_04_bytes_before_inspect_are_shared_out_too(void **state) {
    struct world *w = *state;
    struct share *a = share_take(&w->lane, "a", SHARE_EXCHANGES),
                 *b = share_take(&w->lane, "b", SHARE_EXCHANGES);
    share_add(&w->lane, a, SHARE_INSPECTED, 500);
    assert_false(share_has_room(&w->lane, a, SHARE_INSPECTED, 1000));
    assert_true(share_has_room(&w->lane, b, SHARE_INSPECTED, 1000));
    share_add(&w->lane, b, SHARE_INSPECTED, 500);
    assert_false(share_has_room(&w->lane, b, SHARE_INSPECTED, 1000));
    share_less(&w->lane, a, SHARE_INSPECTED, 500);
    share_less(&w->lane, b, SHARE_INSPECTED, 499);
    assert_true(share_has_room(&w->lane, a, SHARE_INSPECTED, 1000));
    share_give(&w->lane, a, SHARE_EXCHANGES);
    share_give(&w->lane, b, SHARE_EXCHANGES);
    /* Bytes alone keep what counts them. */
    assert_ptr_equal(w->lane.shares, b);
    share_less(&w->lane, b, SHARE_INSPECTED, 1);
    assert_null(w->lane.shares);
}

static void the_smallest_limit_still_serves_one(void **state) {
    struct world *w = *state;
    struct share *s = NULL;
    w->now.limits.v[LIMIT_CONNECTIONS] = 1;
    assert_int_equal(take_all(&w->lane, "a", &s), 1);
    assert_null(share_take(&w->lane, "b", SHARE_CONNECTIONS));
    give(&w->lane, s, 1);
    assert_null(w->lane.shares);
    share_give(&w->lane, NULL, SHARE_CONNECTIONS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rx_04_a_sandbox_of_its_own_lane_may_have_all, setup),
        cmocka_unit_test_setup(rx_04_on_a_shared_lane_nobody_fills_it_for_the_others, setup),
        cmocka_unit_test_setup(rx_04_each_limit_is_shared_out_by_itself, setup),
        cmocka_unit_test_setup(rx_04_bytes_before_inspect_are_shared_out_too, setup),
        cmocka_unit_test_setup(the_smallest_limit_still_serves_one, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

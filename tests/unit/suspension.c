/* Who is suspended, as egress keeps it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/suspension.h"

#define HOUR UINT64_C(3600000000000)

/* An egress of a lane that begins again, told of the suspensions before it; it keeps them as long as the process lives. */
static struct world {
    struct lane lane;
    struct generation generation;
    struct buf list;
} worlds[3];
static size_t n_worlds;

static struct world *world_new(void) {
    assert_true(n_worlds < sizeof worlds / sizeof *worlds);
    struct world *w = &worlds[n_worlds++];
    w->lane.loop = loop_new();
    w->lane.now = &w->generation;
    w->generation.limits.v[LIMIT_GUARD_TIME] = 600;
    buf_init(&w->list, 4096);
    return w;
}

static void world_close(struct world *w) {
    loop_free(w->lane.loop);
    buf_free(&w->list);
}

static void put(struct world *w, uint64_t until, const char *sandbox) {
    buf_put_u64(&w->list, until);
    buf_put_block(&w->list, view_str(sandbox));
}

static void p8_a_sandbox_is_suspended_as_long_as_its_last_suspension_lasts(void **state) {
    struct world *w = world_new();
    uint64_t now = clock_mono();
    (void)state;
    put(w, now + HOUR, "a");
    put(w, now, "a");
    put(w, now, "b");
    put(w, now + HOUR, "b");
    put(w, now, "c");
    assert_int_equal(suspension_take(&w->lane, buf_view(&w->list)), 0);
    assert_true(suspension_holds(&w->lane, VIEW("a")));
    assert_true(suspension_holds(&w->lane, VIEW("b")));
    assert_false(suspension_holds(&w->lane, VIEW("c")));
    assert_false(suspension_holds(&w->lane, VIEW("d")));
    world_close(w);
}

/* Whoever has itself suspended again and again makes the list no longer. */
static void p8_a_sandbox_is_kept_once_however_often_it_is_suspended(void **state) {
    struct world *w = world_new();
    uint64_t now = clock_mono();
    (void)state;
    for (int i = 0; i < 100; i++)
        put(w, now + HOUR, i % 2 ? "a" : "b");
    assert_int_equal(suspension_take(&w->lane, buf_view(&w->list)), 0);
    assert_int_equal(suspension_count(&w->lane), 2);
    world_close(w);
}

static void a_list_that_is_cut_is_refused(void **state) {
    struct world *w = world_new();
    (void)state;
    put(w, clock_mono() + HOUR, "a");
    struct view cut = view_head(buf_view(&w->list), buf_len(&w->list) - 1);
    assert_int_equal(suspension_take(&w->lane, cut), ERR_BAD);
    assert_false(suspension_holds(&w->lane, VIEW("a")));
    world_close(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p8_a_sandbox_is_suspended_as_long_as_its_last_suspension_lasts),
        cmocka_unit_test(p8_a_sandbox_is_kept_once_however_often_it_is_suspended),
        cmocka_unit_test(a_list_that_is_cut_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/unread.h"

#include "daemon/process.h"
#include "daemon/rollout.h"
#include "policy/bundle.h"

#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t SECOND = 1000000000, LONG_AGO = 61 * SECOND;

/* A parent whose shared roles are up and use generation 1; what it sends them is read by nobody. */
struct world {
    struct parent parent;
    struct process *broker, *dialer;
    int others[2];
};

static struct process *add(struct world *w, enum role role, int *other) {
    struct process *of = process_add(&w->parent, role, 0);
    assert_non_null(of);
    of->channel = unread_channel(w->parent.loop, other);
    of->state = PROCESS_UP;
    of->generation = 1;
    return of;
}

static void put_base(struct buf *out) {
    struct bundle b = {.policy_text = VIEW("sandbox a { }")};
    limits_default(&b.limits);
    buf_put_block(out, VIEW(""));
    bundle_write(&b, out);
}

static int setup(void **state) {
    struct world *w = calloc(1, sizeof *w);
    struct parent *p = &w->parent;
    p->loop = loop_new();
    p->text = -1;
    p->generation = p->rollout.number = 1;
    buf_init(&p->base, 1 << 20);
    buf_init(&p->candidate, 1 << 20);
    buf_init(&p->registry, 1 << 20);
    buf_init(&p->rollout.base, 1 << 20);
    put_base(&p->base);
    w->broker = add(w, ROLE_BROKER, &w->others[0]);
    w->dialer = add(w, ROLE_DIALER, &w->others[1]);
    *state = w;
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    struct parent *p = &w->parent;
    while (p->processes) {
        p->processes->state = PROCESS_DOWN;
        process_free(p->processes);
    }
    close(w->others[0]);
    close(w->others[1]);
    if (p->rollout.late)
        event_free(p->rollout.late);
    if (p->rollout.gather)
        event_free(p->rollout.gather);
    if (p->text >= 0)
        close(p->text);
    buf_free(&p->base);
    buf_free(&p->candidate);
    buf_free(&p->registry);
    buf_free(&p->rollout.base);
    loop_free(p->loop);
    free(w);
    return 0;
}

/* When it is that whoever is silent is started anew; 0: never. */
static uint64_t limit(const struct world *w) {
    struct timeval at;
    return event_pending(w->parent.rollout.late, EV_TIMEOUT, &at)
               ? (uint64_t)at.tv_sec * 1000000 + (uint64_t)at.tv_usec
               : 0;
}

static void begin(struct world *w) {
    rollout_registry(&w->parent, 1, VIEW(""), false);
    assert_true(w->parent.rollout.running);
    assert_int_equal(w->parent.rollout.number, 2);
}

/* All have read it, the last of them very late. */
static void commit_late(struct world *w) {
    begin(w);
    assert_int_equal(rollout_ready(w->broker, 2), 0);
    w->parent.rollout.begun -= LONG_AGO;
    event_del(w->parent.rollout.late); /* as it is once it has struck */
    assert_int_equal(rollout_ready(w->dialer, 2), 0);
    assert_true(w->parent.rollout.committed);
}

static void who_does_not_use_it_has_no_veto_however_long_reading_it_took(void **state) {
    struct world *w = *state;
    commit_late(w);
    assert_true(limit(w) > 0);
    assert_int_equal(rollout_confirmed(w->broker, 2), 0);
    assert_true(w->parent.rollout.running && limit(w) > 0);
}

/* Otherwise one that is silent and one that talks could hold a generation up for a minute. */
static void who_says_twice_that_he_uses_it_buys_nobody_time(void **state) {
    struct world *w = *state;
    commit_late(w);
    assert_int_equal(rollout_confirmed(w->broker, 2), 0);
    uint64_t before = limit(w);
    usleep(30000); /* its clock is a coarse one */
    assert_int_equal(rollout_confirmed(w->broker, 2), 0);
    assert_int_equal(limit(w), before);
}

/* Nor one that says again that he uses the generation before it. */
static void who_speaks_of_another_generation_buys_nobody_time(void **state) {
    struct world *w = *state;
    begin(w);
    uint64_t before = limit(w);
    usleep(30000); /* its clock is a coarse one */
    assert_int_equal(rollout_confirmed(w->broker, 1), 0);
    assert_int_equal(rollout_ready(w->broker, 1), 0);
    assert_int_equal(limit(w), before);
    assert_false(w->parent.rollout.committed);
}

/* Of milliseconds: how far the loop's clock, a coarse one, and the one that tells them may be apart. */
enum { APART = 20 };

/* Milliseconds until it begins without lanes that have ended; 0: nothing is waited for. */
static uint64_t waits(const struct world *w) {
    struct timeval at, now;
    const struct rollout *r = &w->parent.rollout;
    if (!r->gather || !event_pending(r->gather, EV_TIMEOUT, &at))
        return 0;
    event_base_gettimeofday_cached(loop_base(w->parent.loop), &now);
    return (uint64_t)((at.tv_sec - now.tv_sec) * 1000 + (at.tv_usec - now.tv_usec) / 1000) + 1;
}

static void all_use_it(struct world *w, uint32_t number) {
    assert_int_equal(rollout_ready(w->broker, number), 0);
    assert_int_equal(rollout_ready(w->dialer, number), 0);
    assert_int_equal(rollout_confirmed(w->broker, number), 0);
    assert_int_equal(rollout_confirmed(w->dialer, number), 0);
}

static void lanes_that_detach_in_the_same_moment_go_with_one_generation(void **state) {
    struct world *w = *state;
    const struct rollout *r = &w->parent.rollout;
    for (uint64_t i = 1; i <= 100; i++) {
        rollout_leave(&w->parent);
        rollout_registry(&w->parent, i, VIEW(""), true);
        assert_true(!r->running && waits(w) > 0 && waits(w) <= 500 + APART);
        if (i == 1)
            usleep(100000);
    }
    /* Whoever comes last is waited for no longer than the first was. */
    event_base_update_cache_time(loop_base(w->parent.loop));
    assert_true(waits(w) <= 400 + APART);
    event_base_loop(loop_base(w->parent.loop), EVLOOP_ONCE);
    assert_true(r->running && r->number == 2 && r->registry_state == 100);
    /* Those that have detached meanwhile are with the next one. */
    rollout_leave(&w->parent);
    all_use_it(w, 2);
    assert_true(!r->running && waits(w) > 0);
}

static void what_is_wanted_at_once_waits_for_nobody_who_detaches(void **state) {
    struct world *w = *state;
    const struct rollout *r = &w->parent.rollout;
    rollout_registry(&w->parent, 1, VIEW(""), true);
    assert_true(!r->running);
    rollout_registry(&w->parent, 2, VIEW("x"), false);
    assert_true(r->running && r->number == 2 && r->registry_state == 2 && waits(w) == 0);
    all_use_it(w, 2);
    assert_false(r->running || r->left || r->wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            who_does_not_use_it_has_no_veto_however_long_reading_it_took, setup, teardown),
        cmocka_unit_test_setup_teardown(who_says_twice_that_he_uses_it_buys_nobody_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(who_speaks_of_another_generation_buys_nobody_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(lanes_that_detach_in_the_same_moment_go_with_one_generation,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_wanted_at_once_waits_for_nobody_who_detaches, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/unread.h"

#include "daemon/suspended.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NOTED = 2000 };

/* A parent with one lane, of an attached sandbox, and the channel to its egress. */
struct world {
    struct loop *loop;
    struct parent parent;
    struct lane lane;
    struct process egress;
    int other; /* egress' end */
};

static struct world *world_new(void) {
    struct world *w = calloc(1, sizeof *w);
    w->loop = loop_new();
    w->parent.limits.v[LIMIT_GUARD_TIME] = 600;
    buf_init(&w->parent.former, CHILD_SUSPENDED_MAX);
    buf_init(&w->parent.suspended, CHILD_SUSPENDED_MAX);
    w->parent.lanes = &w->lane;
    w->lane = (struct lane){.parent = &w->parent, .id = 1};
    w->egress = (struct process){.parent = &w->parent, .role = ROLE_EGRESS, .lane = 1};
    w->egress.channel = unread_channel(w->loop, &w->other);
    return w;
}

static void world_free(struct world *w) {
    channel_free(w->egress.channel);
    close(w->other);
    buf_free(&w->parent.former);
    buf_free(&w->parent.suspended);
    loop_free(w->loop);
    free(w);
}

static void name(struct world *w, const char *sandbox) {
    snprintf(w->lane.sandbox, sizeof w->lane.sandbox, "%s", sandbox);
}

/* Whether an egress that begins for this sandbox is told that its lane begins again. */
static bool begins_again(struct world *w, const char *sandbox) {
    size_t before = channel_unsent(w->egress.channel);
    name(w, sandbox);
    suspended_send(&w->egress);
    return channel_unsent(w->egress.channel) > before;
}

static void p8_a_lane_whose_sandbox_was_served_before_begins_again(void **state) {
    (void)state;
    struct world *w = world_new();
    name(w, "a");
    suspended_note_end(&w->lane);
    assert_true(begins_again(w, "a"));
    assert_false(begins_again(w, "b"));
    world_free(w);
}

static void p8_where_there_is_no_room_to_note_each_begins_again(void **state) {
    (void)state;
    struct world *w = world_new();
    char sandbox[SANDBOX_NAME_MAX + 1];
    assert_false(begins_again(w, "the-last"));
    for (int i = 0; i < NOTED; i++) {
        snprintf(sandbox, sizeof sandbox, "sandbox-with-a-name-of-some-length-that-ends-in-%d", i);
        name(w, sandbox);
        suspended_note_end(&w->lane);
    }
    name(w, "the-last");
    suspended_note_end(&w->lane);
    assert_true(begins_again(w, sandbox));
    assert_true(begins_again(w, "the-last"));
    world_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p8_a_lane_whose_sandbox_was_served_before_begins_again),
        cmocka_unit_test(p8_where_there_is_no_room_to_note_each_begins_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

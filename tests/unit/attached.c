/* What attach may ask of the parent, whoever has taken it over. */
#include "tests/unit/unread.h"

#include "daemon/attached.h"
#include "daemon/lanes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* A parent with a lane of its configuration, and attach. */
struct world {
    struct loop *loop;
    struct parent parent;
    struct config_lane config;
    struct lane lane;
    struct process attach;
    int other; /* attach's end */
};

static struct world *world_new(void) {
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->loop = loop_new();
    w->parent.loop = w->loop;
    w->parent.lanes = &w->lane;
    w->parent.processes = &w->attach;
    buf_init(&w->parent.former, CHILD_SUSPENDED_MAX);
    w->config.names = VIEW("a");
    w->lane = (struct lane){.parent = &w->parent, .id = 1, .config = &w->config};
    w->attach = (struct process){.parent = &w->parent, .role = ROLE_ATTACH, .state = PROCESS_UP};
    w->attach.channel = unread_channel(w->loop, &w->other);
    return w;
}

static void world_free(struct world *w) {
    channel_free(w->attach.channel);
    close(w->other);
    if (w->parent.lanes_tick)
        event_free(w->parent.lanes_tick);
    buf_free(&w->parent.former);
    loop_free(w->loop);
    free(w);
}

static struct message message_of(uint32_t id, struct view body) {
    return (struct message){.id = id, .body = body, .fd = -1};
}

/* A lane of the configuration has no name of attach's, which 0 stands for. */
static void a_lane_of_the_configuration_is_not_attach_s_to_end(void **state) {
    struct world *w = world_new();
    (void)state;
    for (uint32_t id = 0; id < 3; id++) {
        struct message m = message_of(id, VIEW(""));
        assert_int_equal(attached_end(&w->attach, &m), 0);
        assert_int_equal(attached_open(&w->attach, &m), 0);
        assert_int_equal(w->lane.ended, 0);
        assert_false(w->lane.open);
    }
    world_free(w);
}

static void a_listener_of_no_lane_is_closed(void **state) {
    struct world *w = world_new();
    static const uint8_t way[] = {WAY_EXPLICIT};
    (void)state;
    for (uint32_t id = 0; id < 3; id++) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct message m = message_of(id, view_of(way, sizeof way));
        m.fd = fd;
        assert_int_equal(attached_listener(&w->attach, &m), 0);
        assert_int_equal(m.fd, -1);
        assert_int_equal(fcntl(fd, F_GETFD), -1);
        assert_int_equal(w->lane.n_listeners, 0);
    }
    world_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_of_the_configuration_is_not_attach_s_to_end),
        cmocka_unit_test(a_listener_of_no_lane_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

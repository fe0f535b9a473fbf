#include "tests/unit/parent_part.h"

#include "base/log.h"
#include "daemon/control.h"
#include "daemon/control_messages.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* Control on one end of real channels and of a real socket; the test is parent, broker and clients. */

struct got {
    uint16_t type;
    uint32_t id;
    uint8_t body[2048];
    size_t n;
    int fd;
};

struct end {
    struct channel *channel;
    struct got got[128];
    size_t n;
    bool closed;
};

struct world {
    char path[108];
    struct loop *loop;
    struct control *control;
    struct end parent, broker, client[CONTROL_CLIENTS_MAX + 4];
};

static int keep(void *ctx, struct channel *ch, struct message *m) {
    struct end *e = ctx;
    (void)ch;
    assert_true(e->n < sizeof e->got / sizeof *e->got && m->body.n <= sizeof e->got->body);
    struct got *g = &e->got[e->n++];
    *g = (struct got){.type = m->type, .id = m->id, .n = m->body.n, .fd = m->fd};
    m->fd = -1;
    if (m->body.n)
        memcpy(g->body, m->body.p, m->body.n);
    return 0;
}

static void on_closed(void *ctx, struct channel *ch, int why) {
    struct end *e = ctx;
    (void)ch;
    (void)why;
    e->closed = true;
}

static const struct channel_rule plain_rules[] = {
    {1, 0, 2048, keep, "1"},
    {4, 0, 2048, keep, "4"},
    {5, 0, 2048, keep, "5"},
    {7, 0, 2048, keep, "7"},
};

static const struct channel_rule broker_rules[] = {
    {BROKER_SECRET_ADD, CHANNEL_FD, 2048, keep, "add"},
    {BROKER_SECRET_LIST, 0, 2048, keep, "list"},
    {BROKER_SANDBOX_ADD, 0, 2048, keep, "sandbox"},
    {BROKER_CANCEL, 0, 0, keep, "cancel"},
};

static void end_open(struct world *w, struct end *e, int fd, const struct channel_rule *rules,
                     size_t n) {
    memset(e, 0, sizeof *e);
    e->channel = channel_new(w->loop, fd, rules, n, 0, on_closed, e);
    assert_non_null(e->channel);
}

static void end_close(struct end *e) {
    for (size_t i = 0; i < e->n; i++)
        if (e->got[i].fd > 0)
            close(e->got[i].fd);
    channel_free(e->channel);
    memset(e, 0, sizeof *e);
}

static struct got *await(struct world *w, struct end *e, size_t before) {
    for (int i = 0; i < 2000 && e->n <= before && !e->closed; i++)
        assert_int_equal(loop_turn(w->loop), 0);
    assert_true(e->n > before);
    return &e->got[e->n - 1];
}

static void await_closed(struct world *w, struct end *e) {
    for (int i = 0; i < 2000 && !e->closed; i++)
        assert_int_equal(loop_turn(w->loop), 0);
    assert_true(e->closed);
}

static void settle(struct world *w) {
    size_t before = w->parent.n;
    channel_send(w->parent.channel, PARENT_STATUS_ASK, 1, 0, VIEW(""));
    while (await(w, &w->parent, before)->type != ROLE_STATUS)
        before = w->parent.n;
    w->parent.n--; /* it was only a sign of life */
}

static int done(const struct got *g, struct view *text) {
    struct reader r = reader_of(view_of(g->body, g->n));
    assert_int_equal(g->type, CONTROL_DONE);
    int code = -(int)read_u8(&r);
    *text = read_block(&r, g->n);
    assert_true(read_done(&r));
    return code;
}

/* ---- the parent's part ---- */

static void connect_broker(struct world *w) {
    int fds[2];
    assert_int_equal(channel_pair(fds), 0);
    end_open(w, &w->broker, fds[0], broker_rules, sizeof broker_rules / sizeof *broker_rules);
    parent_sends_peer(w->parent.channel, ROLE_BROKER, 0, VIEW("broker"), fds[1]);
}

static void broker_answers(struct world *w, uint32_t id, int code, const char *text) {
    struct buf *b = channel_begin(w->broker.channel, BROKER_DONE, id, 0);
    buf_put_u8(b, (uint8_t)-code);
    buf_put_block(b, view_str(text));
    channel_end(w->broker.channel);
}

static int socket_to(struct world *w, bool listens) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, w->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (listens) {
        assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
        assert_int_equal(listen(fd, 64), 0);
        assert_int_equal(chmod(w->path, 0666), 0);
    } else {
        assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    }
    return fd;
}

static void client(struct world *w, size_t i) {
    end_open(w, &w->client[i], socket_to(w, false), plain_rules,
             sizeof plain_rules / sizeof *plain_rules);
}

/* The roles' descriptors stay free of the test's own. */
static void keep_low_fds(void) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (fd < LISTENER_FD)
        keep_low_fds();
    else if (fd > LISTENER_FD)
        close(fd);
}

static int setup(void **state) {
    struct world *w = calloc(1, sizeof *w);
    struct role_args args = {.role = ROLE_CONTROL, .listeners = 1};
    int fds[2];
    keep_low_fds();
    snprintf(w->path, sizeof w->path, "/tmp/exeat-control-%d.sock", (int)getpid());
    unlink(w->path);
    w->loop = loop_new();
    assert_int_equal(channel_pair(fds), 0);
    dup2(fds[1], PARENT_FD);
    close(fds[1]);
    int listener = socket_to(w, true);
    dup2(listener, LISTENER_FD);
    close(listener);
    w->control = control_new(w->loop, &args);
    assert_non_null(w->control);
    end_open(w, &w->parent, fds[0], plain_rules, sizeof plain_rules / sizeof *plain_rules);
    parent_sends_file(w->parent.channel, "control-uids", view_str("12345\n"));
    connect_broker(w);
    settle(w);
    *state = w;
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    control_free(w->control);
    for (size_t i = 0; i < sizeof w->client / sizeof *w->client; i++)
        end_close(&w->client[i]);
    end_close(&w->broker);
    end_close(&w->parent);
    loop_free(w->loop);
    close(LISTENER_FD);
    unlink(w->path);
    free(w);
    return 0;
}

/* ---- requests ---- */

static struct view block(struct buf *b, const char *text) {
    buf_reset(b);
    buf_put_block(b, view_str(text));
    return buf_view(b);
}

static void a_request_reaches_broker_with_the_clients_uid(void **state) {
    struct world *w = *state;
    struct buf b;
    struct view text;
    buf_init(&b, 64);
    client(w, 0);
    channel_send(w->client[0].channel, CONTROL_SANDBOX_ADD, 9, 0, block(&b, "worker"));
    struct got *g = await(w, &w->broker, 0);
    struct reader r = reader_of(view_of(g->body, g->n));
    assert_int_equal(g->type, BROKER_SANDBOX_ADD);
    assert_int_equal(read_u32(&r), getuid());
    assert_true(view_equal(read_block(&r, 64), VIEW("worker")));
    assert_true(read_done(&r));
    broker_answers(w, g->id, 0, "{\"name\":\"worker\"}");
    struct got *answer = await(w, &w->client[0], 0);
    assert_int_equal(answer->id, 9);
    assert_int_equal(done(answer, &text), 0);
    assert_true(view_equal(text, VIEW("{\"name\":\"worker\"}")));
    buf_free(&b);
}

static void a_descriptor_passes_through_unread(void **state) {
    struct world *w = *state;
    int fds[2];
    char byte;
    assert_int_equal(pipe(fds), 0);
    client(w, 0);
    channel_send_fd(w->client[0].channel, CONTROL_SECRET_ADD, 1, 0, VIEW("body"), fds[0]);
    struct got *g = await(w, &w->broker, 0);
    assert_true(g->fd >= 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(read(g->fd, &byte, 1), 1);
    close(fds[1]);
}

static void requests_of_two_clients_are_not_mixed_up(void **state) {
    struct world *w = *state;
    struct view text;
    for (size_t i = 0; i < 2; i++) {
        client(w, i);
        channel_send(w->client[i].channel, CONTROL_SECRET_LIST, 5, 0, VIEW(""));
        await(w, &w->broker, i);
    }
    assert_int_not_equal(w->broker.got[0].id, w->broker.got[1].id);
    broker_answers(w, w->broker.got[1].id, 0, "second");
    broker_answers(w, w->broker.got[0].id, ERR_MISSING, "first");
    assert_int_equal(done(await(w, &w->client[1], 0), &text), 0);
    assert_true(view_equal(text, VIEW("second")));
    assert_int_equal(done(await(w, &w->client[0], 0), &text), ERR_MISSING);
    assert_true(view_equal(text, VIEW("first")));
}

static void status_reload_stop_and_head_go_to_the_parent(void **state) {
    static const struct {
        uint16_t type;
        enum role_ask ask;
    } cases[] = {{CONTROL_STATUS, ASK_STATUS},
                 {CONTROL_RELOAD, ASK_RELOAD},
                 {CONTROL_STOP, ASK_STOP},
                 {CONTROL_HEAD, ASK_HEAD}};
    struct world *w = *state;
    struct view text;
    client(w, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t before = w->parent.n;
        channel_send(w->client[0].channel, cases[i].type, 3, 0, VIEW(""));
        struct got *g = await(w, &w->parent, before);
        assert_int_equal(g->type, ROLE_ASK);
        assert_int_equal(g->body[0], cases[i].ask);
        struct buf *b = channel_begin(w->parent.channel, PARENT_ANSWER, g->id, 0);
        buf_put_u8(b, 0);
        buf_put_block(b, VIEW("{}"));
        channel_end(w->parent.channel);
        assert_int_equal(done(await(w, &w->client[0], i), &text), 0);
    }
}

static void broker_cannot_answer_for_the_parent(void **state) {
    struct world *w = *state;
    client(w, 0);
    size_t before = w->parent.n;
    channel_send(w->client[0].channel, CONTROL_STATUS, 3, 0, VIEW(""));
    struct got *g = await(w, &w->parent, before);
    broker_answers(w, g->id, 0, "false");
    settle(w);
    settle(w);
    assert_int_equal(w->client[0].n, 0);
}

/* ---- hostile clients ---- */

static void ad_01_a_client_that_breaks_the_contract_is_dropped_alone(void **state) {
    static const struct {
        uint16_t type;
        const char *body;
        bool fd;
    } cases[] = {
        {15, "", false},                  /* no such request */
        {CONTROL_STATUS, "x", false},     /* a body where there is none */
        {CONTROL_SECRET_ADD, "x", false}, /* no descriptor */
        {CONTROL_SECRET_LIST, "", true},  /* a descriptor too many */
        {CONTROL_FOR_BROKER + BROKER_CANCEL, "", false},
    };
    struct world *w = *state;
    client(w, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        client(w, 1);
        struct view body = view_str(cases[i].body);
        if (cases[i].fd)
            channel_send_fd(w->client[1].channel, cases[i].type, 1, 0, body, dup(0));
        else
            channel_send(w->client[1].channel, cases[i].type, 1, 0, body);
        await_closed(w, &w->client[1]);
        end_close(&w->client[1]);
    }
    channel_send(w->client[0].channel, CONTROL_SECRET_LIST, 1, 0, VIEW(""));
    await(w, &w->broker, 0);
    assert_int_equal(w->broker.n, 1);
}

static void ad_01_raw_nonsense_is_dropped(void **state) {
    static const struct view cases[] = {
        {(const uint8_t *)"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 28},
        {(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16},
        {(const uint8_t *)"\0\x10\0\0\0\1\0\0\0\0\0\1\0\0\0\0", 16},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = socket_to(w, false);
        assert_int_equal(write(fd, cases[i].p, cases[i].n), (ssize_t)cases[i].n);
        end_open(w, &w->client[0], fd, plain_rules, sizeof plain_rules / sizeof *plain_rules);
        if (i < 2)
            await_closed(w, &w->client[0]);
        end_close(&w->client[0]);
        settle(w);
    }
}

static void a_second_request_at_once_is_dropped_and_the_first_cancelled(void **state) {
    struct world *w = *state;
    client(w, 0);
    channel_send(w->client[0].channel, CONTROL_SECRET_LIST, 1, 0, VIEW(""));
    channel_send(w->client[0].channel, CONTROL_SECRET_LIST, 2, 0, VIEW(""));
    await_closed(w, &w->client[0]);
    struct got *g = await(w, &w->broker, 1);
    assert_int_equal(g->type, BROKER_CANCEL);
    assert_int_equal(g->id, w->broker.got[0].id);
}

static void a_client_that_goes_away_cancels_its_request(void **state) {
    struct world *w = *state;
    client(w, 0);
    channel_send(w->client[0].channel, CONTROL_SECRET_LIST, 1, 0, VIEW(""));
    await(w, &w->broker, 0);
    end_close(&w->client[0]);
    struct got *g = await(w, &w->broker, 1);
    assert_int_equal(g->type, BROKER_CANCEL);
    broker_answers(w, g->id, 0, "too late");
    settle(w);
}

static void the_seventeenth_client_is_turned_away(void **state) {
    struct world *w = *state;
    struct view text;
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
        client(w, i);
    settle(w);
    client(w, CONTROL_CLIENTS_MAX);
    struct end *last = &w->client[CONTROL_CLIENTS_MAX];
    struct got *g = await(w, last, 0);
    assert_int_equal(g->id, 0);
    assert_int_equal(done(g, &text), ERR_LIMIT);
    await_closed(w, last);
    end_close(&w->client[0]);
    settle(w);
    client(w, 0);
    channel_send(w->client[0].channel, CONTROL_SECRET_LIST, 1, 0, VIEW(""));
    await(w, &w->broker, 0);
}

/* Connects as another user, and tells by its exit code what it was told. */
static int code_told_to(struct world *w, uid_t uid) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        uint8_t answer[512];
        if (setuid(uid) != 0)
            _exit(200);
        int fd = socket_to(w, false);
        ssize_t n = read(fd, answer, sizeof answer);
        _exit(n > 16 ? answer[16] : 201);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        settle(w);
        usleep(1000);
    }
    return WEXITSTATUS(status);
}

static void ad_01_another_user_is_told_so_and_closed(void **state) {
    struct world *w = *state;
    if (getuid() != 0)
        skip();
    assert_int_equal(code_told_to(w, 4321), -ERR_DENIED);
}

static void a_permitted_user_is_let_in(void **state) {
    struct world *w = *state;
    int status = 0;
    if (getuid() != 0)
        skip();
    pid_t child = fork();
    if (child == 0) {
        static const uint8_t list[16] = {[5] = CONTROL_SECRET_LIST, [11] = 1};
        if (setuid(12345) != 0)
            _exit(200);
        int fd = socket_to(w, false);
        _exit(write(fd, list, sizeof list) == sizeof list && read(fd, &status, 1) == 1 ? 0 : 1);
    }
    struct got *g = await(w, &w->broker, 0);
    struct reader r = reader_of(view_of(g->body, g->n));
    assert_int_equal(read_u32(&r), 12345);
    broker_answers(w, g->id, 0, "[]");
    while (waitpid(child, &status, WNOHANG) == 0) {
        settle(w);
        usleep(1000);
    }
    assert_int_equal(status, 0);
}

static void a_list_of_users_that_cannot_be_read_permits_nobody(void **state) {
    static const char *const lists[] = {"12345\nx\n", "12345\n\n4321\n", "-1\n", "12345 4321\n",
                                        "99999999999\n"};
    struct world *w = *state;
    if (getuid() != 0)
        skip();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        parent_sends_file(w->parent.channel, "control-uids", view_str(lists[i]));
        settle(w);
        assert_int_equal(code_told_to(w, 12345), -ERR_DENIED);
    }
}

/* ---- losses ---- */

static void a_lost_broker_is_told_and_may_come_again(void **state) {
    struct world *w = *state;
    struct view text;
    client(w, 0);
    channel_send(w->client[0].channel, CONTROL_SECRET_LIST, 1, 0, VIEW(""));
    await(w, &w->broker, 0);
    end_close(&w->broker);
    assert_int_equal(done(await(w, &w->client[0], 0), &text), ERR_CLOSED);
    channel_send(w->client[0].channel, CONTROL_SECRET_LIST, 2, 0, VIEW(""));
    assert_int_equal(done(await(w, &w->client[0], 1), &text), ERR_CLOSED);
    connect_broker(w);
    settle(w);
    channel_send(w->client[0].channel, CONTROL_SECRET_LIST, 3, 0, VIEW(""));
    await(w, &w->broker, 0);
}

static void a_broker_that_breaks_the_contract_is_reported(void **state) {
    struct world *w = *state;
    size_t before = w->parent.n;
    channel_send(w->broker.channel, BROKER_DONE, 1, 0, VIEW("xx"));
    struct got *g = await(w, &w->parent, before);
    assert_int_equal(g->type, ROLE_BAD_PEER);
    assert_int_equal(g->body[0], ROLE_BROKER);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- limits of ours ---- */

static void rx_04_without_descriptors_accepting_rests_without_a_busy_loop(void **state) {
    struct world *w = *state;
    struct rlimit before, few;
    int taken[64], waits = socket_to(w, false);
    size_t n = 0;
    struct timeval end = {0, 300 * 1000};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){64, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (n < 64 && (taken[n] = dup(waits)) >= 0)
        n++;
    event_base_loopexit(loop_base(w->loop), &end);
    int turns = 0;
    while (!event_base_got_exit(loop_base(w->loop)) && turns < 1000) {
        event_base_loop(loop_base(w->loop), EVLOOP_ONCE);
        turns++;
    }
    assert_true(turns < 20);
    while (n > 0)
        close(taken[--n]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(waits);
    /* It is looked at again. */
    client(w, 0);
    channel_send(w->client[0].channel, CONTROL_SECRET_LIST, 1, 0, VIEW(""));
    await(w, &w->broker, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_request_reaches_broker_with_the_clients_uid),
        TEST(a_descriptor_passes_through_unread),
        TEST(requests_of_two_clients_are_not_mixed_up),
        TEST(status_reload_stop_and_head_go_to_the_parent),
        TEST(broker_cannot_answer_for_the_parent),
        TEST(ad_01_a_client_that_breaks_the_contract_is_dropped_alone),
        TEST(ad_01_raw_nonsense_is_dropped),
        TEST(a_second_request_at_once_is_dropped_and_the_first_cancelled),
        TEST(a_client_that_goes_away_cancels_its_request),
        TEST(the_seventeenth_client_is_turned_away),
        TEST(ad_01_another_user_is_told_so_and_closed),
        TEST(a_permitted_user_is_let_in),
        TEST(a_list_of_users_that_cannot_be_read_permits_nobody),
        TEST(a_lost_broker_is_told_and_may_come_again),
        TEST(a_broker_that_breaks_the_contract_is_reported),
        TEST(rx_04_without_descriptors_accepting_rests_without_a_busy_loop),
    };
    log_open("control", getenv("LOUD") ? LOG_DEBUG : LOG_FATAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/dns_server.h"
#include "tests/unit/parent_part.h"

#include "audit/record.h"
#include "egress/dialer.h"
#include "egress/dialer_messages.h"

#include <sys/wait.h>

/*
 * The whole process with its rights narrowed: seccomp kills on a call that is
 * not on the page, so that a lookup by UDP and TCP, a connection and its hand-over show the page is enough.
 */

struct world {
    struct loop *loop;
    struct channel *parent, *lane;
    struct dns_server dns;
    pid_t pid;
    int audit, upstream, answer_fd;
    uint16_t port;
    bool up, ready, answered, closed;
    enum reason refused;
};

static int on_up(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    (void)m;
    ((struct world *)ctx)->up = true;
    return 0;
}

static int on_ready(void *ctx, struct channel *ch, struct message *m) {
    (void)ch;
    (void)m;
    ((struct world *)ctx)->ready = true;
    return 0;
}

static int on_done(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    (void)ch;
    w->answer_fd = m->fd;
    m->fd = -1;
    w->answered = true;
    return 0;
}

static int on_refused(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    w->refused = (enum reason)read_u16(&r);
    w->answered = true;
    return 0;
}

static int on_committed(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    (void)ch;
    (void)m;
    return 0;
}

static const struct channel_rule parent_rules[] = {
    {ROLE_UP, 0, 64, on_up, "up"},
    {ROLE_READY, 0, 64, on_ready, "ready"},
    {ROLE_COMMITTED, 0, 0, on_committed, "committed"},
};

static const struct channel_rule lane_rules[] = {
    {DIAL_DONE, CHANNEL_FD, 8192, on_done, "done"},
    {DIAL_REFUSED, 0, 8192, on_refused, "refused"},
};

static void on_closed(void *ctx, struct channel *ch, int why) {
    (void)ch;
    (void)why;
    ((struct world *)ctx)->closed = true;
}

/* By UDP truncated, by TCP whole: both ways of asking are taken. */
static void script(struct dns_server *s, const struct dns_query *q, struct buf *out) {
    (void)s;
    if (!q->tcp) {
        put_head(out, q, FLAG_TC, 0);
        return;
    }
    put_head(out, q, 0, q->type == Q_A ? 1 : 0);
    if (q->type == Q_A)
        put_address(out, q->name, "127.0.0.1");
}

static void start_process(struct world *w) {
    int fds[2];
    assert_int_equal(channel_pair(fds), 0);
    w->pid = fork();
    assert_true(w->pid >= 0);
    if (w->pid == 0) {
        struct role_args args = {.role = ROLE_DIALER};
        dup2(fds[1], PARENT_FD);
        closefrom(PARENT_FD + 1);
        _exit(dialer_main(&args));
    }
    close(fds[1]);
    w->parent = channel_new(w->loop, fds[0], parent_rules,
                            sizeof parent_rules / sizeof *parent_rules, 0, on_closed, w);
}

static void send_generation(struct world *w) {
    struct lane_info lane = {.id = 1, .names = VIEW("a")};
    struct bundle bundle = {.policy_file = VIEW("policy"), .n_resolvers = 1};
    struct buf lanes;
    char policy[512];
    snprintf(policy, sizeof policy,
             "service api {\n host *.allowed.test\n port %u\n range 127.0.0.0/8\n"
             " operation o { GET / }\n}\nsandbox a { grant api o }\n",
             w->port);
    buf_init(&lanes, 256);
    limits_default(&bundle.limits);
    bundle_put_lane(&lanes, &lane);
    bundle.lanes = buf_view(&lanes);
    bundle.policy_text = view_str(policy);
    bundle.resolvers[0] = (struct address){4, {127, 0, 0, 1}};
    bundle.resolver_ports[0] = w->dns.port;
    parent_sends_generation(w->parent, 1, &bundle);
    buf_free(&lanes);
}

static void send_ask(struct world *w, const char *host) {
    struct buf *b = channel_begin(w->lane, DIAL_ASK, 1, 1);
    buf_put_block(b, VIEW("a"));
    buf_put_u8(b, 1);
    buf_put_block(b, view_str(host));
    buf_put_u16(b, w->port);
    channel_end(w->lane);
    w->answered = false;
}

static void listen_upstream(struct world *w) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof a;
    w->upstream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->upstream, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(w->upstream, 8), 0);
    assert_int_equal(getsockname(w->upstream, (struct sockaddr *)&a, &n), 0);
    w->port = ntohs(a.sin_port);
}

static void send_peers(struct world *w) {
    int fds[2], audit[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, audit), 0);
    w->audit = audit[1];
    parent_sends_peer(w->parent, ROLE_AUDIT, 0, VIEW(""), audit[0]);
    assert_int_equal(channel_pair(fds), 0);
    w->lane = channel_new(w->loop, fds[0], lane_rules, 2, 0, on_closed, w);
    parent_sends_peer(w->parent, ROLE_EGRESS, 1, VIEW(""), fds[1]);
}

static void the_process_works_within_its_rights_and_stops_cleanly(void **state) {
    static struct world w;
    static uint8_t packet[RECORD_SIZE];
    int status;
    (void)state;
    w.loop = loop_new();
    dns_server_start(&w.dns, w.loop, script, &w);
    listen_upstream(&w);
    start_process(&w);
    send_peers(&w);
    send_generation(&w);
    assert_true(turn_until(w.loop, &w.up, 5000));
    assert_true(turn_until(w.loop, &w.ready, 5000));
    channel_send(w.parent, PARENT_COMMIT, 0, 1, (struct view){NULL, 0});
    turn_for(w.loop, 50);

    send_ask(&w, "evil.test");
    assert_true(turn_until(w.loop, &w.answered, 2000));
    assert_int_equal(w.refused, REASON_HOST_NOT_ALLOWED);
    assert_int_equal(dns_server_questions(&w.dns), 0);

    send_ask(&w, "api.allowed.test");
    assert_true(turn_until(w.loop, &w.answered, 5000));
    assert_true(w.answer_fd > 0);
    assert_true(w.dns.n_tcp > 0);
    int peer = accept(w.upstream, NULL, NULL);
    assert_int_equal(write(w.answer_fd, "hello", 5), 5);
    assert_int_equal(recv(peer, packet, sizeof packet, 0), 5);
    for (int i = 0; i < 2; i++)
        assert_true(recv(w.audit, packet, sizeof packet, MSG_DONTWAIT) > 0);

    channel_send(w.parent, PARENT_STOP, 0, 0, (struct view){NULL, 0});
    assert_true(turn_until(w.loop, &w.closed, 2000));
    assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(peer);
    close(w.answer_fd);
    close(w.audit);
    close(w.upstream);
    channel_free(w.lane);
    channel_free(w.parent);
    dns_server_stop(&w.dns);
    loop_free(w.loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_works_within_its_rights_and_stops_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

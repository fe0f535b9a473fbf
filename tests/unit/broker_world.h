/*
 * The broker on one end of real channels, the test as parent, control, lanes and audit on the others;
 * all on one loop.
 */
#ifndef TESTS_UNIT_BROKER_WORLD_H
#define TESTS_UNIT_BROKER_WORLD_H

#include "tests/unit/parent_part.h"

#include "audit/record.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/secret.h"
#include "broker/broker.h"
#include "broker/broker_messages.h"
#include "policy/reason.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define KEY_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define KEY_B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100\n"

static const char value_1[] = "sk-live-value-one-000000000000001";
static const char value_2[] = "sk-live-value-two-000000000000002";

static const char policy_text[] = "service demo-api {\n"
                                  "    host api.example.com\n"
                                  "    credential demo { in header authorization scheme bearer }\n"
                                  "    operation every { * /**; * / }\n"
                                  "}\n"
                                  "service shown {\n"
                                  "    host shown.example.com\n"
                                  "    upstream client-certificate us\n"
                                  "    operation every { * /**; * / }\n"
                                  "}\n"
                                  "sandbox worker { grant demo-api all; grant shown all }\n"
                                  "sandbox other { grant demo-api all }\n"
                                  "sandbox idle { }\n";

struct got {
    uint16_t type;
    uint32_t id, generation;
    uint8_t body[16384];
    size_t n;
};

/* One end of a channel that keeps what came. */
struct end {
    struct channel *channel;
    struct got got[64];
    size_t n;
    bool closed;
};

struct world {
    char directory[64];
    struct loop *loop;
    struct broker *broker;
    struct end parent, control, lane[2];
    int audit; /* reading end */
    uint32_t generation, next_id;
    struct view text;                 /* control's last answer */
    char token[64], placeholder[128]; /* of add_all */
};

/* ---- ends ---- */

static int keep(void *ctx, struct channel *ch, struct message *m) {
    struct end *e = ctx;
    (void)ch;
    assert_true(e->n < sizeof e->got / sizeof *e->got && m->body.n <= sizeof e->got->body);
    struct got *g = &e->got[e->n++];
    *g = (struct got){.type = m->type, .id = m->id, .generation = m->generation, .n = m->body.n};
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

static const struct channel_rule keep_rules[] = {
    {1, 0, 16384, keep, "1"}, {2, 0, 16384, keep, "2"}, {3, 0, 16384, keep, "3"},
    {4, 0, 16384, keep, "4"}, {5, 0, 16384, keep, "5"}, {6, 0, 16384, keep, "6"},
    {8, 0, 16384, keep, "8"},
};

static void end_open(struct world *w, struct end *e, int fd) {
    e->closed = false;
    e->channel = channel_new(w->loop, fd, keep_rules, sizeof keep_rules / sizeof *keep_rules, 0,
                             on_closed, e);
    assert_non_null(e->channel);
}

/* Runs until e has another message; the message. */
static struct got *await(struct world *w, struct end *e, size_t before) {
    for (int i = 0; i < 2000 && e->n <= before && !e->closed; i++)
        assert_int_equal(loop_turn(w->loop), 0);
    assert_true(e->n > before);
    return &e->got[e->n - 1];
}

/* A round trip to the broker and back: what it had to do before is done. */
static struct got *settle(struct world *w) {
    size_t before = w->parent.n;
    channel_send(w->parent.channel, PARENT_STATUS_ASK, 1, 0, VIEW(""));
    struct got *g = await(w, &w->parent, before);
    while (g->type != ROLE_STATUS)
        g = await(w, &w->parent, w->parent.n);
    return g;
}

/* ---- the parent's part ---- */

static void connect_peer(struct world *w, struct end *e, enum role role, uint32_t lane) {
    int fds[2];
    assert_int_equal(channel_pair(fds), 0);
    end_open(w, e, fds[0]);
    parent_sends_peer(w->parent.channel, role, lane, VIEW("peer"), fds[1]);
}

static struct got *last_of(struct end *e, uint16_t type) {
    for (size_t i = e->n; i-- > 0;)
        if (e->got[i].type == type)
            return &e->got[i];
    return NULL;
}

/* A message ROLE_REGISTRY, taken apart. */
struct told {
    uint64_t state;
    uint8_t change; /* enum registry_change */
    struct view sandbox, registry;
};

static struct told told_by(const struct got *g) {
    struct reader r = reader_of(view_of(g->body, g->n));
    struct told t = {.state = read_u64(&r)};
    t.change = read_u8(&r);
    t.sandbox = read_block(&r, g->n);
    t.registry = read_block(&r, g->n);
    assert_true(read_done(&r));
    return t;
}

static void say_in_use(struct world *w, uint64_t state) {
    struct buf *b = channel_begin(w->parent.channel, PARENT_IN_USE, 0, w->generation);
    buf_put_u64(b, state);
    channel_end(w->parent.channel);
}

/* A generation with what the broker last sent as registry. */
static void send_generation(struct world *w) {
    struct bundle bundle = {.policy_file = VIEW("policy"), .policy_text = view_str(policy_text)};
    struct lane_info one = {1, false, VIEW("worker"), false, false},
                     two = {2, true, VIEW("other idle"), false, false};
    struct buf lanes;
    buf_init(&lanes, 4096);
    limits_default(&bundle.limits);
    bundle_put_lane(&lanes, &one);
    bundle_put_lane(&lanes, &two);
    bundle.lanes = buf_view(&lanes);
    struct told told = told_by(last_of(&w->parent, ROLE_REGISTRY));
    bundle.registry = told.registry;
    w->generation++;
    parent_sends_generation(w->parent.channel, w->generation, &bundle);
    buf_free(&lanes);
    settle(w);
    struct got *ready = last_of(&w->parent, ROLE_READY);
    assert_true(ready && ready->generation == w->generation);
    channel_send(w->parent.channel, PARENT_COMMIT, 0, w->generation, VIEW(""));
    say_in_use(w, told.state);
}

/* Nothing of the test may stand where the broker finds its parent. */
static void keep_parent_fd(void) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (fd < PARENT_FD)
        keep_parent_fd();
    else if (fd > PARENT_FD)
        close(fd);
}

static void start(struct world *w, struct view key) {
    int fds[2], audit[2];
    struct role_args args = {.role = ROLE_BROKER, .directory = w->directory};
    keep_parent_fd();
    assert_int_equal(channel_pair(fds), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, audit),
                     0);
    dup2(fds[1], PARENT_FD);
    close(fds[1]);
    w->broker = broker_new(w->loop, &args);
    assert_non_null(w->broker);
    end_open(w, &w->parent, fds[0]);
    w->audit = audit[0];
    parent_sends_peer(w->parent.channel, ROLE_AUDIT, 0, VIEW("peer"), audit[1]);
    parent_sends_file(w->parent.channel, "vault-key", key);
    settle(w);
    assert_non_null(last_of(&w->parent, ROLE_REGISTRY));
    send_generation(w);
    connect_peer(w, &w->control, ROLE_CONTROL, 0);
    connect_peer(w, &w->lane[0], ROLE_EGRESS, 1);
    connect_peer(w, &w->lane[1], ROLE_EGRESS, 2);
    settle(w);
}

static void stop(struct world *w) {
    struct end *ends[] = {&w->parent, &w->control, &w->lane[0], &w->lane[1]};
    broker_free(w->broker);
    w->broker = NULL;
    for (size_t i = 0; i < 4; i++) {
        channel_free(ends[i]->channel);
        memset(ends[i], 0, sizeof *ends[i]);
    }
    close(w->audit);
}

static int setup(void **state) {
    struct world *w = calloc(1, sizeof *w);
    strcpy(w->directory, "/tmp/exeat-broker-XXXXXX");
    assert_non_null(mkdtemp(w->directory));
    keep_parent_fd();
    w->loop = loop_new();
    *state = w;
    start(w, VIEW(KEY_A));
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    char path[512];
    struct dirent *e;
    if (w->broker)
        stop(w);
    loop_free(w->loop);
    DIR *d = opendir(w->directory);
    while ((e = readdir(d)))
        if (snprintf(path, sizeof path, "%s/%s", w->directory, e->d_name) > 0)
            unlink(path);
    closedir(d);
    assert_int_equal(rmdir(w->directory), 0);
    free(w);
    assert_int_equal(secret_in_use(), 0);
    return 0;
}

/* ---- control's part ---- */

struct ask {
    uint16_t type;
    const char *name, *like;
    bool allow_short;
    const char *pem;
};

static uint32_t send_ask(struct world *w, const struct ask *a, int fd) {
    struct buf b;
    buf_init(&b, 32 * 1024);
    buf_put_u32(&b, 1000);
    if (a->type == BROKER_SECRET_ADD || a->type == BROKER_SECRET_ROTATE)
        buf_put_u8(&b, a->allow_short);
    if (a->name)
        buf_put_block(&b, view_str(a->name));
    if (a->type == BROKER_SECRET_ADD)
        buf_put_block(&b, view_str(a->like));
    if (a->type == BROKER_SECRET_ADD || a->type == BROKER_SECRET_ROTATE)
        buf_put_block(&b, view_str(a->pem));
    if (fd >= 0)
        channel_send_fd(w->control.channel, a->type, ++w->next_id, 0, buf_view(&b), fd);
    else
        channel_send(w->control.channel, a->type, ++w->next_id, 0, buf_view(&b));
    buf_free(&b);
    return w->next_id;
}

static int done(struct world *w, const struct got *g) {
    struct reader r = reader_of(view_of(g->body, g->n));
    int code = -(int)read_u8(&r);
    w->text = read_block(&r, g->n);
    assert_true(read_done(&r));
    return code;
}

/* The answer's code; generations are made whenever the broker asks for one. */
static int ask_fd(struct world *w, const struct ask *a, int fd) {
    size_t before = w->control.n, registries = w->parent.n;
    uint32_t id = send_ask(w, a, fd);
    for (int i = 0; i < 2000 && w->control.n == before; i++) {
        assert_int_equal(loop_turn(w->loop), 0);
        if (w->parent.n > registries && w->parent.got[w->parent.n - 1].type == ROLE_REGISTRY) {
            send_generation(w);
            registries = w->parent.n;
        }
    }
    assert_true(w->control.n > before);
    struct got *g = &w->control.got[w->control.n - 1];
    assert_int_equal(g->id, id);
    return done(w, g);
}

static int ask(struct world *w, uint16_t type, const char *name) {
    return ask_fd(w, &(struct ask){.type = type, .name = name}, -1);
}

static int give(struct world *w, uint16_t type, const char *name, const char *value) {
    return ask_fd(w, &(struct ask){.type = type, .name = name, .like = "sk-"},
                  memory_file(view_str(value)));
}

static void assert_says(const struct world *w, const char *part) {
    if (view_search(w->text, view_str(part)) == w->text.n)
        fail_msg("no \"%s\" in: %.*s", part, VIEW_ARG(w->text));
}

/* The secret demo, and the sandbox worker with a placeholder for it. */
static void add_all(struct world *w) {
    char json[1024];
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_1), 0);
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "worker"), 0);
    assert_int_equal(view_cstr(w->text, json, sizeof json), 0);
    assert_int_equal(sscanf(json,
                            "{\"name\":\"worker\",\"token\":\"%63[^\"]\",\"placeholders\":"
                            "[{\"credential\":\"demo\",\"value\":\"%127[^\"]\"}]}",
                            w->token, w->placeholder),
                     2);
}

/* ---- egress's part ---- */

#define API "api.example.com"

struct lease_ask {
    const char *sandbox, *credential, *host;
    uint16_t port;
    const char *placeholder;
    uint32_t generation; /* 0: the one in use */
};

/* Behind what both kinds of leases begin with stands `more`. */
static struct got *send_lease_ask(struct world *w, size_t lane, uint16_t type,
                                  const struct lease_ask *a, struct view more) {
    struct buf b;
    size_t before = w->lane[lane].n;
    buf_init(&b, 1024);
    buf_put_block(&b, view_str(a->sandbox));
    buf_put_block(&b, view_str(a->credential));
    buf_put_block(&b, view_str(a->host));
    buf_put_u16(&b, a->port);
    buf_put(&b, more);
    channel_send(w->lane[lane].channel, type, 7, a->generation ? a->generation : w->generation,
                 buf_view(&b));
    buf_free(&b);
    return await(w, &w->lane[lane], before);
}

static struct got *ask_lease(struct world *w, size_t lane, const struct lease_ask *a) {
    uint8_t fingerprint[DIGEST_SIZE];
    digest_sha256(view_str(a->placeholder), fingerprint);
    return send_lease_ask(w, lane, LEASE_ASK, a, view_of(fingerprint, sizeof fingerprint));
}

/* The one that fits. */
static struct got *ask_right(struct world *w) {
    return ask_lease(w, 0, &(struct lease_ask){"worker", "demo", API, 443, w->placeholder, 0});
}

static void assert_lent(const struct got *g, uint32_t version, const char *value) {
    struct reader r = reader_of(view_of(g->body, g->n));
    assert_int_equal(g->type, LEASE);
    assert_int_equal(g->id, 7);
    assert_int_equal(read_u32(&r), version);
    assert_int_equal(read_u32(&r), 60);
    assert_int_equal(read_u16(&r), strlen("sk-"));
    assert_true(view_equal(read_block(&r, SECRET_MAX), view_str(value)));
    assert_true(read_done(&r));
}

static void assert_refused(const struct got *g, enum reason reason) {
    struct reader r = reader_of(view_of(g->body, g->n));
    assert_int_equal(g->type, LEASE_REFUSED);
    assert_int_equal(read_u16(&r), reason);
    assert_true(read_done(&r));
}

/* ---- audit's part ---- */

/* Whether a record with this event, or for decisions this reason, has come; takes all that came. */
static bool recorded(struct world *w, const char *what, const char *credential) {
    uint8_t packet[RECORD_SIZE + 512];
    bool found = false;
    ssize_t n;
    while ((n = recv(w->audit, packet, sizeof packet, MSG_DONTWAIT)) > 0) {
        struct record_facts f;
        assert_int_equal(record_read(view_of(packet, (size_t)n), &f), 0);
        enum record_field field = f.kind == RECORD_EVENT ? FIELD_EVENT : FIELD_REASON;
        found |= view_equal(f.text[field], view_str(what)) &&
                 view_equal(f.text[FIELD_CREDENTIAL], view_str(credential));
    }
    return found;
}

/* ---- groups of tests ---- */

static int start_group(void **state) {
    (void)state;
    umask(077);
    log_open("broker", getenv("LOUD") ? LOG_DEBUG : LOG_FATAL);
    return secret_arena_open(4 << 20);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif

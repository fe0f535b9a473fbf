#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/record.h"
#include "base/child.h"
#include "base/client_key.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/secret.h"
#include "broker/broker.h"
#include "broker/broker_messages.h"
#include "policy/bundle.h"
#include "policy/reason.h"
#include "tests/unit/certificates.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The broker on one end of real channels, the test as parent, control, lanes
 * and audit on the others; all on one loop.
 */

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

static int memory_file(struct view content) {
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(write(fd, content.p, content.n), (ssize_t)content.n);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* ---- the parent's part ---- */

static void send_peer(struct world *w, enum role role, uint32_t lane, int fd) {
    struct buf b;
    buf_init(&b, 64);
    buf_put_u8(&b, (uint8_t)role);
    buf_put_u32(&b, lane);
    buf_put_block(&b, VIEW("peer"));
    channel_send_fd(w->parent.channel, PARENT_PEER, 0, 0, buf_view(&b), fd);
    buf_free(&b);
}

static void connect_peer(struct world *w, struct end *e, enum role role, uint32_t lane) {
    int fds[2];
    assert_int_equal(channel_pair(fds), 0);
    end_open(w, e, fds[0]);
    send_peer(w, role, lane, fds[1]);
}

static void send_key(struct world *w, struct view text) {
    struct buf b;
    buf_init(&b, 64);
    buf_put_block(&b, VIEW("vault-key"));
    channel_send_fd(w->parent.channel, PARENT_FILE, 0, 0, buf_view(&b), memory_file(text));
    buf_free(&b);
}

static struct got *last_of(struct end *e, uint16_t type) {
    for (size_t i = e->n; i-- > 0;)
        if (e->got[i].type == type)
            return &e->got[i];
    return NULL;
}

static struct view registry_of(const struct got *g) {
    struct reader r = reader_of(view_of(g->body, g->n));
    return read_block(&r, g->n);
}

/* A generation with what the broker last sent as registry. */
static void send_generation(struct world *w) {
    struct bundle bundle = {.policy_file = VIEW("policy"), .policy_text = view_str(policy_text)};
    struct lane_info one = {1, false, VIEW("worker")}, two = {2, true, VIEW("other idle")};
    struct buf lanes, text;
    buf_init(&lanes, 4096);
    buf_init(&text, 1 << 20);
    limits_default(&bundle.limits);
    bundle_put_lane(&lanes, &one);
    bundle_put_lane(&lanes, &two);
    bundle.lanes = buf_view(&lanes);
    bundle.registry = registry_of(last_of(&w->parent, ROLE_REGISTRY));
    bundle_write(&bundle, &text);
    assert_true(buf_ok(&text));
    w->generation++;
    channel_send_fd(w->parent.channel, PARENT_GENERATION, 0, w->generation, VIEW(""),
                    memory_file(buf_view(&text)));
    buf_free(&lanes);
    buf_free(&text);
    settle(w);
    struct got *ready = last_of(&w->parent, ROLE_READY);
    assert_true(ready && ready->generation == w->generation);
    channel_send(w->parent.channel, PARENT_COMMIT, 0, w->generation, VIEW(""));
    channel_send(w->parent.channel, PARENT_IN_USE, 0, w->generation, VIEW(""));
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
    send_peer(w, ROLE_AUDIT, 0, audit[1]);
    send_key(w, key);
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
        buf_put_block(&b, view_str(a->pem ? a->pem : ""));
    if (fd >= 0)
        channel_send_fd(w->control.channel, a->type, ++w->next_id, 0, buf_view(&b), fd);
    else
        channel_send(w->control.channel, a->type, ++w->next_id, 0, buf_view(&b));
    buf_free(&b);
    return w->next_id;
}

static int done(const struct got *g, struct view *text) {
    struct reader r = reader_of(view_of(g->body, g->n));
    int code = -(int)read_u8(&r);
    *text = read_block(&r, g->n);
    assert_true(read_done(&r));
    return code;
}

/* The answer's code; generations are made whenever the broker asks for one. */
static int ask_fd(struct world *w, const struct ask *a, int fd, struct view *text) {
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
    return done(g, text);
}

static int ask(struct world *w, uint16_t type, const char *name, struct view *text) {
    return ask_fd(w, &(struct ask){type, name, "", false, NULL}, -1, text);
}

static int give(struct world *w, uint16_t type, const char *name, const char *value,
                struct view *text) {
    return ask_fd(w, &(struct ask){type, name, "sk-", false, NULL}, memory_file(view_str(value)),
                  text);
}

static void add_all(struct world *w, char token[64], char placeholder[128]) {
    struct view text;
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_1, &text), 0);
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "worker", &text), 0);
    char json[1024];
    assert_int_equal(view_cstr(text, json, sizeof json), 0);
    assert_int_equal(sscanf(json,
                            "{\"name\":\"worker\",\"token\":\"%63[^\"]\",\"placeholders\":"
                            "[{\"credential\":\"demo\",\"value\":\"%127[^\"]\"}]}",
                            token, placeholder),
                     2);
}

/* ---- egress's part ---- */

struct lease_ask {
    const char *sandbox, *credential, *host;
    uint16_t port;
    const char *placeholder;
    uint32_t generation; /* 0: the one in use */
};

static struct got *ask_lease(struct world *w, size_t lane, const struct lease_ask *a) {
    uint8_t fingerprint[DIGEST_SIZE];
    struct buf b;
    size_t before = w->lane[lane].n;
    buf_init(&b, 1024);
    buf_put_block(&b, view_str(a->sandbox));
    buf_put_block(&b, view_str(a->credential));
    buf_put_block(&b, view_str(a->host));
    buf_put_u16(&b, a->port);
    digest_sha256(view_str(a->placeholder), fingerprint);
    buf_put(&b, view_of(fingerprint, sizeof fingerprint));
    channel_send(w->lane[lane].channel, LEASE_ASK, 7, a->generation ? a->generation : w->generation,
                 buf_view(&b));
    buf_free(&b);
    return await(w, &w->lane[lane], before);
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

static struct got *ask_certificate(struct world *w, size_t lane, const struct lease_ask *a) {
    size_t before = w->lane[lane].n;
    struct buf b;
    buf_init(&b, 1024);
    buf_put_block(&b, view_str(a->sandbox));
    buf_put_block(&b, view_str(a->credential));
    buf_put_block(&b, view_str(a->host));
    buf_put_u16(&b, a->port);
    channel_send(w->lane[lane].channel, LEASE_ASK_CERTIFICATE, 7,
                 a->generation ? a->generation : w->generation, buf_view(&b));
    buf_free(&b);
    return await(w, &w->lane[lane], before);
}

static void assert_not_shown(const struct got *g, enum reason reason, const char *says) {
    struct reader r = reader_of(view_of(g->body, g->n));
    assert_int_equal(g->type, LEASE_CERTIFICATE_REFUSED);
    assert_int_equal(read_u16(&r), reason);
    struct view detail = read_block(&r, LEASE_REFUSED_MAX);
    assert_true(read_done(&r) && view_search(detail, view_str(says)) <= detail.n);
    assert_true(says[0] == 0 || view_search(detail, view_str(says)) < detail.n);
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

/* ---- leases ---- */

static const struct lease_ask right = {"worker", "demo", "api.example.com", 443, NULL, 0};

static void a_lease_is_lent_to_whom_it_was_issued(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    add_all(w, token, placeholder);
    struct lease_ask a = right;
    a.placeholder = placeholder;
    assert_memory_equal(placeholder, "sk-exeat", 8);
    assert_lent(ask_lease(w, 0, &a), 1, value_1);
    assert_true(recorded(w, "lease", "demo"));
}

static void a_lease_is_refused_when_anything_does_not_fit(void **state) {
    struct world *w = *state;
    char token[64], p[128], near[128], other_lane[128];
    struct view text;
    add_all(w, token, p);
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "other", &text), 0);
    char json[1024];
    assert_int_equal(view_cstr(text, json, sizeof json), 0);
    assert_int_equal(sscanf(strstr(json, "\"value\":\""), "\"value\":\"%127[^\"]", other_lane), 1);
    strcpy(near, p);
    near[strlen(near) - 1] ^= 1;
    const struct {
        size_t lane;
        struct lease_ask ask;
        enum reason reason;
    } cases[] = {
        {1, {"worker", "demo", "api.example.com", 443, p, 0}, REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0,
         {"other", "demo", "api.example.com", 443, other_lane, 0},
         REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0,
         {"worker", "demo", "api.example.com", 443, other_lane, 0},
         REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0, {"worker", "demo", "api.example.com", 443, near, 0}, REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0,
         {"worker", "demo", "api.example.com", 443, token, 0},
         REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0, {"worker", "none", "api.example.com", 443, p, 0}, REASON_PLACEHOLDER_WRONG_IDENTITY},
        {0,
         {"worker", "demo", "evil.example.com", 443, p, 0},
         REASON_PLACEHOLDER_WRONG_DESTINATION},
        {0,
         {"worker", "demo", "api.example.com", 8443, p, 0},
         REASON_PLACEHOLDER_WRONG_DESTINATION},
        {0, {"worker", "demo", "api.example.com", 443, p, 1000}, REASON_NOT_READY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        recorded(w, "", "");
        assert_refused(ask_lease(w, cases[i].lane, &cases[i].ask), cases[i].reason);
        assert_true(recorded(w, reason_info(cases[i].reason)->code, cases[i].ask.credential));
    }
    assert_lent(
        ask_lease(w, 1,
                  &(struct lease_ask){"other", "demo", "api.example.com", 443, other_lane, 0}),
        1, value_1);
}

static void ph_13_rotation_recalls_leases_and_the_next_is_new(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    struct view text;
    add_all(w, token, placeholder);
    struct lease_ask a = right;
    a.placeholder = placeholder;
    assert_lent(ask_lease(w, 0, &a), 1, value_1);
    assert_int_equal(give(w, BROKER_SECRET_ROTATE, "demo", value_2, &text), 0);
    assert_true(view_equal(text, VIEW("{\"name\":\"demo\",\"version\":2}")));
    settle(w);
    for (size_t i = 0; i < 2; i++)
        assert_non_null(last_of(&w->lane[i], LEASE_DROP));
    assert_lent(ask_lease(w, 0, &a), 2, value_2);
}

static void ph_13_removal_ends_the_placeholders(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    struct view text;
    add_all(w, token, placeholder);
    struct lease_ask a = right;
    a.placeholder = placeholder;
    assert_int_equal(ask(w, BROKER_SECRET_REMOVE, "demo", &text), 0);
    assert_non_null(last_of(&w->lane[0], LEASE_DROP));
    assert_refused(ask_lease(w, 0, &a), REASON_PLACEHOLDER_WRONG_IDENTITY);
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_2, &text), 0);
    assert_refused(ask_lease(w, 0, &a), REASON_PLACEHOLDER_WRONG_IDENTITY);
}

static void issuing_again_ends_what_was_issued_before(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    struct view text;
    add_all(w, token, placeholder);
    struct lease_ask a = right;
    a.placeholder = placeholder;
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "worker", &text), 0);
    assert_refused(ask_lease(w, 0, &a), REASON_PLACEHOLDER_WRONG_IDENTITY);
}

static void nothing_is_lent_without_an_audit_record(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    struct view text;
    add_all(w, token, placeholder);
    struct lease_ask a = right;
    a.placeholder = placeholder;
    shutdown(w->audit, SHUT_RDWR);
    assert_refused(ask_lease(w, 0, &a), REASON_AUDIT_UNAVAILABLE);
    assert_int_equal(give(w, BROKER_SECRET_ROTATE, "demo", value_2, &text), ERR_SYSTEM);
    assert_int_equal(ask(w, BROKER_SECRET_REMOVE, "demo", &text), ERR_SYSTEM);
    assert_int_equal(ask(w, BROKER_SECRET_LIST, NULL, &text), 0);
    assert_true(view_search(text, VIEW("\"version\":1")) < text.n);
}

static void a_lane_that_breaks_the_contract_is_dropped_alone(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    add_all(w, token, placeholder);
    channel_send(w->lane[1].channel, LEASE_ASK, 1, w->generation, VIEW("nonsense"));
    settle(w);
    settle(w);
    assert_true(w->lane[1].closed);
    struct got *bad = last_of(&w->parent, ROLE_BAD_PEER);
    assert_non_null(bad);
    assert_int_equal(bad->body[0], ROLE_EGRESS);
    assert_int_equal(bad->body[4], 2);
    struct lease_ask a = right;
    a.placeholder = placeholder;
    assert_lent(ask_lease(w, 0, &a), 1, value_1);
}

/* ---- the operator's requests ---- */

static void ph_05_values_are_checked_before_they_are_kept(void **state) {
    static const struct {
        const char *value;
        int result;
    } cases[] = {
        {"0123456789abcdef\n", 0},
        {"0123456789abcdef\n\n", ERR_BAD},
        {"0123456789abcdef\r\n", ERR_BAD},
        {"0123456789 abcdef", ERR_BAD},
        {"0123456789abcde", ERR_BAD},
        {"", ERR_BAD},
        {"\n", ERR_BAD},
        {"0123456789\r\nX: abcdef", ERR_BAD},
    };
    struct world *w = *state;
    struct view text;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(give(w, BROKER_SECRET_ADD, "key", cases[i].value, &text), cases[i].result);
        if (cases[i].result == 0)
            assert_int_equal(ask(w, BROKER_SECRET_REMOVE, "key", &text), 0);
        w->control.n = w->parent.n = 1;
    }
}

static void ph_05_too_long_a_value_is_refused(void **state) {
    static char longest[SECRET_MAX + 3];
    struct world *w = *state;
    struct view text;
    memset(longest, 'x', SECRET_MAX + 2);
    assert_int_equal(give(w, BROKER_SECRET_ADD, "key", longest, &text), ERR_LIMIT);
    longest[SECRET_MAX + 1] = 0;
    assert_int_equal(give(w, BROKER_SECRET_ADD, "key", longest, &text), ERR_BAD);
    longest[SECRET_MAX] = '\n';
    assert_int_equal(give(w, BROKER_SECRET_ADD, "key", longest, &text), 0);
}

static void short_values_need_a_word(void **state) {
    struct world *w = *state;
    struct view text;
    struct ask a = {BROKER_SECRET_ADD, "pin", "", true, NULL};
    assert_int_equal(ask_fd(w, &a, memory_file(VIEW("1234")), &text), 0);
}

static void a_request_that_cannot_be_is_refused_with_a_sentence(void **state) {
    static const struct {
        uint16_t type;
        const char *name, *value;
        int result;
        const char *says;
    } cases[] = {
        {BROKER_SECRET_ADD, "demo", value_1, ERR_EXISTS, "rotate"},
        {BROKER_SECRET_ADD, "DEMO", value_1, ERR_EXISTS, "case"},
        {BROKER_SECRET_ADD, "no good", value_1, ERR_BAD, "letters"},
        {BROKER_SECRET_ADD, "", value_1, ERR_BAD, "letters"},
        {BROKER_SECRET_ROTATE, "none", value_1, ERR_MISSING, "no secret"},
        {BROKER_SECRET_REMOVE, "none", NULL, ERR_MISSING, "no secret"},
        {BROKER_SANDBOX_ADD, "nobody", NULL, ERR_MISSING, "declare"},
        {BROKER_SANDBOX_REMOVE, "worker", NULL, ERR_MISSING, "nothing was issued"},
    };
    struct world *w = *state;
    struct view text;
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_1, &text), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int result = cases[i].value ? give(w, cases[i].type, cases[i].name, cases[i].value, &text)
                                    : ask(w, cases[i].type, cases[i].name, &text);
        assert_int_equal(result, cases[i].result);
        assert_true(view_search(text, view_str(cases[i].says)) < text.n);
    }
    struct ask like = {BROKER_SECRET_ADD, "more", "sk ant", false, NULL};
    assert_int_equal(ask_fd(w, &like, memory_file(view_str(value_1)), &text), ERR_BAD);
}

static void a_credential_without_a_secret_is_an_error_that_names_it(void **state) {
    struct world *w = *state;
    struct view text;
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "worker", &text), ERR_MISSING);
    assert_true(view_search(text, VIEW("exeat secret add demo")) < text.n);
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "idle", &text), 0);
}

static void adding_a_sandbox_is_answered_only_when_it_is_in_use(void **state) {
    struct world *w = *state;
    struct view text;
    size_t before = w->control.n;
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_1, &text), 0);
    before = w->control.n;
    send_ask(w, &(struct ask){BROKER_SANDBOX_ADD, "worker", "", false, NULL}, -1);
    settle(w);
    settle(w);
    assert_int_equal(w->control.n, before);
    struct got *r = last_of(&w->parent, ROLE_REGISTRY);
    assert_true(registry_of(r).n > 0);
    /* A generation with another registry is not the one. */
    struct got stale = *r;
    r->n = 4;
    memset(r->body, 0, 4);
    send_generation(w);
    settle(w);
    assert_int_equal(w->control.n, before);
    *r = stale;
    send_generation(w);
    settle(w);
    assert_int_equal(w->control.n, before + 1);
    assert_int_equal(done(&w->control.got[before], &text), 0);
    assert_true(view_starts(text, VIEW("{\"name\":\"worker\",\"token\":\"ext_")));
}

static void what_is_there_is_listed_without_values(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    struct view text;
    add_all(w, token, placeholder);
    assert_int_equal(ask(w, BROKER_SECRET_LIST, NULL, &text), 0);
    assert_true(view_starts(text, VIEW("[{\"name\":\"demo\",\"like\":\"sk-\",\"version\":1,")));
    assert_int_equal(ask(w, BROKER_SANDBOX_LIST, NULL, &text), 0);
    static const char *const parts[] = {
        "{\"name\":\"worker\",\"declared\":true,\"registered\":true,\"issued\":[\"demo\"],\"not_"
        "issued\":[]}",
        "{\"name\":\"other\",\"declared\":true,\"registered\":false,\"issued\":[],\"not_issued\":["
        "\"demo\"]}",
        "{\"name\":\"idle\",\"declared\":true,\"registered\":false,\"issued\":[],\"not_issued\":[]"
        "}",
    };
    for (size_t i = 0; i < 3; i++)
        assert_true(view_search(text, view_str(parts[i])) < text.n);
}

static void each_request_leaves_a_record(void **state) {
    struct world *w = *state;
    struct view text;
    assert_int_equal(give(w, BROKER_SECRET_ADD, "demo", value_1, &text), 0);
    assert_true(recorded(w, "secret_added", "demo"));
    assert_int_equal(give(w, BROKER_SECRET_ROTATE, "demo", value_1, &text), 0);
    assert_true(recorded(w, "secret_rotated", "demo"));
    assert_int_equal(ask(w, BROKER_SANDBOX_ADD, "worker", &text), 0);
    assert_true(recorded(w, "sandbox_added", ""));
    assert_int_equal(ask(w, BROKER_SANDBOX_REMOVE, "worker", &text), 0);
    assert_true(recorded(w, "sandbox_removed", ""));
    assert_int_equal(ask(w, BROKER_SECRET_REMOVE, "demo", &text), 0);
    assert_true(recorded(w, "secret_removed", "demo"));
    assert_int_equal(give(w, BROKER_SECRET_ROTATE, "demo", value_1, &text), ERR_MISSING);
    assert_false(recorded(w, "secret_rotated", "demo"));
}

static void a_slow_pipe_does_not_stall_the_broker(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    struct view text;
    int fds[2];
    add_all(w, token, placeholder);
    assert_int_equal(pipe(fds), 0);
    size_t before = w->control.n;
    send_ask(w, &(struct ask){BROKER_SECRET_ADD, "slow", "", false, NULL}, fds[0]);
    assert_int_equal(write(fds[1], "0123456789", 10), 10);
    settle(w);
    struct lease_ask a = right;
    a.placeholder = placeholder;
    assert_lent(ask_lease(w, 0, &a), 1, value_1);
    assert_int_equal(write(fds[1], "abcdefghij", 10), 10);
    settle(w);
    assert_int_equal(w->control.n, before);
    close(fds[1]);
    assert_int_equal(done(await(w, &w->control, before), &text), 0);
}

static void a_cancelled_request_reads_no_more(void **state) {
    struct world *w = *state;
    struct view text;
    int fds[2];
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    uint32_t id = send_ask(w, &(struct ask){BROKER_SECRET_ADD, "slow", "", false, NULL}, fds[0]);
    settle(w);
    channel_send(w->control.channel, BROKER_CANCEL, id, 0, VIEW(""));
    settle(w);
    settle(w);
    assert_int_equal(write(fds[1], "x", 1), -1);
    close(fds[1]);
    assert_int_equal(ask(w, BROKER_SECRET_LIST, NULL, &text), 0);
    assert_true(view_equal(text, VIEW("[]")));
}

/* ---- the vault as a whole ---- */

static int backup(struct world *w) {
    struct view text;
    int fd = memfd_create("copy", MFD_CLOEXEC), given = dup(fd);
    assert_int_equal(
        ask_fd(w, &(struct ask){BROKER_VAULT_BACKUP, NULL, "", false, NULL}, given, &text), 0);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void a_backup_brings_a_secret_back(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    struct view text;
    add_all(w, token, placeholder);
    int copy = backup(w);
    assert_int_equal(give(w, BROKER_SECRET_ROTATE, "demo", value_2, &text), 0);
    assert_int_equal(ask(w, BROKER_SANDBOX_REMOVE, "worker", &text), 0);
    assert_int_equal(
        ask_fd(w, &(struct ask){BROKER_VAULT_RESTORE, NULL, "", false, NULL}, copy, &text), 0);
    assert_true(recorded(w, "vault_restored", ""));
    assert_true(view_search(text, VIEW("\"sandboxes_back\":[\"worker\"]")) < text.n);
    assert_true(view_search(text, VIEW("\"secrets_back\":[\"demo\"]")) < text.n);
    struct lease_ask a = right;
    a.placeholder = placeholder;
    assert_lent(ask_lease(w, 0, &a), 1, value_1);
}

static void a_bad_copy_is_refused_and_nothing_changes(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    struct view text;
    add_all(w, token, placeholder);
    assert_int_not_equal(ask_fd(w, &(struct ask){BROKER_VAULT_RESTORE, NULL, "", false, NULL},
                                memory_file(VIEW("no copy")), &text),
                         0);
    assert_true(recorded(w, "vault_failed", ""));
    struct lease_ask a = right;
    a.placeholder = placeholder;
    assert_lent(ask_lease(w, 0, &a), 1, value_1);
}

static void a_rekeyed_vault_opens_with_the_new_key_after_a_restart(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128];
    struct view text;
    add_all(w, token, placeholder);
    struct ask rekey = {BROKER_VAULT_REKEY, NULL, "", false, NULL};
    assert_int_equal(ask_fd(w, &rekey, memory_file(VIEW("short")), &text), ERR_BAD);
    assert_int_equal(ask_fd(w, &rekey, memory_file(VIEW(KEY_B)), &text), 0);
    stop(w);
    start(w, VIEW(KEY_B));
    struct lease_ask a = right;
    a.placeholder = placeholder;
    assert_lent(ask_lease(w, 0, &a), 1, value_1);
}

static void ad_06_a_vault_that_cannot_be_opened_is_locked_and_says_why(void **state) {
    static const struct {
        const char *key, *says;
    } cases[] = {
        {KEY_B, "another key"},
        {"", "exeat vault init"},
        {"zz", "64 hexadecimal digits"},
        {KEY_A "more", "64 hexadecimal digits"},
    };
    struct world *w = *state;
    char token[64], placeholder[128];
    struct view text;
    add_all(w, token, placeholder);
    struct lease_ask a = right;
    a.placeholder = placeholder;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stop(w);
        start(w, view_str(cases[i].key));
        struct view registry = registry_of(last_of(&w->parent, ROLE_REGISTRY));
        struct registry_entry only;
        assert_true(registry_next(&registry, &only) && only.kind == REGISTRY_LOCKED);
        assert_int_equal(registry.n, 0);
        assert_refused(ask_lease(w, 0, &a), REASON_BROKER_UNAVAILABLE);
        assert_int_equal(ask(w, BROKER_SECRET_LIST, NULL, &text), ERR_DENIED);
        assert_true(view_search(text, view_str(cases[i].says)) < text.n);
        struct got *g = settle(w);
        struct view status = view_of(g->body, g->n);
        assert_true(view_search(status, VIEW("\"vault\":\"locked\"")) < status.n);
        assert_true(view_search(status, view_str(cases[i].says)) < status.n);
    }
    stop(w);
    start(w, VIEW(KEY_A));
    assert_lent(ask_lease(w, 0, &a), 1, value_1);
}

static void ad_06_a_locked_vault_is_mended_by_a_copy(void **state) {
    struct world *w = *state;
    char token[64], placeholder[128], path[128];
    struct view text;
    add_all(w, token, placeholder);
    int copy = backup(w);
    stop(w);
    snprintf(path, sizeof path, "%s/vault.db", w->directory);
    assert_int_equal(truncate(path, 5000), 0);
    start(w, VIEW(KEY_A));
    struct lease_ask a = right;
    a.placeholder = placeholder;
    assert_refused(ask_lease(w, 0, &a), REASON_BROKER_UNAVAILABLE);
    assert_int_equal(
        ask_fd(w, &(struct ask){BROKER_VAULT_RESTORE, NULL, "", false, NULL}, copy, &text), 0);
    assert_lent(ask_lease(w, 0, &a), 1, value_1);
}

static void control_that_breaks_the_contract_is_dropped_and_may_come_again(void **state) {
    struct world *w = *state;
    struct view text;
    channel_send(w->control.channel, BROKER_SECRET_REMOVE, 1, 0, VIEW("xy"));
    settle(w);
    settle(w);
    assert_true(w->control.closed);
    assert_non_null(last_of(&w->parent, ROLE_BAD_PEER));
    channel_free(w->control.channel);
    connect_peer(w, &w->control, ROLE_CONTROL, 0);
    assert_int_equal(ask(w, BROKER_SECRET_LIST, NULL, &text), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void a_client_certificate_is_lent_where_its_service_shows_it_only(void **state) {
    static const struct {
        size_t lane;
        struct lease_ask ask;
        enum reason reason;
        const char *says;
    } cases[] = {
        {0,
         {"other", "us", "shown.example.com", 443, NULL, 0},
         REASON_CERTIFICATE_UNAVAILABLE,
         "policy"},
        {1,
         {"worker", "us", "shown.example.com", 443, NULL, 0},
         REASON_CERTIFICATE_UNAVAILABLE,
         "policy"},
        {1,
         {"other", "us", "shown.example.com", 443, NULL, 0},
         REASON_CERTIFICATE_UNAVAILABLE,
         "policy"},
        {0,
         {"worker", "us", "api.example.com", 443, NULL, 0},
         REASON_CERTIFICATE_UNAVAILABLE,
         "policy"},
        {0,
         {"worker", "us", "shown.example.com", 8443, NULL, 0},
         REASON_CERTIFICATE_UNAVAILABLE,
         "policy"},
        {0,
         {"worker", "demo", "shown.example.com", 443, NULL, 0},
         REASON_CERTIFICATE_UNAVAILABLE,
         "policy"},
        {0, {"worker", "us", "shown.example.com", 443, NULL, 99}, REASON_NOT_READY, ""},
    };
    static const struct lease_ask shown = {"worker", "us", "shown.example.com", 443, NULL, 0};
    struct world *w = *state;
    struct certificate t = certificate_make(&(struct wish){.cn = "us", .eku = "clientAuth"});
    struct buf pem, key;
    char token[64], placeholder[128], chain[4096], text_key[1024];
    struct view text;
    add_all(w, token, placeholder);
    buf_init(&pem, 4096);
    put_pem(&pem, &t);
    assert_int_equal(view_cstr(buf_view(&pem), chain, sizeof chain), 0);
    buf_init(&key, 1024);
    put_key(&key, &t);
    assert_int_equal(view_cstr(buf_view(&key), text_key, sizeof text_key), 0);
    assert_not_shown(ask_certificate(w, 0, &shown), REASON_CERTIFICATE_UNAVAILABLE,
                     "no client certificate of that name");
    struct ask add = {BROKER_SECRET_ADD, "us", "", false, chain};
    assert_int_equal(ask_fd(w, &add, memory_file(view_str(text_key)), &text), 0);
    const struct got *g = ask_certificate(w, 0, &shown);
    struct reader r = reader_of(view_of(g->body, g->n));
    assert_int_equal(g->type, LEASE_CERTIFICATE);
    read_bytes(&r, DIGEST_SIZE);
    assert_true(read_block(&r, CERTIFICATE_CHAIN_MAX).n > 0);
    assert_int_equal(read_block(&r, CLIENT_KEY_DIGITS).n, 64);
    assert_true(read_done(&r));
    assert_true(recorded(w, "certificate_lent", "us"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_not_shown(ask_certificate(w, cases[i].lane, &cases[i].ask), cases[i].reason,
                         cases[i].says);
    /* It is never lent as what goes into a request. */
    struct lease_ask as_secret = {"worker", "us", "shown.example.com", 443, placeholder, 0};
    assert_refused(ask_lease(w, 0, &as_secret), REASON_PLACEHOLDER_WRONG_IDENTITY);
    certificate_free(&t);
    buf_free(&pem);
    buf_free(&key);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_lease_is_lent_to_whom_it_was_issued),
        TEST(a_client_certificate_is_lent_where_its_service_shows_it_only),
        TEST(a_lease_is_refused_when_anything_does_not_fit),
        TEST(ph_13_rotation_recalls_leases_and_the_next_is_new),
        TEST(ph_13_removal_ends_the_placeholders),
        TEST(issuing_again_ends_what_was_issued_before),
        TEST(nothing_is_lent_without_an_audit_record),
        TEST(a_lane_that_breaks_the_contract_is_dropped_alone),
        TEST(ph_05_values_are_checked_before_they_are_kept),
        TEST(ph_05_too_long_a_value_is_refused),
        TEST(short_values_need_a_word),
        TEST(a_request_that_cannot_be_is_refused_with_a_sentence),
        TEST(a_credential_without_a_secret_is_an_error_that_names_it),
        TEST(adding_a_sandbox_is_answered_only_when_it_is_in_use),
        TEST(what_is_there_is_listed_without_values),
        TEST(each_request_leaves_a_record),
        TEST(a_slow_pipe_does_not_stall_the_broker),
        TEST(a_cancelled_request_reads_no_more),
        TEST(a_backup_brings_a_secret_back),
        TEST(a_bad_copy_is_refused_and_nothing_changes),
        TEST(a_rekeyed_vault_opens_with_the_new_key_after_a_restart),
        TEST(ad_06_a_vault_that_cannot_be_opened_is_locked_and_says_why),
        TEST(ad_06_a_locked_vault_is_mended_by_a_copy),
        TEST(control_that_breaks_the_contract_is_dropped_and_may_come_again),
    };
    umask(077);
    log_open("broker", getenv("LOUD") ? LOG_DEBUG : LOG_FATAL);
    if (client_key_start() != 0 || secret_arena_open(4 << 20) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

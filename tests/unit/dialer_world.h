/*
 * The dialer's work without its process: a lane's egress is the other end of a
 * socket pair, audit the reading end of another; DNS and the upstream are on loopback.
 */
#ifndef TESTS_UNIT_DIALER_WORLD_H
#define TESTS_UNIT_DIALER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/dialer_messages.h"
#include "egress/dials.h"
#include "tests/unit/dns_server.h"

enum { ANSWERS_MAX = 64, TEXT_SIZE = 65536 };

struct answer {
    bool refused;
    uint32_t id, generation;
    int fd;
    enum reason reason;
    char detail[512], address[64], aliases[2100];
};

struct lane {
    struct channel *channel;
    struct answer answers[ANSWERS_MAX];
    size_t n;
    bool answered, closed;
};

struct world {
    struct loop *loop;
    struct resolver *resolver;
    struct interfaces *interfaces;
    struct dns_server dns;
    struct dials *dials;
    struct lane lanes[2];
    int audit, upstream;
    uint16_t port, own_port;
    char policy[2048];
    struct buf texts[4];
    struct bundle bundle;
    struct buf lane_list, hosts, own;
    unsigned bad_peers;
    char asked[512]; /* names of A questions, in order */
};

/* ---- the lane's end ---- */

static void take_text(struct reader *r, char *out, size_t size) {
    assert_int_equal(view_cstr(read_block(r, size - 1), out, size), 0);
}

static int take_done(void *ctx, struct channel *ch, struct message *m) {
    struct lane *l = ctx;
    struct reader r = reader_of(m->body);
    struct answer *a = &l->answers[l->n++];
    char country[8], asn[16];
    (void)ch;
    *a = (struct answer){.id = m->id, .generation = m->generation, .fd = m->fd};
    m->fd = -1;
    take_text(&r, a->address, sizeof a->address);
    take_text(&r, a->aliases, sizeof a->aliases);
    take_text(&r, country, sizeof country);
    take_text(&r, asn, sizeof asn);
    assert_true(read_done(&r));
    l->answered = true;
    return 0;
}

static int take_refused(void *ctx, struct channel *ch, struct message *m) {
    struct lane *l = ctx;
    struct reader r = reader_of(m->body);
    struct answer *a = &l->answers[l->n++];
    (void)ch;
    *a = (struct answer){.refused = true, .id = m->id, .generation = m->generation, .fd = -1};
    a->reason = (enum reason)read_u16(&r);
    take_text(&r, a->detail, sizeof a->detail);
    take_text(&r, a->address, sizeof a->address);
    take_text(&r, a->aliases, sizeof a->aliases);
    assert_true(read_done(&r));
    l->answered = true;
    return 0;
}

static const struct channel_rule lane_rules[] = {
    {DIAL_DONE, CHANNEL_FD, 2 * DIALER_FACTS_MAX, take_done, "dial done"},
    {DIAL_REFUSED, 0, 2 * DIALER_FACTS_MAX, take_refused, "dial refused"},
};

static void on_closed(void *ctx, struct channel *ch, int why) {
    struct lane *l = ctx;
    (void)why;
    channel_free(ch);
    l->channel = NULL;
    l->closed = true;
}

static void open_lane(struct world *w, uint32_t id) {
    struct lane *l = &w->lanes[id - 1];
    int fds[2];
    *l = (struct lane){.n = 0};
    assert_int_equal(channel_pair(fds), 0);
    l->channel = channel_new(w->loop, fds[0], lane_rules, 2, 0, on_closed, l);
    assert_int_equal(dials_peer(w->dials, id, fds[1]), 0);
}

/* ---- the world ---- */

static int listen_on_loopback(uint16_t *port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void add_lane(struct world *w, uint32_t id, const char *names) {
    struct lane_info info = {.id = id, .shared = strchr(names, ' '), .names = view_str(names)};
    bundle_put_lane(&w->lane_list, &info);
    w->bundle.lanes = buf_view(&w->lane_list);
}

static void fill_bundle(struct world *w) {
    struct bundle *b = &w->bundle;
    char own[64];
    limits_default(&b->limits);
    b->limits.v[LIMIT_DNS_TIME] = b->limits.v[LIMIT_CONNECT_TIME] = 1;
    b->policy_file = VIEW("policy");
    b->policy_text = view_str(w->policy);
    buf_init(&w->lane_list, 1024);
    add_lane(w, 1, "a");
    add_lane(w, 2, "b c d");
    b->resolvers[0] = (struct address){4, {127, 0, 0, 1}};
    b->resolver_ports[0] = w->dns.port;
    b->n_resolvers = 1;
    snprintf(own, sizeof own, "127.0.0.1:%u", w->own_port);
    buf_init(&w->own, 1024);
    buf_put_block(&w->own, view_str(own));
    b->own_addresses = buf_view(&w->own);
    buf_init(&w->hosts, 1024);
}

/* Each text stays mapped, as the parent's do. */
static int prepare(struct world *w, uint32_t generation) {
    struct buf *text = &w->texts[generation];
    buf_init(text, TEXT_SIZE);
    bundle_write(&w->bundle, text);
    assert_true(buf_ok(text));
    return dials_generation(w->dials, generation, buf_view(text));
}

static void use_generation(struct world *w, uint32_t generation) {
    assert_int_equal(prepare(w, generation), 0);
    dials_commit(w->dials, generation);
}

static void on_bad_peer(void *ctx, uint32_t lane) {
    struct world *w = ctx;
    assert_int_equal(lane, 1);
    w->bad_peers++;
}

static void write_policy(struct world *w, const char *rest) {
    snprintf(w->policy, sizeof w->policy,
             "service api {\n"
             " host *.allowed.test \n port %u %u\n"
             " range 127.0.0.0/8\n"
             " operation everything { * /**; * / }\n"
             "}\n"
             "service strict {\n"
             " host *.strict.test\n port %u\n"
             " operation everything { * /**; * / }\n"
             "}\n"
             "service literal {\n"
             " host 127.0.0.1 [::1]\n port %u %u\n"
             " range 127.0.0.0/8 ::1/128\n"
             " operation everything { * /**; * / }\n"
             "}\n"
             "sandbox a {\n grant api everything\n grant strict everything\n grant literal "
             "everything\n}\n"
             "sandbox b {\n grant api everything\n}\n"
             "sandbox c {\n}\n"
             "sandbox d {\n grant api everything\n grant literal everything\n}\n%s",
             w->port, w->own_port, w->port, w->port, w->own_port, rest);
    w->bundle.policy_text = view_str(w->policy);
}

static void world_prepare(struct world *w, dns_script *script, size_t lane_max, size_t active_max) {
    int fds[2];
    *w = (struct world){.bad_peers = 0};
    w->loop = loop_new();
    w->resolver = resolver_new(w->loop, 64);
    w->interfaces = interfaces_new(w->loop);
    dns_server_start(&w->dns, w->loop, script, w);
    w->upstream = listen_on_loopback(&w->port);
    int unused = listen_on_loopback(&w->own_port);
    close(unused);
    struct dials_options o = {.loop = w->loop,
                              .resolver = w->resolver,
                              .interfaces = w->interfaces,
                              .lane_max = lane_max,
                              .active_max = active_max,
                              .bad_peer = on_bad_peer,
                              .ctx = w};
    w->dials = dials_new(&o);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(dials_audit(w->dials, fds[0]), 0);
    w->audit = fds[1];
    fcntl(w->audit, F_SETFL, O_NONBLOCK);
    write_policy(w, "");
    fill_bundle(w);
    open_lane(w, 1);
    open_lane(w, 2);
}

static void world_open(struct world *w, dns_script *script) {
    world_prepare(w, script, 8, 8);
    use_generation(w, 1);
}

static void world_close(struct world *w) {
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < w->lanes[i].n; k++)
            if (w->lanes[i].answers[k].fd >= 0)
                close(w->lanes[i].answers[k].fd);
        channel_free(w->lanes[i].channel);
    }
    dials_free(w->dials);
    resolver_free(w->resolver);
    interfaces_free(w->interfaces);
    dns_server_stop(&w->dns);
    for (size_t i = 0; i < 4; i++)
        buf_free(&w->texts[i]);
    buf_free(&w->lane_list);
    buf_free(&w->hosts);
    buf_free(&w->own);
    close(w->upstream);
    if (w->audit >= 0)
        close(w->audit);
    loop_free(w->loop);
}

static void send_ask(struct world *w, uint32_t lane, uint32_t id, uint32_t generation,
                     const char *sandbox, bool tls, const char *host, uint16_t port) {
    struct channel *ch = w->lanes[lane - 1].channel;
    struct buf *b = channel_begin(ch, DIAL_ASK, id, generation);
    buf_put_block(b, view_str(sandbox));
    buf_put_u8(b, tls);
    buf_put_block(b, view_str(host));
    buf_put_u16(b, port);
    channel_end(ch);
}

/* Waits for the lane's next answer. */
static struct answer *answer(struct world *w, uint32_t lane, unsigned ms) {
    struct lane *l = &w->lanes[lane - 1];
    size_t had = l->n;
    l->answered = false;
    assert_true(turn_until(w->loop, &l->answered, ms));
    return &l->answers[had];
}

static struct answer *ask(struct world *w, const char *host) {
    static uint32_t id = 100;
    send_ask(w, 1, ++id, 1, "a", true, host, w->port);
    struct answer *a = answer(w, 1, 4000);
    assert_int_equal(a->id, id);
    return a;
}

static bool upstream_was_reached(struct world *w) {
    int fd = accept(w->upstream, NULL, NULL);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* The next audit record; NULL when there is none. Views point into static memory. */
static const struct record_facts *next_record(struct world *w) {
    static uint8_t packet[RECORD_SIZE + 256];
    static struct record_facts r;
    ssize_t n = recv(w->audit, packet, sizeof packet, MSG_DONTWAIT);
    if (n <= 0)
        return NULL;
    assert_int_equal(record_read(view_of(packet, (size_t)n), &r), 0);
    return &r;
}

__attribute__((unused)) static void assert_text(const struct record_facts *r, enum record_field f,
                                                const char *text) {
    if (!view_equal(r->text[f], view_str(text)))
        fail_msg("%s is %.*s, not %s", record_field_name(f), VIEW_ARG(r->text[f]), text);
}

static void assert_refused(const struct answer *a, enum reason reason) {
    if (!a->refused || a->reason != reason)
        fail_msg("%s, not %s (%s)", a->refused ? reason_info(a->reason)->code : "connected",
                 reason_info(reason)->code, a->detail);
}

/* ---- scripts ---- */

static void note_question(struct dns_server *s, const struct dns_query *q) {
    struct world *w = s->ctx;
    size_t n = strlen(w->asked);
    if (q->type == Q_A)
        snprintf(w->asked + n, sizeof w->asked - n, "%s ", q->name);
}

/* No address of this family. */
static void dns_rest(struct dns_server *s, const struct dns_query *q, struct buf *out) {
    (void)s;
    put_head(out, q, 0, 0);
}

static void dns_loopback(struct dns_server *s, const struct dns_query *q, struct buf *out) {
    note_question(s, q);
    if (q->type != Q_A) {
        dns_rest(s, q, out);
        return;
    }
    put_head(out, q, 0, 1);
    put_address(out, q->name, "127.0.0.1");
}

static void dns_silence(struct dns_server *s, const struct dns_query *q, struct buf *out) {
    (void)out;
    note_question(s, q);
}

#endif

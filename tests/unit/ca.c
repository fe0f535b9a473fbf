#include "tests/unit/parent_part.h"

#include "audit/record.h"
#include "base/log.h"
#include "ca/ca.h"
#include "ca/ca_messages.h"
#include "ca/mint.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* ca in a forked child, this test as its parent, egress and audit; everything but the narrowing of rights. */

static const char policy[] = "service web {\n"
                             "    host api.example.com under_score.example.com 9.9.9.9\n"
                             "    host [2620:fe::fe]\n"
                             "    operation any { * /** }\n"
                             "}\n"
                             "service other {\n"
                             "    host other.example.com\n"
                             "    port 8443\n"
                             "    operation any { * /** }\n"
                             "}\n"
                             "service unread { host spliced.example.com; tls splice }\n"
                             "sandbox one { grant web all; grant unread all }\n"
                             "sandbox two { grant other all }\n"
                             "sandbox three { grant other all }\n";

struct answer {
    bool seen;
    uint16_t type;
    uint32_t id, generation;
    uint16_t reason;
    uint8_t leaf[CA_CERT_MAX];
    size_t leaf_size;
    uint64_t not_after;
};

struct world {
    pid_t child;
    struct loop *loop;
    struct channel *channel, *egress[4];
    bool up, ready, refused, gone, egress_gone;
    unsigned bad_peers;
    int audit; /* the reading end */
    struct buf key, certificate;
    EVP_PKEY *lane_key;
    struct buf spki;
    struct answer answer;
};

/* ---- ca's parent ---- */

static int on_up(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    (void)ch;
    (void)m;
    w->up = true;
    return 0;
}

static int on_ready(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    (void)ch;
    (void)m;
    w->ready = true;
    return 0;
}

static int on_refused(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    (void)ch;
    (void)m;
    w->refused = true;
    return 0;
}

static int on_bad_peer(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    (void)ch;
    (void)m;
    w->bad_peers++;
    return 0;
}

static void on_closed(void *ctx, struct channel *ch, int why) {
    struct world *w = ctx;
    (void)why;
    if (ch == w->channel)
        w->gone = true;
    else
        w->egress_gone = true;
}

static int on_committed(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    (void)ch;
    (void)m;
    return 0;
}

static const struct channel_rule parent_rules[] = {
    {ROLE_UP, 0, 1024, on_up, "up"},
    {ROLE_READY, 0, 16, on_ready, "ready"},
    {ROLE_REFUSED, 0, 1024, on_refused, "refused"},
    {ROLE_COMMITTED, 0, 0, on_committed, "committed"},
    {ROLE_BAD_PEER, 0, 16, on_bad_peer, "bad peer"},
};

/* ---- a lane's egress ---- */

static int on_leaf(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    struct view leaf = read_block(&r, CA_CERT_MAX), chain = read_block(&r, CA_CERT_MAX);
    w->answer = (struct answer){.seen = true, .type = CA_LEAF, .id = m->id};
    w->answer.generation = m->generation;
    w->answer.not_after = read_u64(&r);
    assert_true(read_done(&r));
    assert_int_equal(chain.n, 0);
    memcpy(w->answer.leaf, leaf.p, leaf.n);
    w->answer.leaf_size = leaf.n;
    return 0;
}

static int on_no_leaf(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    w->answer = (struct answer){.seen = true, .type = CA_REFUSED, .id = m->id};
    w->answer.generation = m->generation;
    w->answer.reason = read_u16(&r);
    assert_true(read_done(&r));
    return 0;
}

static const struct channel_rule egress_rules[] = {
    {CA_LEAF, 0, 2 * CA_CERT_MAX + 64, on_leaf, "leaf"},
    {CA_REFUSED, 0, 16, on_no_leaf, "refused"},
};

/* ---- the world ---- */

static void world_init(struct world *w, struct mint_validity validity) {
    static const uint8_t serial[MINT_SERIAL_SIZE] = {1};
    uint8_t *der = NULL;
    *w = (struct world){.audit = -1};
    w->loop = loop_new();
    buf_init(&w->key, MINT_PEM_MAX);
    buf_init(&w->certificate, MINT_PEM_MAX);
    buf_init(&w->spki, 1024);
    assert_int_equal(mint_key(&w->key), 0);
    assert_int_equal(mint_root(buf_view(&w->key), "test CA", validity, serial, &w->certificate), 0);
    w->lane_key = EVP_EC_gen("P-256");
    int n = i2d_PUBKEY(w->lane_key, &der);
    buf_put(&w->spki, view_of(der, (size_t)n));
    OPENSSL_free(der);
}

static uint64_t now(void) {
    return clock_wall() / 1000000000;
}

static struct mint_validity usual(void) {
    return (struct mint_validity){now() - 3600, now() + 3650 * UINT64_C(86400)};
}

static void send_generation(struct world *w, uint32_t number, const char *text, uint64_t names) {
    struct buf lanes;
    struct bundle b = {.policy_file = VIEW("policy"), .policy_text = view_str(text)};
    struct lane_info one = {1, false, VIEW("one"), false, false},
                     shared = {2, true, VIEW("two three"), false, false};
    limits_default(&b.limits);
    b.limits.v[LIMIT_NEW_NAMES] = names;
    buf_init(&lanes, 4096);
    bundle_put_lane(&lanes, &one);
    bundle_put_lane(&lanes, &shared);
    b.lanes = buf_view(&lanes);
    parent_sends_generation(w->channel, number, &b);
    buf_free(&lanes);
}

static void use_generation(struct world *w, uint32_t number, const char *text, uint64_t names) {
    w->ready = false;
    send_generation(w, number, text, names);
    WAIT_FOR(w->loop, w->ready);
    channel_send(w->channel, PARENT_COMMIT, 0, number, (struct view){NULL, 0});
    parent_turn(w->loop);
}

static void join_egress(struct world *w, uint32_t lane, struct view spki) {
    int fds[2];
    assert_int_equal(channel_pair(fds), 0);
    channel_free(w->egress[lane]);
    w->egress[lane] = channel_new(w->loop, fds[0], egress_rules,
                                  sizeof egress_rules / sizeof *egress_rules, 0, on_closed, w);
    parent_sends_peer(w->channel, ROLE_EGRESS, lane, spki, fds[1]);
    parent_turn(w->loop);
}

static void join_audit(struct world *w) {
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    w->audit = fds[0];
    parent_sends_peer(w->channel, ROLE_AUDIT, 0, VIEW("audit"), fds[1]);
}

static void world_fork(struct world *w) {
    int fds[2];
    assert_int_equal(channel_pair(fds), 0);
    w->child = fork();
    if (w->child == 0) {
        struct role_args args = {.role = ROLE_CA};
        close(fds[0]); /* its parent's end: the end of the parent must show */
        dup2(fds[1], PARENT_FD);
        log_open("ca", LOG_FATAL);
        int quiet = open("/dev/null", O_WRONLY);
        dup2(quiet, STDERR_FILENO);
        _exit(ca_serve(&args));
    }
    close(fds[1]);
    w->channel = channel_new(w->loop, fds[0], parent_rules,
                             sizeof parent_rules / sizeof *parent_rules, 0, on_closed, w);
    WAIT_FOR(w->loop, w->up);
}

/* With key, certificate, audit, generation 1 and the egress of lanes 1 and 2. */
static void world_open(struct world *w, uint64_t names) {
    world_init(w, usual());
    world_fork(w);
    parent_sends_file(w->channel, "ca-key", buf_view(&w->key));
    parent_sends_file(w->channel, "ca-cert", buf_view(&w->certificate));
    join_audit(w);
    join_egress(w, 1, buf_view(&w->spki));
    join_egress(w, 2, buf_view(&w->spki));
    use_generation(w, 1, policy, names);
}

static void world_close(struct world *w) {
    for (size_t i = 0; i < 4; i++)
        channel_free(w->egress[i]);
    channel_free(w->channel);
    waitpid(w->child, NULL, 0);
    if (w->audit >= 0)
        close(w->audit);
    buf_free(&w->key);
    buf_free(&w->certificate);
    buf_free(&w->spki);
    EVP_PKEY_free(w->lane_key);
    loop_free(w->loop);
}

static void ask(struct world *w, uint32_t lane, uint32_t generation, const char *host,
                uint16_t port) {
    struct buf *b = channel_begin(w->egress[lane], CA_ASK_LEAF, 5, generation);
    w->answer.seen = false;
    buf_put_block(b, view_str(host));
    buf_put_u16(b, port);
    channel_end(w->egress[lane]);
}

static const struct answer *answer_to(struct world *w, uint32_t lane, uint32_t generation,
                                      const char *host, uint16_t port) {
    ask(w, lane, generation, host, port);
    WAIT_FOR(w->loop, w->answer.seen);
    assert_int_equal(w->answer.id, 5);
    return &w->answer;
}

static void must_refuse(struct world *w, uint32_t lane, uint32_t generation, const char *host,
                        uint16_t port, enum reason reason) {
    const struct answer *a = answer_to(w, lane, generation, host, port);
    if (a->type != CA_REFUSED || a->reason != reason)
        fail_msg("%s: type %u reason %s", host, a->type, reason_info((enum reason)a->reason)->code);
}

static X509 *leaf_of(const struct answer *a) {
    const uint8_t *p = a->leaf;
    assert_int_equal(a->type, CA_LEAF);
    X509 *x = d2i_X509(NULL, &p, (long)a->leaf_size);
    assert_non_null(x);
    return x;
}

/* The next record that ca wrote; the packet must outlive the facts. */
static bool next_record(struct world *w, uint8_t packet[RECORD_SIZE], struct record_facts *f) {
    ssize_t n = recv(w->audit, packet, RECORD_SIZE, MSG_DONTWAIT);
    if (n <= 0)
        return false;
    assert_int_equal(record_read(view_of(packet, (size_t)n), f), 0);
    return true;
}

/* ---- what is signed ---- */

static void ad_03_a_lane_gets_leaves_for_hosts_its_policy_allows(void **state) {
    (void)state;
    static const struct {
        uint32_t lane;
        const char *host;
        uint16_t port;
    } cases[] = {{1, "api.example.com", 443},
                 {1, "under_score.example.com", 443},
                 {1, "9.9.9.9", 443},
                 {1, "2620:fe::fe", 443},
                 {2, "other.example.com", 8443}};
    struct world w;
    world_open(&w, 600);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct answer *a = answer_to(&w, cases[i].lane, 1, cases[i].host, cases[i].port);
        if (a->type != CA_LEAF)
            fail_msg("%s: %s", cases[i].host, reason_info((enum reason)a->reason)->code);
        X509 *x = leaf_of(a);
        if (strspn(cases[i].host, "0123456789abcdef.:") == strlen(cases[i].host))
            assert_int_equal(X509_check_ip_asc(x, cases[i].host, 0), 1);
        else
            assert_int_equal(X509_check_host(x, cases[i].host, 0, 0, NULL), 1);
        assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(x), w.lane_key), 1);
        assert_int_equal(X509_cmp_time(X509_get0_notBefore(x), NULL), -1);
        assert_true(a->not_after > now() + 6 * 86400 && a->not_after < now() + 8 * 86400);
        X509_free(x);
    }
    world_close(&w);
}

static void ad_03_no_lane_gets_a_leaf_for_a_host_it_may_not_reach(void **state) {
    (void)state;
    static const struct {
        uint32_t lane;
        const char *host;
        uint16_t port;
    } cases[] = {{1, "evil.test", 443},          {1, "example.com", 443},
                 {1, "x.api.example.com", 443},  {1, "other.example.com", 8443},
                 {2, "api.example.com", 443},    {1, "9.9.9.8", 443},
                 {1, "2620:fe::9", 443},         {3, "api.example.com", 443},
                 {1, "spliced.example.com", 443}};
    struct world w;
    world_open(&w, 600);
    join_egress(&w, 3, buf_view(&w.spki)); /* a lane that the generation does not know */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        must_refuse(&w, cases[i].lane, 1, cases[i].host, cases[i].port, REASON_HOST_NOT_ALLOWED);
    const struct answer *a = answer_to(&w, 1, 1, "api.example.com", 444);
    assert_int_equal(a->type, CA_REFUSED);
    world_close(&w);
}

static void ad_03_serials_never_repeat(void **state) {
    (void)state;
    enum { LEAVES = 50 };
    struct world w;
    X509 *leaves[LEAVES];
    world_open(&w, 600);
    for (int i = 0; i < LEAVES; i++) {
        leaves[i] = leaf_of(answer_to(&w, 1, 1, "api.example.com", 443));
        for (int k = 0; k < i; k++)
            assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(leaves[i]),
                                                  X509_get0_serialNumber(leaves[k])),
                                 0);
    }
    for (int i = 0; i < LEAVES; i++)
        X509_free(leaves[i]);
    world_close(&w);
}

static void another_generation_is_not_ready(void **state) {
    (void)state;
    struct world w;
    world_open(&w, 600);
    must_refuse(&w, 1, 2, "api.example.com", 443, REASON_NOT_READY);
    must_refuse(&w, 1, 0, "api.example.com", 443, REASON_NOT_READY);
    use_generation(&w, 2, "sandbox one { }\n", 600);
    must_refuse(&w, 1, 1, "api.example.com", 443, REASON_NOT_READY);
    must_refuse(&w, 1, 2, "api.example.com", 443, REASON_HOST_NOT_ALLOWED);
    world_close(&w);
}

static void ad_04_before_the_first_generation_nothing_is_signed(void **state) {
    (void)state;
    struct world w;
    world_init(&w, usual());
    world_fork(&w);
    parent_sends_file(w.channel, "ca-key", buf_view(&w.key));
    parent_sends_file(w.channel, "ca-cert", buf_view(&w.certificate));
    join_audit(&w);
    join_egress(&w, 1, buf_view(&w.spki));
    must_refuse(&w, 1, 0, "api.example.com", 443, REASON_NOT_READY);
    must_refuse(&w, 1, 1, "api.example.com", 443, REASON_NOT_READY);
    send_generation(&w, 1, policy, 600); /* prepared, not committed */
    WAIT_FOR(w.loop, w.ready);
    must_refuse(&w, 1, 1, "api.example.com", 443, REASON_NOT_READY);
    world_close(&w);
}

static void ad_04_a_policy_with_an_error_is_refused_and_the_old_one_stays(void **state) {
    (void)state;
    struct world w;
    world_open(&w, 600);
    send_generation(&w, 2, "service {", 600);
    WAIT_FOR(w.loop, w.refused);
    X509_free(leaf_of(answer_to(&w, 1, 1, "api.example.com", 443)));
    world_close(&w);
}

static void rx_new_names_of_a_lane_are_limited_and_a_restart_does_not_refill(void **state) {
    (void)state;
    struct world w;
    world_open(&w, 5);
    for (int i = 0; i < 5; i++)
        X509_free(leaf_of(answer_to(&w, 1, 1, "api.example.com", 443)));
    must_refuse(&w, 1, 1, "api.example.com", 443, REASON_RATE);
    join_egress(&w, 1, buf_view(&w.spki));
    must_refuse(&w, 1, 1, "api.example.com", 443, REASON_RATE);
    X509_free(leaf_of(answer_to(&w, 2, 1, "other.example.com", 8443))); /* another lane goes on */
    world_close(&w);
}

/* ---- what is recorded ---- */

static void every_leaf_is_recorded_before_it_leaves(void **state) {
    (void)state;
    struct world w;
    static uint8_t packet[RECORD_SIZE];
    struct record_facts f;
    world_open(&w, 600);
    X509_free(leaf_of(answer_to(&w, 1, 1, "api.example.com", 443)));
    assert_true(next_record(&w, packet, &f));
    assert_true(view_equal(f.origin, VIEW("ca")));
    assert_int_equal(f.kind, RECORD_EVENT);
    assert_true(view_equal(f.text[FIELD_EVENT], VIEW("leaf_minted")));
    assert_true(view_equal(f.text[FIELD_HOST], VIEW("api.example.com")));
    assert_int_equal(f.number_of[FIELD_LANE], 1);
    assert_int_equal(f.number_of[FIELD_PORT], 443);
    assert_int_equal(f.number_of[FIELD_GENERATION], 1);
    must_refuse(&w, 1, 1, "evil.test", 443, REASON_HOST_NOT_ALLOWED);
    assert_true(next_record(&w, packet, &f));
    assert_true(view_equal(f.text[FIELD_EVENT], VIEW("leaf_refused")));
    assert_false(next_record(&w, packet, &f));
    world_close(&w);
}

static void au_01_without_audit_nothing_is_signed(void **state) {
    (void)state;
    struct world w;
    world_open(&w, 600);
    assert_int_equal(write(w.audit, "D", 1), 1);
    for (int i = 0; i < 50; i++)
        parent_turn(w.loop);
    must_refuse(&w, 1, 1, "api.example.com", 443, REASON_CA_UNAVAILABLE);
    assert_int_equal(write(w.audit, "U", 1), 1);
    for (int i = 0; i < 50; i++)
        parent_turn(w.loop);
    X509_free(leaf_of(answer_to(&w, 1, 1, "api.example.com", 443)));
    close(w.audit);
    w.audit = -1;
    must_refuse(&w, 1, 1, "api.example.com", 443, REASON_CA_UNAVAILABLE);
    world_close(&w);
}

static void ad_05_numbers_of_records_go_on_over_a_restart_of_audit(void **state) {
    (void)state;
    struct world w;
    static uint8_t packet[RECORD_SIZE];
    struct record_facts first, second;
    world_open(&w, 600);
    X509_free(leaf_of(answer_to(&w, 1, 1, "api.example.com", 443)));
    assert_true(next_record(&w, packet, &first));
    close(w.audit);
    must_refuse(&w, 1, 1, "api.example.com", 443, REASON_CA_UNAVAILABLE);
    join_audit(&w);
    /* The new audit and the question come by two channels: ca may hear of either first. */
    const struct answer *a = answer_to(&w, 1, 1, "api.example.com", 443);
    for (int i = 0; i < 1000 && a->type != CA_LEAF; i++)
        a = answer_to(&w, 1, 1, "api.example.com", 443);
    X509_free(leaf_of(a));
    assert_true(next_record(&w, packet, &second));
    assert_int_equal(second.epoch, first.epoch);
    assert_int_equal(second.number, first.number + 1);
    world_close(&w);
}

static void au_01_a_full_queue_to_audit_refuses(void **state) {
    (void)state;
    struct world w;
    const struct answer *a;
    int signed_leaves = 0;
    world_open(&w, 1000000);
    /* Nobody reads the records here. */
    while ((a = answer_to(&w, 1, 1, "api.example.com", 443))->type == CA_LEAF)
        signed_leaves++;
    assert_int_equal(a->reason, REASON_CA_UNAVAILABLE);
    static uint8_t packet[RECORD_SIZE];
    struct record_facts f;
    int recorded = 0;
    while (next_record(&w, packet, &f))
        recorded++;
    assert_int_equal(recorded, signed_leaves);
    world_close(&w);
}

/* ---- hostile peers ---- */

static void a_lane_that_breaks_the_contract_is_dropped_and_the_others_go_on(void **state) {
    (void)state;
    static const char *const hosts[] = {
        "API.example.com", "api.example.com.", "",           "a b",          "api.example.com:443",
        "[2620:fe::fe]",   "2620:FE::FE",      "0177.0.0.1", "*.example.com"};
    struct world w;
    world_open(&w, 600);
    for (unsigned i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        w.egress_gone = false;
        ask(&w, 1, 1, hosts[i], 443);
        WAIT_FOR(w.loop, w.bad_peers == i + 1 && w.egress_gone);
        join_egress(&w, 1, buf_view(&w.spki));
    }
    channel_send(w.egress[1], CA_ASK_LEAF, 1, 1, VIEW("\0\0"));
    WAIT_FOR(w.loop, w.bad_peers == sizeof hosts / sizeof *hosts + 1);
    X509_free(leaf_of(answer_to(&w, 2, 1, "other.example.com", 8443)));
    world_close(&w);
}

static void a_lane_with_a_key_that_is_not_p256_gets_no_channel(void **state) {
    (void)state;
    struct world w;
    uint8_t *der = NULL;
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    world_open(&w, 600);
    int n = i2d_PUBKEY(key, &der);
    join_egress(&w, 1, view_of(der, (size_t)n));
    WAIT_FOR(w.loop, w.bad_peers == 1 && w.egress_gone);
    X509_free(leaf_of(answer_to(&w, 2, 1, "other.example.com", 8443)));
    OPENSSL_free(der);
    EVP_PKEY_free(key);
    world_close(&w);
}

/* ---- starts that are refused ---- */

static void must_not_start(struct world *w, struct view key, struct view certificate) {
    int status = 0;
    world_fork(w);
    if (key.n)
        parent_sends_file(w->channel, "ca-key", key);
    if (certificate.n)
        parent_sends_file(w->channel, "ca-cert", certificate);
    send_generation(w, 1, policy, 600);
    WAIT_FOR(w->loop, w->gone);
    assert_true(w->refused);
    assert_false(w->ready);
    waitpid(w->child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    world_close(w);
}

static void ad_07_it_does_not_start_when_the_clock_is_before_the_ca(void **state) {
    (void)state;
    struct world w;
    world_init(&w, (struct mint_validity){now() + 3600, now() + 7200});
    must_not_start(&w, buf_view(&w.key), buf_view(&w.certificate));
}

static void ad_07_it_does_not_start_when_the_ca_has_expired(void **state) {
    (void)state;
    struct world w;
    world_init(&w, (struct mint_validity){now() - 7200, now() - 3600});
    must_not_start(&w, buf_view(&w.key), buf_view(&w.certificate));
}

static void ad_02_it_does_not_start_with_a_key_that_is_not_the_certificates(void **state) {
    (void)state;
    struct world w;
    struct buf other;
    world_init(&w, usual());
    buf_init(&other, MINT_PEM_MAX);
    assert_int_equal(mint_key(&other), 0);
    must_not_start(&w, buf_view(&other), buf_view(&w.certificate));
    buf_free(&other);
}

static void it_does_not_start_without_key_or_certificate(void **state) {
    (void)state;
    struct world w;
    world_init(&w, usual());
    must_not_start(&w, VIEW(""), buf_view(&w.certificate));
    world_init(&w, usual());
    must_not_start(&w, buf_view(&w.key), VIEW(""));
    world_init(&w, usual());
    must_not_start(&w, VIEW("nonsense"), VIEW("nonsense"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ad_03_a_lane_gets_leaves_for_hosts_its_policy_allows),
        cmocka_unit_test(ad_03_no_lane_gets_a_leaf_for_a_host_it_may_not_reach),
        cmocka_unit_test(ad_03_serials_never_repeat),
        cmocka_unit_test(another_generation_is_not_ready),
        cmocka_unit_test(ad_04_before_the_first_generation_nothing_is_signed),
        cmocka_unit_test(ad_04_a_policy_with_an_error_is_refused_and_the_old_one_stays),
        cmocka_unit_test(rx_new_names_of_a_lane_are_limited_and_a_restart_does_not_refill),
        cmocka_unit_test(every_leaf_is_recorded_before_it_leaves),
        cmocka_unit_test(au_01_without_audit_nothing_is_signed),
        cmocka_unit_test(ad_05_numbers_of_records_go_on_over_a_restart_of_audit),
        cmocka_unit_test(au_01_a_full_queue_to_audit_refuses),
        cmocka_unit_test(a_lane_that_breaks_the_contract_is_dropped_and_the_others_go_on),
        cmocka_unit_test(a_lane_with_a_key_that_is_not_p256_gets_no_channel),
        cmocka_unit_test(ad_07_it_does_not_start_when_the_clock_is_before_the_ca),
        cmocka_unit_test(ad_07_it_does_not_start_when_the_ca_has_expired),
        cmocka_unit_test(ad_02_it_does_not_start_with_a_key_that_is_not_the_certificates),
        cmocka_unit_test(it_does_not_start_without_key_or_certificate),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

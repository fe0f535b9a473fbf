/*
 * Egress between hostile peers: its proxy above all, the upstream, and what ca, broker, dialer, inspect and audit
 * would say if they had been taken over. Unless the input says otherwise these answer as they should, inspect is the
 * real one, and the upstream is verified TLS. What holds whatever comes:
 *
 *   - nothing is dialled, leased or signed that the lane's policy does not allow (P3, P5, P6)
 *   - no byte reaches an upstream in front of the record that allows it (P9)
 *   - the secret is never said to proxy, whatever the upstream makes of it, and to no upstream in clear (P6, P8)
 *   - what proxy left open goes away with it
 *
 * Input: flags; then steps, each a byte of enum step and what it takes. Ids are those of the input from 1 to 255,
 * behind those of the inputs before.
 */
#include "audit/record.h"
#include "base/base64.h"
#include "base/secret.h"
#include "broker/broker_messages.h"
#include "ca/ca_messages.h"
#include "ca/mint.h"
#include "egress/dialer_messages.h"
#include "egress/egress.h"
#include "egress/inspect.h"
#include "egress/lane_messages.h"
#include "fuzz/ends.h"
#include "http/http1.h"
#include "http/tls.h"
#include "policy/bundle.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 16384, UPSTREAMS = 8, IDS = 256, STEPS_MAX = 128, SETTLE_MAX = 64 };

enum flags {
    FLAG_SILENT = 1,   /* ca, broker and dialer answer only what the input says */
    FLAG_NO_AUDIT = 2, /* audit says that it cannot write */
    FLAG_NO_INSPECT = 4,
    FLAG_STRANGER = 8, /* the upstream's certificate is not for its name */
};

enum step {
    STEP_FRAME,   /* u8 type, u8 id, u16 n: proxy's message */
    STEP_REQUEST, /* u8 tunnel, u8 id, u8 tls, u16 n: proxy's record of this HTTP/1 head */
    STEP_OPEN, /* u8 id, u8 of enum open, u8 n: proxy opens a tunnel to this authority, and has a ClientHello */
    STEP_PEER,   /* u8 which, u8 type, u16 n: a message to the newest ask of that peer */
    STEP_ANSWER, /* u16 n: bytes of the newest upstream */
    STEP_ECHO,   /* the newest upstream sends back what it got */
    STEP_END,    /* the newest upstream closes */
    STEP_BODY,   /* u8 id, u16 n: proxy's piece of a body; 0: its end */
    STEP_COMMIT, /* another generation, with the same policy */
    STEP_COUNT
};

enum open {
    OPEN_TOKEN = 3, /* none, the sandbox's, nobody's, none */
    OPEN_SOCKS = 4,
    OPEN_FAKE_MEANT = 8,  /* transparent: to the first address that names get */
    OPEN_REAL_MEANT = 16, /* transparent: to another one */
    OPEN_CLEAR = 32,      /* no TLS comes */
    OPEN_WRONG_SNI = 64,
};

#define SECRET "sk-live-7f3K9qLmX2vB8nTzW4cY6dRj"
#define PLACEHOLDER "sk-live-exeat0000000000placeholder"
#define TOKEN "token-0123456789"
static const char policy_text[] =
    "service api {\n"
    "    host api.example.com\n"
    "    credential demo { in header authorization scheme bearer }\n"
    "    operation read { GET /**; HEAD /**; GET / }\n"
    "    operation ask { POST /v1/chat { body /model in [small]; no body /tools/*/url } }\n"
    "    operation write { POST /items/**; PUT /items/** }\n"
    "    never { * /**/share }\n"
    "}\n"
    "service files { host files.example.com *.files.example.com; operation every { * /**; * / } }\n"
    "service plain { host plain.example.com; clear; operation every { * /**; * / } }\n"
    "service pipe { host pipe.example.com; tls splice at most 64K }\n"
    "sandbox worker { grant api all; grant files all uses 1000000; grant plain all; grant pipe all "
    "}\n";

/* What an ask was about; ids of asks grow. */
enum peer_of { OF_CA, OF_DIALER, OF_BROKER, OF_INSPECT, PEERS };

struct far_end {
    int fd;
    struct tls *tls;
    bool shaken, clear;
    struct buf got;
};

static struct loop *loop;
static struct policy *policy;
static struct tls_server *server;
static struct tls_leaf *leaf, *stranger;
static struct buf leaf_der, anchors, generation_text;
static struct inspect *inspect;
static struct limits limits;
static struct end parent;
static int audit;
static uint32_t number; /* of the generation in use */
static struct end proxy, peers[PEERS];
static uint32_t newest[PEERS]; /* the id of the newest ask */
static struct far_end upstreams[UPSTREAMS];
static size_t n_upstreams; /* of this input */
static unsigned flags;
static bool lent, allowed; /* in this input */
static uint32_t base = 0;  /* of ids of this input */

/* ---- the beginning ---- */

static void make_leaf(const struct mint *m, const char *host, struct buf *der,
                      struct tls_leaf **out) {
    static uint8_t serial[MINT_SERIAL_SIZE];
    uint64_t now = clock_wall() / 1000000000;
    struct mint_form *form;
    struct authority a;
    serial[1]++;
    REQUIRE(mint_form_new(m, tls_server_public_key(server), &form) == 0);
    REQUIRE(authority_parse_host(view_str(host), 443, &a, NULL) == 0);
    buf_init(der, CA_CERT_MAX);
    REQUIRE(mint_leaf(form, &a, (struct mint_validity){now - 3600, now + 90 * UINT64_C(86400)},
                      serial, der, NULL) == 0);
    *out = tls_leaf_new(buf_view(der), NOTHING);
    REQUIRE(*out);
    mint_form_free(form);
}

static void make_certificates(void) {
    static const uint8_t serial[MINT_SERIAL_SIZE] = {1};
    struct buf key, other;
    struct mint *m;
    uint64_t now = clock_wall() / 1000000000;
    buf_init(&key, MINT_PEM_MAX);
    buf_init(&anchors, MINT_PEM_MAX);
    REQUIRE(mint_key(&key) == 0);
    REQUIRE(mint_root(buf_view(&key), "fuzz",
                      (struct mint_validity){now - 3600, now + 3650 * UINT64_C(86400)}, serial,
                      &anchors) == 0);
    REQUIRE(mint_new(buf_view(&key), buf_view(&anchors), &m) == 0);
    server = tls_server_new();
    make_leaf(m, "api.example.com", &leaf_der, &leaf);
    make_leaf(m, "stranger.example.com", &other, &stranger);
    buf_free(&other);
    buf_free(&key);
    mint_free(m);
}

static void put_registry(struct buf *out) {
    struct registry_entry token = {.kind = REGISTRY_TOKEN, .sandbox = VIEW("worker")},
                          placeholder = {.kind = REGISTRY_PLACEHOLDER,
                                         .sandbox = VIEW("worker"),
                                         .credential = VIEW("demo")};
    digest_sha256(VIEW(TOKEN), token.fingerprint);
    digest_sha256(VIEW(PLACEHOLDER), placeholder.fingerprint);
    registry_put(out, &token);
    registry_put(out, &placeholder);
}

static void make_generation(void) {
    struct lane_info lane = {.id = 1, .names = VIEW("worker")};
    struct bundle b = {.policy_file = VIEW("policy"), .policy_text = view_str(policy_text)};
    struct buf lanes, registry;
    buf_init(&lanes, 256);
    buf_init(&registry, 1024);
    buf_init(&generation_text, 1 << 20);
    limits_default(&limits);
    limits.v[LIMIT_GUARD_FRAGMENTS] = 0; /* no sandbox is suspended for the inputs behind */
    limits.v[LIMIT_AUTH_FAILURES] = limit_info(LIMIT_AUTH_FAILURES)->most;
    limits.v[LIMIT_DNS_QUERIES] = limit_info(LIMIT_DNS_QUERIES)->most;
    limits.v[LIMIT_WINDOW] = limit_info(LIMIT_WINDOW)->least;
    b.limits = limits;
    bundle_put_lane(&lanes, &lane);
    put_registry(&registry);
    b.lanes = buf_view(&lanes);
    b.registry = buf_view(&registry);
    b.anchors = buf_view(&anchors);
    REQUIRE(range_parse(VIEW("198.18.0.0/15"), &b.synthetic[0]) == 0);
    bundle_write(&b, &generation_text);
    REQUIRE(buf_ok(&generation_text));
    buf_free(&lanes);
    buf_free(&registry);
}

static void on_inspect_lost(void *ctx, int why) {
    (void)ctx;
    (void)why;
    inspect_free(inspect);
    inspect = NULL;
}

static int join(enum role role) {
    int fds[2];
    REQUIRE(channel_pair(fds) == 0);
    send_peer(parent.fd, role, 1, VIEW("peer"), fds[1]);
    return fds[0];
}

static void join_inspect(void) {
    int fd = join(ROLE_INSPECT);
    end_close(&peers[OF_INSPECT]);
    inspect_free(inspect);
    inspect = NULL;
    if (flags & FLAG_NO_INSPECT)
        end_open(&peers[OF_INSPECT], fd);
    else
        REQUIRE((inspect = inspect_new(loop, fd, &limits, on_inspect_lost, NULL)) != NULL);
}

static void join_peers(void) {
    static const enum role roles[] = {ROLE_CA, ROLE_DIALER, ROLE_BROKER};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        end_close(&peers[i]);
        end_open(&peers[i], join(roles[i]));
    }
    join_inspect();
}

static void start(void) {
    static struct policy_errors errors;
    struct role_args args = {.role = ROLE_EGRESS, .lane = 1};
    int fds[2];
    log_open("fuzz", LOG_FATAL);
    end_open(&parent, open_parent());
    loop = loop_new();
    REQUIRE(loop && http1_self_test() == 0 && tls_start() == 0);
    REQUIRE(secret_arena_open((size_t)8 << 20) == 0);
    REQUIRE(egress_new(loop, &args));
    make_certificates();
    REQUIRE(policy_load(view_str(policy_text), "policy", &policy, &errors) == 0);
    make_generation();
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    audit = fds[0];
    send_peer(parent.fd, ROLE_AUDIT, 0, VIEW("audit"), fds[1]);
    send_generation(parent.fd, ++number, buf_view(&generation_text));
    for (size_t i = 0; i < PEERS; i++)
        peers[i].fd = -1;
    proxy.fd = -1;
    turns(loop, 4);
}

/* ---- what audit and proxy hear ---- */

static void read_audit(void) {
    static uint8_t packet[RECORD_PACKET_SIZE];
    struct record_packet p;
    struct record_facts f;
    ssize_t n;
    while ((n = recv(audit, packet, sizeof packet, 0)) > 0) {
        REQUIRE(record_packet_read(view_of(packet, (size_t)n), &p) == 0);
        int result;
        while ((result = record_next(&p, &f)) == 0)
            if (f.kind == RECORD_DECISION && view_equal(f.text[FIELD_VERDICT], VIEW("allow")))
                allowed = true;
        REQUIRE(result == ERR_MISSING);
        REQUIRE(memmem(packet, (size_t)n, SECRET, sizeof SECRET - 1) == NULL);
    }
}

static bool read_proxy(void) {
    if (!end_read(&proxy))
        return false;
    struct view v = buf_view(&proxy.in);
    REQUIRE(view_search(v, VIEW(SECRET)) == v.n);
    /* A secret that is cut by a frame's head is looked for as well. */
    buf_consume(&proxy.in, v.n > 65536 ? v.n - 65536 : 0);
    return true;
}

/* Whether nothing is in progress by the status that was asked for. */
static bool is_idle(void) {
    struct message m;
    bool idle = false;
    end_read(&parent);
    while (end_next(&parent, &m))
        if (m.type == ROLE_STATUS)
            idle = view_search(m.body, VIEW("\"exchanges\":0,")) < m.body.n &&
                   view_search(m.body, VIEW("\"splices\":0,")) < m.body.n;
    return idle;
}

/* ---- what the shared roles hear, and answer ---- */

static struct far_end *far_new(bool clear, int *theirs) {
    int fds[2];
    if (n_upstreams == UPSTREAMS)
        return NULL;
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    struct far_end *u = &upstreams[n_upstreams++];
    *u = (struct far_end){.fd = fds[1], .clear = clear};
    buf_init(&u->got, 1 << 20);
    if (!clear)
        REQUIRE((u->tls = tls_accept(server, u->fd, flags & FLAG_STRANGER ? stranger : leaf,
                                     "api.example.com", NOTHING)) != NULL);
    *theirs = fds[0];
    return u;
}

static void answer_dial(const struct message *m, const struct authority *a, bool clear) {
    struct buf b;
    int fd = -1;
    buf_init(&b, 1024);
    if (far_new(clear || strcmp(a->host, "pipe.example.com") == 0, &fd)) {
        buf_put_block(&b, VIEW("9.9.9.9"));
        for (int i = 0; i < 3; i++)
            buf_put_block(&b, VIEW(""));
        send_frame(peers[OF_DIALER].fd, DIAL_DONE, m->id, m->generation, buf_view(&b), fd);
    } else {
        buf_put_u16(&b, REASON_CONNECT_FAILED);
        for (int i = 0; i < 3; i++)
            buf_put_block(&b, VIEW(""));
        send_frame(peers[OF_DIALER].fd, DIAL_REFUSED, m->id, m->generation, buf_view(&b), -1);
    }
    buf_free(&b);
}

static void take_dial(const struct message *m) {
    struct reader r = reader_of(m->body);
    struct authority a;
    if (m->type == DIAL_CANCEL)
        return;
    REQUIRE(m->type == DIAL_ASK);
    struct view sandbox = read_block(&r, SANDBOX_NAME_MAX);
    bool tls = read_u8(&r);
    struct view host = read_block(&r, HOST_SIZE);
    uint16_t port = read_u16(&r);
    REQUIRE(read_done(&r) && authority_read(host, port, &a) == 0);
    REQUIRE(view_equal(sandbox, VIEW("worker")));
    REQUIRE(policy_judge_host(policy, sandbox, tls, &a).allow);
    if (!(flags & FLAG_SILENT))
        answer_dial(m, &a, !tls);
}

static void take_leaf(const struct message *m) {
    struct reader r = reader_of(m->body);
    struct authority a;
    struct view host = read_block(&r, CA_NAME_MAX);
    uint16_t port = read_u16(&r);
    REQUIRE(m->type == CA_ASK_LEAF && read_done(&r) && authority_read(host, port, &a) == 0);
    struct verdict v = policy_judge_host(policy, VIEW("worker"), true, &a);
    REQUIRE(!v.allow || service_tls(v.service) != SERVICE_SPLICE);
    if (flags & FLAG_SILENT)
        return;
    struct buf b;
    buf_init(&b, 2 * CA_CERT_MAX);
    buf_put_block(&b, buf_view(&leaf_der));
    buf_put_block(&b, VIEW(""));
    buf_put_u64(&b, clock_wall() / 1000000000 + 86400);
    send_frame(peers[OF_CA].fd, CA_LEAF, m->id, m->generation, buf_view(&b), -1);
    buf_free(&b);
}

static void take_lease(const struct message *m) {
    struct reader r = reader_of(m->body);
    struct buf b;
    uint8_t right[DIGEST_SIZE];
    REQUIRE(m->type == LEASE_ASK);
    struct view sandbox = read_block(&r, SANDBOX_NAME_MAX),
                credential = read_block(&r, CREDENTIAL_NAME_MAX), host = read_block(&r, HOST_SIZE);
    uint16_t port = read_u16(&r);
    struct view fingerprint = read_bytes(&r, DIGEST_SIZE);
    digest_sha256(VIEW(PLACEHOLDER), right);
    REQUIRE(read_done(&r) && view_equal(sandbox, VIEW("worker")));
    REQUIRE(view_equal(credential, VIEW("demo")) && port == 443);
    REQUIRE(view_equal(host, VIEW("api.example.com")));
    REQUIRE(view_equal(fingerprint, view_of(right, sizeof right)));
    if (flags & FLAG_SILENT)
        return;
    lent = true;
    buf_init(&b, LEASE_MAX);
    buf_put_u32(&b, 1);
    buf_put_u32(&b, 60);
    buf_put_u16(&b, 8);
    buf_put_block(&b, VIEW(SECRET));
    send_frame(peers[OF_BROKER].fd, LEASE, m->id, m->generation, buf_view(&b), -1);
    buf_free(&b);
}

static void ignore(const struct message *m) {
    (void)m;
}

static bool serve_peers(void) {
    static void (*const take[PEERS])(const struct message *) = {take_leaf, take_dial, take_lease,
                                                                ignore};
    bool any = false;
    struct message m;
    for (size_t i = 0; i < PEERS; i++) {
        any |= end_read(&peers[i]);
        while (end_next(&peers[i], &m)) {
            newest[i] = m.id;
            take[i](&m);
        }
    }
    return any;
}

/* ---- what upstreams hear ---- */

static void far_heard(struct far_end *u, struct view v) {
    read_audit();
    REQUIRE(allowed);
    buf_put(&u->got, v);
    REQUIRE(!u->clear || view_search(buf_view(&u->got), VIEW(SECRET)) == buf_len(&u->got));
}

static bool far_read(struct far_end *u) {
    uint8_t p[16384];
    bool any = false;
    ssize_t got;
    size_t n;
    if (u->clear)
        while ((got = read(u->fd, p, sizeof p)) > 0) {
            far_heard(u, view_of(p, (size_t)got));
            any = true;
        }
    else if (u->shaken)
        while (tls_read(u->tls, p, sizeof p, &n) == TLS_DONE) {
            far_heard(u, view_of(p, n));
            any = true;
        }
    else if (tls_handshake(u->tls) == TLS_DONE)
        any = u->shaken = true;
    return any;
}

static bool serve_upstreams(void) {
    bool any = false;
    for (size_t i = 0; i < n_upstreams; i++)
        if (upstreams[i].fd >= 0)
            any |= far_read(&upstreams[i]);
    return any;
}

static void far_close(struct far_end *u) {
    if (u->tls)
        tls_shutdown(u->tls);
    tls_free(u->tls);
    if (u->fd >= 0)
        close(u->fd);
    buf_free(&u->got);
    *u = (struct far_end){.fd = -1};
}

static void far_say(struct far_end *u, struct view v) {
    size_t n;
    if (u->clear)
        (void)!write(u->fd, v.p, v.n);
    else if (u->shaken && v.n > 0)
        (void)tls_write(u->tls, v, &n);
}

static void settle(void) {
    bool any = true;
    for (int i = 0; any && i < SETTLE_MAX; i++) {
        turns(loop, 2);
        any = serve_peers();
        any |= serve_upstreams();
        any |= read_proxy();
        read_audit();
    }
}

/* ---- steps ---- */

static struct far_end *newest_upstream(void) {
    return n_upstreams > 0 && upstreams[n_upstreams - 1].fd >= 0 ? &upstreams[n_upstreams - 1]
                                                                 : NULL;
}

static uint32_t id_of(uint8_t id) {
    return base + id;
}

/* The tunnel that a body begins with is one of this input. */
static void send_proxy(uint8_t type, uint8_t id, struct view body) {
    struct buf b;
    buf_init(&b, 1 << 17);
    if ((type == LANE_REQUEST || type == LANE_MALFORMED) && body.n >= 4) {
        struct reader r = reader_of(body);
        uint32_t tunnel = read_u32(&r);
        buf_put_u32(&b, tunnel > 0 && tunnel < IDS ? base + tunnel : tunnel);
        body = r.rest;
    }
    buf_put(&b, body);
    send_frame(proxy.fd, type, id ? id_of(id) : 0, 0, buf_view(&b), -1);
    buf_free(&b);
}

static void step_frame(struct reader *r) {
    uint8_t type = read_u8(r), id = read_u8(r);
    send_proxy(type, id, read_bytes(r, read_u16(r)));
}

static void step_request(struct reader *r) {
    uint8_t tunnel = read_u8(r), id = read_u8(r), tls = read_u8(r);
    struct view text = read_bytes(r, read_u16(r));
    struct http1 *h = http1_new(HTTP1_REQUESTS, &limits);
    struct buf b;
    buf_init(&b, 1 << 17);
    if (http1_next(h, text).what == HTTP1_HEAD) {
        buf_put_u32(&b, tunnel);
        buf_put_u8(&b, tls & 1);
        buf_put_u8(&b, 0);
        buf_put_block(&b, VIEW(""));
        buf_put_block(&b, VIEW("127.0.0.1:4711"));
        request_write(http1_request(h), &b);
        send_proxy(LANE_REQUEST, id, buf_view(&b));
    }
    buf_free(&b);
    http1_free(h);
}

static void put_token(uint8_t how, struct buf *out) {
    static const char *const tokens[] = {NULL, TOKEN, "token-of-nobody", NULL};
    const char *token = tokens[how & OPEN_TOKEN];
    struct buf pair, basic;
    buf_init(&pair, 256);
    buf_init(&basic, 512);
    if (token) {
        buf_printf(&pair, "worker:%s", token);
        buf_put_str(&basic, "Basic ");
        base64_encode(buf_view(&pair), &basic);
    }
    buf_put_block(out, buf_view(&basic));
    buf_put_u8(out, token != NULL);
    buf_free(&pair);
    buf_free(&basic);
}

static void send_hello(uint8_t id, uint8_t how, struct view authority) {
    struct buf b;
    buf_init(&b, 1024);
    buf_put_u8(&b, 1);
    buf_put_block(&b, how & OPEN_WRONG_SNI ? VIEW("evil.test") : view_cut(&authority, ':'));
    buf_put_u8(&b, 0);
    send_proxy(LANE_HELLO, id, buf_view(&b));
    buf_free(&b);
}

static void step_open(struct reader *r) {
    uint8_t id = read_u8(r), how = read_u8(r);
    struct view authority = read_bytes(r, read_u8(r));
    uint8_t way = how & OPEN_SOCKS ? LANE_WAY_SOCKS : LANE_WAY_CONNECT;
    bool meant = how & (OPEN_FAKE_MEANT | OPEN_REAL_MEANT), clear = how & OPEN_CLEAR;
    struct buf b;
    buf_init(&b, 2048);
    buf_put_block(&b, authority);
    put_token(how, &b);
    buf_put_block(&b, VIEW(""));
    buf_put_u8(&b, 0);
    buf_put_block(&b, VIEW("127.0.0.1:4711"));
    buf_put_u8(&b, meant ? LANE_WAY_TRANSPARENT : way);
    buf_put_u8(&b, meant && !clear);
    buf_put_block(&b, !meant                  ? VIEW("")
                      : how & OPEN_FAKE_MEANT ? VIEW("198.18.0.1:443")
                                              : VIEW("192.0.2.1:443"));
    send_proxy(LANE_OPEN, id, buf_view(&b));
    if (!clear)
        send_hello(id, how, authority);
    buf_free(&b);
}

static void step_peer(struct reader *r) {
    uint8_t which = read_u8(r) % PEERS, type = read_u8(r);
    struct view body = read_bytes(r, read_u16(r));
    int fd = -1;
    if (peers[which].fd < 0)
        return;
    if (which == OF_DIALER && type == DIAL_DONE && !far_new(true, &fd))
        return;
    send_frame(peers[which].fd, type, newest[which], number, body, fd);
}

static void step_body(struct reader *r) {
    uint8_t id = read_u8(r);
    struct view body = read_bytes(r, read_u16(r));
    send_proxy(body.n > 0 ? LANE_BODY : LANE_END, id, body);
}

static void take_step(struct reader *r) {
    struct far_end *u = newest_upstream();
    switch (read_u8(r) % STEP_COUNT) {
    case STEP_FRAME:
        step_frame(r);
        break;
    case STEP_REQUEST:
        step_request(r);
        break;
    case STEP_OPEN:
        step_open(r);
        break;
    case STEP_PEER:
        step_peer(r);
        break;
    case STEP_ANSWER: {
        struct view v = read_bytes(r, read_u16(r));
        if (u)
            far_say(u, v);
        break;
    }
    case STEP_ECHO:
        if (u)
            far_say(u, buf_view(&u->got));
        break;
    case STEP_END:
        if (u)
            far_close(u);
        break;
    case STEP_BODY:
        step_body(r);
        break;
    default:
        send_generation(parent.fd, ++number, buf_view(&generation_text));
    }
}

/* ---- the end ---- */

/* The end of the one before breaks off a turn. */
static void join_proxy(void) {
    end_close(&proxy);
    turns(loop, 1);
    end_open(&proxy, join(ROLE_PROXY));
    turns(loop, 2);
}

/* About each id of the input; the first that was never used ends the channel. */
static void say_of_all(uint16_t type, struct view body) {
    struct buf b;
    buf_init(&b, 1 << 16);
    for (uint32_t id = 1; id < IDS; id++)
        put_frame(&b, type, base + id, 0, body, false);
    REQUIRE(buf_ok(&b));
    join_proxy();
    send_bytes_fd(proxy.fd, buf_view(&b), -1);
    settle();
    buf_free(&b);
}

/* What proxy would say if all its clients went away. */
static void leave(void) {
    static const uint8_t gone[6] = {0, REASON_CLIENT_CLOSED};
    say_of_all(LANE_GONE, view_of(gone, sizeof gone));
    say_of_all(LANE_CLOSE, NOTHING);
}

static void open_input(uint8_t first) {
    flags = first;
    lent = allowed = false;
    n_upstreams = 0;
    join_proxy();
    join_peers();
    char told = flags & FLAG_NO_AUDIT ? 'D' : 'U';
    REQUIRE(write(audit, &told, 1) == 1);
    turns(loop, 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!loop)
        start();
    struct view input = view_of(data, size);
    if (size < 2 || size > INPUT_MAX || view_search(input, VIEW("7f3K9qLm")) < size)
        return 0;
    open_input(data[0]);
    struct reader r = reader_of(view_skip(input, 1));
    for (int i = 0; i < STEPS_MAX && !r.bad && r.rest.n > 0; i++) {
        take_step(&r);
        settle();
    }
    leave();
    for (size_t i = 0; i < n_upstreams; i++)
        far_close(&upstreams[i]);
    settle();
    send_frame(parent.fd, PARENT_STATUS_ASK, 1, 0, NOTHING, -1);
    turns(loop, 1);
    REQUIRE(is_idle());
    base += IDS;
    return 0;
}

/*
 * A hostile egress: messages to the dialer, framed by us (type, id, length and body in the input) or,
 * when the first byte is odd, raw bytes. There is no resolver, so that nothing leaves; hosts that the configuration
 * names are on loopback, where one listener stands for an upstream and another one is exeat's own, which nobody may be led to.
 */
#include "egress/dialer_messages.h"
#include "egress/dials.h"
#include "fuzz/ends.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In messages of the input these stand for the ports that the kernel gave the two listeners. */
enum { PORT_OF_UPSTREAM = 1001, PORT_OF_OUR_OWN = 1002, INPUT_MAX = 4096 };

static struct loop *loop;
static struct dials *dials;
static int audit, upstream, own;
static uint16_t upstream_port, own_port;

static void on_bad_peer(void *ctx, uint32_t lane) {
    (void)ctx;
    (void)lane;
}

static int listen_on_loopback(uint16_t *port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    REQUIRE(bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 64) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void put_sections(struct bundle *b, struct buf *lanes, struct buf *hosts, struct buf *ours) {
    static const struct static_host table[] = {{VIEW("here.allowed.test"), {4, {127, 0, 0, 1}}},
                                               {VIEW("here.strict.test"), {4, {127, 0, 0, 1}}},
                                               {VIEW("six.allowed.test"), {6, {[15] = 1}}}};
    struct lane_info lane = {.id = 1, .names = VIEW("a")};
    char text[64];
    bundle_put_lane(lanes, &lane);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        bundle_put_host(hosts, &table[i]);
    snprintf(text, sizeof text, "127.0.0.1:%u", own_port);
    buf_put_block(ours, view_str(text));
    b->lanes = buf_view(lanes);
    b->static_hosts = buf_view(hosts);
    b->own_addresses = buf_view(ours);
}

static void write_generation(struct buf *out) {
    char policy[512];
    struct bundle b = {.policy_file = VIEW("policy")};
    struct buf lanes, hosts, ours;
    snprintf(
        policy, sizeof policy,
        "service api { host *.allowed.test; port 443 %u %u; range 127.0.0.0/8 ::1\n"
        "operation o { GET / } }\n"
        "service strict { host *.strict.test; port %u; operation o { GET / } }\n"
        "service literal { host 127.0.0.1; port %u %u; range 127.0.0.0/8; operation o { GET / } }\n"
        "sandbox a { grant api o; grant strict o; grant literal o }\n",
        upstream_port, own_port, upstream_port, upstream_port, own_port);
    b.policy_text = view_str(policy);
    limits_default(&b.limits);
    buf_init(&lanes, 256);
    buf_init(&hosts, 1024);
    buf_init(&ours, 256);
    put_sections(&b, &lanes, &hosts, &ours);
    bundle_write(&b, out);
    buf_free(&lanes);
    buf_free(&hosts);
    buf_free(&ours);
}

/* Whatever else runs on the machine may try any port of its loopback; only root can leave that. */
static void leave_network(void) {
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (unshare(CLONE_NEWNET) != 0)
        return;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0);
    close(fd);
}

static void open_world(void) {
    static struct buf text;
    int fds[2];
    log_open("fuzz", LOG_FATAL);
    loop = loop_new();
    leave_network();
    upstream = listen_on_loopback(&upstream_port);
    own = listen_on_loopback(&own_port);
    struct dials_options o = {.loop = loop,
                              .resolver = resolver_new(loop, 64),
                              .interfaces = interfaces_new(loop),
                              .lane_max = 8,
                              .active_max = 4,
                              .bad_peer = on_bad_peer};
    dials = dials_new(&o);
    buf_init(&text, 65536);
    write_generation(&text);
    REQUIRE(dials && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
    REQUIRE(dials_audit(dials, fds[0]) == 0 && dials_generation(dials, 1, buf_view(&text)) == 0);
    audit = fds[1];
    dials_commit(dials, 1);
}

/* A body that ends in one of the ports gets what it stands for. */
static void put_message(struct buf *out, uint8_t type, uint8_t id, uint8_t generation,
                        struct view body) {
    uint16_t port =
        body.n < 2 ? 0 : (uint16_t)((unsigned)body.p[body.n - 2] << 8 | body.p[body.n - 1]);
    struct buf b;
    buf_init(&b, 512);
    if (port == PORT_OF_UPSTREAM || port == PORT_OF_OUR_OWN) {
        buf_put(&b, view_head(body, body.n - 2));
        buf_put_u16(&b, port == PORT_OF_UPSTREAM ? upstream_port : own_port);
    } else {
        buf_put(&b, body);
    }
    put_frame(out, type, id, generation, buf_view(&b), false);
    buf_free(&b);
}

static void frame(struct view input, struct buf *out) {
    struct reader r = reader_of(input);
    while (!r.bad && !view_is_empty(r.rest)) {
        uint8_t type = read_u8(&r), id = read_u8(&r), generation = read_u8(&r);
        put_message(out, type, id, generation, read_bytes(&r, read_u8(&r)));
    }
}

static void swallow(int fd) {
    uint8_t p[4096];
    while (recv(fd, p, sizeof p, MSG_DONTWAIT) > 0)
        ;
}

static size_t accept_all(int listener) {
    size_t n = 0;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; n++)
        close(fd);
    return n;
}

/* Of connections no more are said to be there than there are. */
static void check_answers(struct end *egress) {
    struct message m;
    size_t done = 0;
    while (end_next(egress, &m)) {
        struct reader r = reader_of(m.body);
        REQUIRE(m.type == DIAL_DONE || m.type == DIAL_REFUSED);
        uint16_t why = m.type == DIAL_REFUSED ? read_u16(&r) : REASON_ALLOWED;
        for (int i = 0; i < (m.type == DIAL_DONE ? 4 : 3); i++)
            read_block(&r, DIALER_FACTS_MAX);
        REQUIRE(read_done(&r) && why < REASON_COUNT);
        REQUIRE((m.type == DIAL_DONE) == (why == REASON_ALLOWED));
        done += m.type == DIAL_DONE;
    }
    REQUIRE(accept_all(upstream) >= done);
    REQUIRE(accept_all(own) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf bytes;
    struct end egress;
    int fds[2];
    if (!loop)
        open_world();
    if (size == 0 || size > INPUT_MAX)
        return 0;
    REQUIRE(channel_pair(fds) == 0);
    end_open(&egress, fds[0]);
    buf_init(&bytes, 65536 * 2);
    if (data[0] & 1)
        buf_put(&bytes, view_of(data + 1, size - 1));
    else
        frame(view_of(data + 1, size - 1), &bytes);
    REQUIRE(dials_peer(dials, 1, fds[1]) == 0);
    send_bytes_fd(egress.fd, buf_view(&bytes), -1);
    turns(loop, 6);
    end_read(&egress);
    check_answers(&egress);
    shutdown(egress.fd, SHUT_WR);
    turns(loop, 1);
    dials_peer_gone(dials, 1);
    swallow(audit);
    end_close(&egress);
    buf_free(&bytes);
    return 0;
}

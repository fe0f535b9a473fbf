/*
 * A hostile launcher at the attach socket. Of the input the first byte is how many descriptors go along and the
 * second which ones they begin with; the third says whether the rest, one packet, is sent twice (1), or behind a request that is good, where a
 * report is awaited (2). A parent, a broker and an audit that grant everything let it come as far as it can. Attach must be there afterwards, without the launcher, its lane and its descriptors.
 */
#include "base/attach.h"
#include "base/child.h"
#include "base/log.h"
#include "base/peer.h"
#include "broker/broker_messages.h"
#include "daemon/attach.h"
#include "fuzz/require.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4096, HEAD = 3, FDS_MAX = 64, GENERATION = 1 };

static struct loop *loop;
static struct channel *parent, *broker;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_size = sizeof(sa_family_t); /* the kernel chooses an abstract name */
static int pool[5], lanes, audit;
static bool idle, ready, broken;

/* ---- the parent ---- */

static void tell_lane(struct channel *ch, uint32_t id, enum lane_news news) {
    struct buf *b = channel_begin(ch, PARENT_LANE, id, GENERATION);
    buf_put_u8(b, (uint8_t)news);
    buf_put_block(b, VIEW(""));
    channel_end(ch);
}

static int take_add(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    lanes++;
    tell_lane(ch, m->id, LANE_ADDED);
    tell_lane(ch, m->id, LANE_UP);
    return 0;
}

/* Only what is one may be handed over as a listener. */
static int take_listener(void *ctx, struct channel *ch, struct message *m) {
    int listens = 0, type = 0;
    socklen_t size = sizeof listens;
    (void)ctx;
    (void)ch;
    REQUIRE(m->body.n == 1 && getsockopt(m->fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0);
    REQUIRE(getsockopt(m->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0);
    REQUIRE(m->body.p[0] == WAY_UNREACHABLE ? type == SOCK_RAW
            : m->body.p[0] == WAY_DNS_UDP   ? type == SOCK_DGRAM
                                            : type == SOCK_STREAM && listens);
    return 0;
}

static int take_end(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    (void)ch;
    (void)m;
    lanes--;
    return 0;
}

static int take_status(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    (void)ch;
    idle = view_search(m->body, VIEW("\"connections\":0,")) < m->body.n;
    return 0;
}

static int take_ready(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    (void)ch;
    (void)m;
    return 0;
}

static int take_committed(void *ctx, struct channel *ch, struct message *m) {
    ready = true;
    return take_ready(ctx, ch, m);
}

/* It serves from now on, and somebody wants to know whether it is tight still. */
static int take_open(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    tell_lane(ch, m->id, LANE_SERVES);
    struct buf *b = channel_begin(ch, PARENT_PROBE, m->id, GENERATION);
    buf_put_u32(b, m->id);
    channel_end(ch);
    return 0;
}

static const struct channel_rule parent_rules[] = {
    {ROLE_UP, 0, 64, take_ready, "up"},
    {ROLE_READY, 0, 0, take_ready, "ready"},
    {ROLE_COMMITTED, 0, 0, take_committed, "committed"},
    {ROLE_STATUS, 0, 20000, take_status, "status"},
    {ROLE_LANE_ADD, 0, 128, take_add, "lane add"},
    {ROLE_LANE_LISTENER, CHANNEL_FD, 1, take_listener, "lane listener"},
    {ROLE_LANE_END, 0, 0, take_end, "lane end"},
    {ROLE_LANE_OPEN, 0, 0, take_open, "lane open"},
    {ROLE_PROBED, 0, CHILD_PROBED_MAX, take_ready, "probed"},
};

/* ---- the broker ---- */

static int take_issue(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    struct buf *b = channel_begin(ch, BROKER_DONE, m->id, GENERATION);
    buf_put_u8(b, 0);
    buf_put_block(b, VIEW("{}"));
    channel_end(ch);
    return 0;
}

static const struct channel_rule broker_rules[] = {
    {BROKER_SANDBOX_ADD, 0, 128, take_issue, "add"},
    {BROKER_SANDBOX_REMOVE, 0, 128, take_ready, "remove"},
};

static void on_closed(void *ctx, struct channel *ch, int why) {
    (void)ctx;
    (void)ch;
    (void)why;
    broken = true;
}

/* ---- the beginning ---- */

static int make_text(void) {
    struct bundle b = {.policy_file = VIEW("policy"), .policy_text = VIEW("")};
    struct buf text;
    int fd = memfd_create("text", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    buf_init(&text, 1 << 20);
    limits_default(&b.limits);
    bundle_write(&b, &text);
    REQUIRE(write(fd, buf_view(&text).p, buf_len(&text)) == (ssize_t)buf_len(&text));
    REQUIRE(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0);
    buf_free(&text);
    return fd;
}

static int internet(int type, bool listens) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    REQUIRE(bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    REQUIRE(!listens || listen(fd, 1) == 0);
    return fd;
}

static void make_pool(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    pool[0] = internet(SOCK_STREAM, true);
    pool[1] = internet(SOCK_DGRAM, false);
    pool[2] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pool[3] = internet(SOCK_STREAM, false);
    pool[4] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(pool[4], (struct sockaddr *)&name, sizeof(sa_family_t)) == 0 &&
            listen(pool[4], 1) == 0);
}

static void listen_here(void) {
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    REQUIRE(bind(listener, (struct sockaddr *)&address, address_size) == 0 &&
            listen(listener, 16) == 0);
    address_size = sizeof address;
    REQUIRE(getsockname(listener, (struct sockaddr *)&address, &address_size) == 0);
    int high = fcntl(listener, F_DUPFD, 64);
    REQUIRE(dup2(high, LISTENER_FD) >= 0);
    close(high);
    if (listener != LISTENER_FD)
        close(listener);
}

static void send_peer(enum role role, int fd) {
    struct buf *b;
    struct buf body;
    buf_init(&body, 64);
    b = &body;
    buf_put_u8(b, (uint8_t)role);
    buf_put_u32(b, 0);
    buf_put_block(b, VIEW("peer"));
    channel_send_fd(parent, PARENT_PEER, 0, 0, buf_view(b), fd);
    buf_free(b);
}

static void start(void) {
    struct role_args args = {.role = ROLE_ATTACH, .listeners = 1};
    int fds[2], to_broker[2], records[2];
    log_open("fuzz", LOG_FATAL);
    /* Whatever is opened first may not be where the role's descriptors are wanted. */
    for (int fd = PARENT_FD; fd <= LISTENER_FD; fd++)
        REQUIRE(open("/dev/null", O_RDONLY) >= 0);
    loop = loop_new();
    listen_here();
    REQUIRE(channel_pair(fds) == 0 && channel_pair(to_broker) == 0);
    REQUIRE(dup2(fds[1], PARENT_FD) >= 0);
    close(fds[1]);
    make_pool();
    REQUIRE(attach_new(loop, &args) != NULL);
    parent = channel_new(loop, fds[0], parent_rules, sizeof parent_rules / sizeof *parent_rules, 0,
                         on_closed, NULL);
    broker = channel_new(loop, to_broker[0], broker_rules,
                         sizeof broker_rules / sizeof *broker_rules, 0, on_closed, NULL);
    REQUIRE(parent && broker);
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, records) == 0);
    audit = records[0];
    send_peer(ROLE_BROKER, to_broker[1]);
    send_peer(ROLE_AUDIT, records[1]);
    channel_send_fd(parent, PARENT_GENERATION, 0, GENERATION, (struct view){NULL, 0}, make_text());
    channel_send(parent, PARENT_COMMIT, 0, GENERATION, (struct view){NULL, 0});
    while (!ready)
        REQUIRE(!broken && loop_turn(loop) == 0);
}

/* Until nobody is left: the figures of each turn tell. */
static void settle(void) {
    uint8_t record[1 << 16];
    for (idle = false; !idle;) {
        while (recv(audit, record, sizeof record, 0) > 0)
            continue;
        channel_send(parent, PARENT_STATUS_ASK, 1, 0, (struct view){NULL, 0});
        REQUIRE(!broken && loop_turn(loop) == 0);
    }
    REQUIRE(lanes == 0);
}

/* ---- the launcher ---- */

static void send_packet(int to, struct view packet, size_t n, uint8_t first) {
    int fds[FDS_MAX];
    for (size_t i = 0; i < n; i++)
        fds[i] = pool[(first + i) % (sizeof pool / sizeof *pool)];
    /* What is refused is closed. */
    (void)!peer_send(to, packet, fds, n, MSG_DONTWAIT);
}

static void some_turns(void) {
    for (int i = 0; i < 6; i++) {
        channel_send(parent, PARENT_STATUS_ASK, 1, 0, (struct view){NULL, 0});
        REQUIRE(!broken && loop_turn(loop) == 0);
    }
}

static int lowest_free(void) {
    int fd = dup(STDIN_FILENO);
    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!loop)
        start();
    if (size < HEAD || size > INPUT_MAX)
        return 0;
    settle();
    int before = lowest_free();
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    REQUIRE(connect(fd, (struct sockaddr *)&address, address_size) == 0);
    if (data[2] & 2) {
        /* Of Unix, so that it is not taken for one that nothing forces. */
        send_packet(fd, VIEW("\2\0\0\0\10worker-1\1\1"), 1, 4);
        some_turns();
    }
    for (int i = 0; i <= (data[2] & 1); i++) {
        send_packet(fd, view_of(data + HEAD, size - HEAD), data[0] % FDS_MAX, data[1]);
        some_turns();
    }
    close(fd);
    settle();
    REQUIRE(lowest_free() == before);
    return 0;
}

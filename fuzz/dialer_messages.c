/*
 * A hostile egress: messages to the dialer, framed by us (type, id, length and body in the input) or,
 * when the first byte is odd, raw bytes. There is no resolver, so that nothing leaves.
 */
#include "egress/dialer_messages.h"
#include "base/log.h"
#include "egress/dials.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char policy[] = "service api { host *.allowed.test; operation o { GET / } }\n"
                             "sandbox a { grant api o }\n";

static struct loop *loop;
static struct dials *dials;
static int audit;

static void on_bad_peer(void *ctx, uint32_t lane) {
    (void)ctx;
    (void)lane;
}

static void write_generation(struct buf *out) {
    struct lane_info lane = {.id = 1, .names = VIEW("a")};
    struct bundle b = {.policy_file = VIEW("policy"), .policy_text = view_str(policy)};
    struct buf lanes;
    buf_init(&lanes, 256);
    limits_default(&b.limits);
    bundle_put_lane(&lanes, &lane);
    b.lanes = buf_view(&lanes);
    bundle_write(&b, out);
    buf_free(&lanes);
}

static void open_world(void) {
    static struct buf text;
    int fds[2];
    log_open("fuzz", LOG_FATAL);
    loop = loop_new();
    struct dials_options o = {.loop = loop,
                              .resolver = resolver_new(loop, 64),
                              .interfaces = interfaces_new(loop),
                              .lane_max = 8,
                              .active_max = 4,
                              .bad_peer = on_bad_peer};
    dials = dials_new(&o);
    buf_init(&text, 65536);
    write_generation(&text);
    if (!dials || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) != 0 ||
        dials_audit(dials, fds[0]) != 0 || dials_generation(dials, 1, buf_view(&text)) != 0)
        abort();
    audit = fds[1];
    dials_commit(dials, 1);
}

static void frame(struct view input, struct buf *out) {
    struct reader r = reader_of(input);
    while (!r.bad && !view_is_empty(r.rest)) {
        uint8_t type = read_u8(&r), id = read_u8(&r), generation = read_u8(&r);
        struct view body = read_bytes(&r, read_u8(&r));
        buf_put_u32(out, (uint32_t)body.n);
        buf_put_u16(out, type);
        buf_put_u16(out, 0);
        buf_put_u32(out, id);
        buf_put_u32(out, generation);
        buf_put(out, body);
    }
}

static void swallow(int fd) {
    uint8_t p[4096];
    while (recv(fd, p, sizeof p, MSG_DONTWAIT) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf bytes;
    int fds[2];
    if (!loop)
        open_world();
    if (size == 0 || size > 4096 || channel_pair(fds) != 0)
        return 0;
    buf_init(&bytes, 65536 * 2);
    if (data[0] & 1)
        buf_put(&bytes, view_of(data + 1, size - 1));
    else
        frame(view_of(data + 1, size - 1), &bytes);
    if (dials_peer(dials, 1, fds[1]) != 0)
        abort();
    if (buf_len(&bytes) > 0 && write(fds[0], buf_view(&bytes).p, buf_len(&bytes)) < 0)
        abort();
    shutdown(fds[0], SHUT_WR);
    for (int i = 0; i < 3; i++) {
        event_base_loop(loop_base(loop), EVLOOP_NONBLOCK);
        event_base_loopexit(loop_base(loop), &(struct timeval){0, 0});
        if (loop_turn(loop) != 0)
            abort();
    }
    dials_peer_gone(dials, 1);
    swallow(audit);
    swallow(fds[0]);
    close(fds[0]);
    buf_free(&bytes);
    return 0;
}

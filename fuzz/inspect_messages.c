/*
 * What egress may send to inspect: any sequence of messages either drops the
 * channel or is answered in order; no body has more cleared than was sent, and
 * none is answered after its end.
 *
 * Input: messages of one byte type, one byte id, two bytes length, and a body.
 */
#include "egress/inspect_messages.h"
#include "base/log.h"
#include "egress/facts_message.h"
#include "egress/inspect.h"
#include "fuzz/require.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { IDS = 8, TURNS = 6, PLAIN_MAX = 1 << 20 };

struct body {
    uint64_t sent, answered;
    bool ended; /* by inspect, or closed by us */
};

struct world {
    struct body at[IDS];
    bool lost;
};

static void on_lost(void *ctx, int why) {
    struct world *w = ctx;
    (void)why;
    w->lost = true;
}

static void on_own_lost(void *ctx, struct channel *ch, int why) {
    (void)ctx;
    (void)ch;
    (void)why;
}

static int take(void *ctx, struct channel *ch, struct message *m) {
    struct world *w = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    REQUIRE(m->id < IDS);
    struct body *b = &w->at[m->id];
    if (m->type == INSPECT_PLAIN || m->type == INSPECT_CLEAR) {
        b->answered += read_u32(&r);
        REQUIRE(!b->ended && b->answered <= b->sent);
        return 0;
    }
    if (m->type == INSPECT_FOUND) {
        read_block(&r, 128);
        REQUIRE(read_block(&r, 128).n > 0 && read_done(&r));
    }
    if (m->type == INSPECT_FACTS) {
        struct facts *facts;
        REQUIRE(facts_read(m->body, JSON_PATHS_MAX, &facts) == 0);
        REQUIRE(facts_content(facts)->size <= b->sent);
        facts_free(facts);
    }
    b->ended = true;
    return 0;
}

static const struct channel_rule rules[] = {
    {INSPECT_PLAIN, 0, INSPECT_PIECE_MAX + 4, take, "plain"},
    {INSPECT_CLEAR, 0, 4, take, "clear"},
    {INSPECT_FOUND, 0, 1024, take, "found"},
    {INSPECT_DONE, 0, 0, take, "done"},
    {INSPECT_BAD, 0, 1024, take, "bad"},
    {INSPECT_FACTS, 0, FACTS_MAX, take, "facts"},
};

static void on_nothing(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    (void)ctx;
}

/* Turns that do not wait. */
static void run(struct loop *l, struct event *now) {
    for (int i = 0; i < TURNS; i++) {
        event_active(now, EV_READ, 0);
        REQUIRE(loop_turn(l) == 0);
    }
}

/* An id is opened once: what is said about it is then about one body. */
static void send_all(struct world *w, struct channel *ch, struct view script) {
    struct reader r = reader_of(script);
    bool opened[IDS] = {false};
    while (!r.bad && r.rest.n > 0) {
        uint16_t type = read_u8(&r) % 8u;
        uint32_t id = read_u8(&r) % IDS;
        struct view body = read_bytes(&r, read_u16(&r) % 4096);
        if (r.bad)
            return;
        if (type == INSPECT_OPEN) {
            if (opened[id])
                continue;
            opened[id] = true;
        }
        if (type == INSPECT_DATA)
            w->at[id].sent += body.n;
        channel_send(ch, type, id, 0, body);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct world w;
    struct limits limits;
    int fds[2];
    memset(&w, 0, sizeof w);
    log_open("fuzz", LOG_FATAL);
    limits_default(&limits);
    limits.v[LIMIT_EXCHANGES] = 2;
    limits.v[LIMIT_INSPECT_RATIO] = 100;
    struct loop *l = loop_new();
    REQUIRE(l && channel_pair(fds) == 0);
    struct event *now = event_new(loop_base(l), -1, EV_PERSIST, on_nothing, NULL);
    struct inspect *i = inspect_new(l, fds[0], &limits, on_lost, &w);
    struct channel *ch =
        channel_new(l, fds[1], rules, sizeof rules / sizeof *rules, 0, on_own_lost, &w);
    REQUIRE(now && i && ch);
    send_all(&w, ch, view_of(data, size));
    run(l, now);
    REQUIRE(inspect_bodies(i) <= 6);
    inspect_free(i);
    channel_free(ch);
    event_free(now);
    loop_free(l);
    return 0;
}

#include "proxy/client.h"

#include "base/log.h"
#include "proxy/door.h"
#include "proxy/gate.h"
#include "proxy/intake.h"
#include "proxy/names.h"
#include "proxy/passage.h"
#include "proxy/relay.h"
#include "proxy/say.h"
#include "proxy/silence.h"
#include "proxy/socks.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ROUNDS = 4,             /* pieces read for one event, so that others have their turn */
    KEPT_PIECE = 16 * 1024, /* read behind bytes that wait */
    FRESH_PIECE = 128 * 1024,
    LINGER_SECONDS = 2,
    CLOSING_SECONDS = 10,
    /* Bounds that no honest use reaches: limits and credit are far below. */
    IN_MAX = 512 * 1024,
    OUT_MAX = 9 * 1024 * 1024,
};
#define SECOND UINT64_C(1000000000)

/* ---- the table of states ---- */

enum input {
    INPUT_ALL,     /* read whatever comes */
    INPUT_NOTICE,  /* read once, to notice the end; keep the bytes, which are not this state's */
    INPUT_RELAY,   /* as the exchange says */
    INPUT_PASSAGE, /* while egress has room for it */
    INPUT_TLS,     /* TLS reads by itself */
    INPUT_NONE,
};

enum { TIME_KEPT = -1, TIME_OWN = -2, TIME_LINGER = -3, TIME_CLOSING = -4 };

static enum client_step drop_input(struct client *c, struct view *input);

static const struct client_row {
    const char *name;
    enum client_step (*run)(struct client *c, struct view *input);
    void (*ended)(struct client *c); /* the client will send no more */
    void (*late)(struct client *c);
    enum input input;
    int time; /* enum limit, or one of TIME_ */
} rows[CLIENT_STATES] = {
    [CLIENT_FIRST] = {"first", intake_first, client_drop, client_drop, INPUT_ALL, LIMIT_FIRST_BYTE},
    [CLIENT_RELAYED] = {"relayed", intake_relayed, intake_relayed_ended, intake_relayed_ended,
                        INPUT_ALL, LIMIT_FIRST_BYTE},
    [CLIENT_IDLE] = {"idle", intake_step, client_shut, client_shut, INPUT_ALL, LIMIT_IDLE_TIME},
    [CLIENT_HEAD] = {"head", intake_step, intake_ended, intake_late, INPUT_ALL, LIMIT_HEAD_TIME},
    [CLIENT_SOCKS] = {"socks", socks_step, socks_ended, socks_late, INPUT_ALL,
                      LIMIT_HANDSHAKE_TIME},
    [CLIENT_DNS] = {"dns", names_step, client_shut, client_shut, INPUT_ALL, LIMIT_IDLE_TIME},
    [CLIENT_LOOKUP] = {"lookup", NULL, NULL, client_drop, INPUT_NOTICE, LIMIT_ASK_TIME},
    [CLIENT_OPENING] = {"opening", NULL, client_drop, client_drop, INPUT_NOTICE,
                        LIMIT_HANDSHAKE_TIME},
    [CLIENT_SNIFF] = {"sniff", gate_sniff, client_drop, gate_late, INPUT_ALL, LIMIT_HANDSHAKE_TIME},
    [CLIENT_HELLO] = {"hello", gate_hello, client_drop, gate_late, INPUT_ALL, TIME_KEPT},
    [CLIENT_LEAF] = {"leaf", NULL, client_drop, gate_late, INPUT_NOTICE, TIME_KEPT},
    [CLIENT_HANDSHAKE] = {"handshake", NULL, client_drop, gate_late, INPUT_TLS, TIME_KEPT},
    [CLIENT_EXCHANGE] = {"exchange", relay_step, relay_ended, NULL, INPUT_RELAY, TIME_OWN},
    [CLIENT_PASSAGE] = {"passage", passage_step, passage_ended, NULL, INPUT_PASSAGE, TIME_OWN},
    [CLIENT_CLOSING] = {"closing", NULL, NULL, client_drop, INPUT_NONE, TIME_CLOSING},
    [CLIENT_LINGER] = {"linger", drop_input, client_drop, client_drop, INPUT_ALL, TIME_LINGER},
    [CLIENT_DEAD] = {"dead", NULL, NULL, NULL, INPUT_NONE, TIME_OWN},
};

static enum client_step drop_input(struct client *c, struct view *input) {
    (void)c;
    *input = view_skip(*input, input->n);
    return STEP_WAIT;
}

static uint64_t deadline_of(const struct client *c, int time) {
    uint64_t now = loop_now(c->proxy->loop);
    switch (time) {
    case TIME_KEPT:
        return c->deadline;
    case TIME_OWN:
        return UINT64_MAX;
    case TIME_LINGER:
        return now + LINGER_SECONDS * SECOND;
    case TIME_CLOSING:
        return now + CLOSING_SECONDS * SECOND;
    default:
        return now + c->proxy->limits.v[time] * SECOND;
    }
}

/* ---- making room ---- */

/* What was gathered in this turn is written first: whoever reads gets its answer whole. */
static bool may_yield(const struct client *c) {
    if (c->tunnel != 0 || c->is_dirty)
        return false;
    switch (c->state) {
    case CLIENT_FIRST:
    case CLIENT_RELAYED:
    case CLIENT_IDLE:
    case CLIENT_HEAD:
    case CLIENT_SOCKS:
    case CLIENT_DNS:
    case CLIENT_SNIFF:
    case CLIENT_HELLO:
    case CLIENT_CLOSING:
    case CLIENT_LINGER:
        return true;
    case CLIENT_EXCHANGE:
        return c->relay && c->relay->answer == ANSWER_OVER;
    default:
        return false;
    }
}

static void rank(struct client *c) {
    bool yields = may_yield(c);
    if (yields == c->yields)
        return;
    c->yields = yields;
    if (yields)
        TAILQ_INSERT_TAIL(&c->proxy->yielding, c, queue);
    else
        TAILQ_REMOVE(&c->proxy->yielding, c, queue);
}

static void rank_last(struct client *c) {
    if (c->yields)
        TAILQ_REMOVE(&c->proxy->yielding, c, queue);
    c->yields = false;
    rank(c);
}

/* ---- states ---- */

static void bury(struct client *c) {
    c->proxy->n_clients--;
    if (c->relay)
        relay_lost(c->relay);
    c->next_dead = c->proxy->dead;
    c->proxy->dead = c;
    wire_want(&c->wire, false);
    proxy_at_turn_end(c->proxy);
}

void client_enter(struct client *c, enum client_state state) {
    if (c->state == CLIENT_DEAD)
        return;
    log_debug("client %s: %s, then %s", c->peer, rows[c->state].name, rows[state].name);
    c->state = state;
    c->deadline = deadline_of(c, rows[state].time);
    rank_last(c);
    if (state == CLIENT_DEAD)
        bury(c);
}

/* ---- parsers ---- */

struct http1 *client_parser(struct client *c) {
    struct proxy *p = c->proxy;
    if (c->parser)
        return c->parser;
    if (p->n_parsers == 0)
        return c->parser = http1_new(HTTP1_REQUESTS, &p->limits);
    c->parser = p->parsers[--p->n_parsers];
    http1_reset(c->parser);
    return c->parser;
}

void client_parser_done(struct client *c) {
    struct proxy *p = c->proxy;
    if (c->parser && p->n_parsers < PROXY_PARSERS)
        p->parsers[p->n_parsers++] = c->parser;
    else
        http1_free(c->parser);
    c->parser = NULL;
}

/* ---- reading ---- */

static bool wants_input(const struct client *c) {
    if (c->wire.ended || c->is_waiting)
        return false;
    switch (rows[c->state].input) {
    case INPUT_ALL:
    case INPUT_TLS:
        return true;
    case INPUT_NOTICE:
        return buf_len(&c->in) == 0;
    case INPUT_RELAY:
        return relay_wants_input(c->relay);
    case INPUT_PASSAGE:
        return passage_wants_input(c);
    case INPUT_NONE:
        break;
    }
    return false;
}

static void watch(struct client *c) {
    wire_want(&c->wire, wants_input(c));
}

static void run_steps(struct client *c, struct view *input) {
    while (rows[c->state].run && rows[c->state].run(c, input) == STEP_NEXT)
        continue;
}

static void run_on_kept(struct client *c) {
    struct view input = buf_view(&c->in);
    size_t before = input.n;
    run_steps(c, &input);
    /* A step that handed the bytes over (to TLS) has emptied the buffer itself. */
    if (buf_len(&c->in) == before)
        buf_consume(&c->in, before - input.n);
}

void client_wake(struct client *c) {
    if (c->state == CLIENT_DEAD)
        return;
    run_on_kept(c);
    watch(c);
}

static void run_on_fresh(struct client *c, struct view input) {
    run_steps(c, &input);
    if (c->state == CLIENT_DEAD || input.n == 0)
        return;
    buf_put(&c->in, input);
    if (!buf_ok(&c->in))
        client_drop(c);
}

/* How much is read at once into the place that all share. */
static size_t fresh_piece(const struct client *c) {
    size_t n = rows[c->state].input == INPUT_RELAY ? relay_piece(c->relay) : FRESH_PIECE;
    return n < PROXY_PIECE ? n : PROXY_PIECE;
}

/* Reads a piece and runs the steps on it. False: nothing more to read now. */
static bool read_piece(struct client *c) {
    bool kept = buf_len(&c->in) > 0;
    uint8_t *at = kept ? buf_reserve(&c->in, KEPT_PIECE) : c->proxy->piece;
    size_t n = 0;
    enum wire_result result =
        at ? wire_read(&c->wire, at, kept ? KEPT_PIECE : fresh_piece(c), &n) : WIRE_LOST;
    switch (result) {
    case WIRE_DONE:
        if (kept) {
            buf_commit(&c->in, n);
            run_on_kept(c);
        } else {
            run_on_fresh(c, view_of(at, n));
        }
        return c->wire.inside;
    case WIRE_WAIT:
        return false;
    case WIRE_END:
        if (rows[c->state].ended)
            rows[c->state].ended(c);
        return false;
    case WIRE_LOST:
        client_drop(c);
        return false;
    }
    return false;
}

static void client_read(struct client *c) {
    for (int i = 0; i < ROUNDS && wants_input(c); i++) {
        if (rows[c->state].input != INPUT_NOTICE && proxy_lane_full(c->proxy)) {
            c->is_waiting = true;
            c->proxy->n_waiting++;
            return;
        }
        if (!read_piece(c))
            return;
    }
}

void client_resume(struct client *c) {
    if (!c->is_waiting)
        return;
    c->is_waiting = false;
    c->proxy->n_waiting--;
    watch(c);
}

bool client_yield(struct proxy *p) {
    for (struct client *c; (c = TAILQ_FIRST(&p->yielding));) {
        /* A request may be here that nobody has looked at yet, and nobody can while the lane is full. */
        client_resume(c);
        client_read(c);
        watch(c);
        if (c != TAILQ_FIRST(&p->yielding))
            continue;
        if (c->is_waiting)
            return false;
        log_debug("client %s: makes room for another", c->peer);
        client_drop(c);
        return true;
    }
    return false;
}

static void on_readable(evutil_socket_t fd, short what, void *ctx) {
    struct client *c = ctx;
    (void)fd;
    (void)what;
    if (c->state == CLIENT_HANDSHAKE)
        gate_handshake(c);
    else
        client_read(c);
    watch(c);
}

/* ---- writing ---- */

struct buf *client_out(struct client *c) {
    if (!c->is_dirty) {
        c->is_dirty = true;
        c->next_dirty = c->proxy->dirty;
        c->proxy->dirty = c;
        proxy_at_turn_end(c->proxy);
    }
    return &c->wire.out;
}

/* Everything was said: close_notify, FIN, and time for the client to read before a RST can come. */
static void finish(struct client *c) {
    if (c->abrupt || c->wire.ended) {
        if (c->wire.tls && !c->abrupt)
            tls_shutdown(c->wire.tls);
        client_enter(c, CLIENT_DEAD);
        return;
    }
    wire_finish(&c->wire);
    buf_free(&c->in);
    client_enter(c, CLIENT_LINGER);
}

void client_flush(struct client *c) {
    if (c->state == CLIENT_DEAD)
        return;
    enum wire_result result = buf_ok(&c->wire.out) ? wire_flush(&c->wire) : WIRE_LOST;
    if (result == WIRE_LOST) {
        client_drop(c);
        return;
    }
    if (c->relay)
        relay_flushed(c->relay);
    else if (c->state == CLIENT_PASSAGE)
        passage_flushed(c);
    else if (c->state == CLIENT_CLOSING && result == WIRE_DONE)
        finish(c);
    rank(c);
    watch(c);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx) {
    struct client *c = ctx;
    (void)fd;
    (void)what;
    if (c->state == CLIENT_HANDSHAKE) {
        gate_handshake(c);
    } else {
        client_flush(c);
        if (c->wire.read_on_write && c->state != CLIENT_DEAD)
            client_read(c);
    }
    watch(c);
}

/* ---- ending ---- */

void client_shut(struct client *c) {
    if (buf_len(&c->wire.out) > 0)
        client_enter(c, CLIENT_CLOSING);
    else if (c->state != CLIENT_DEAD)
        finish(c);
}

void client_drop(struct client *c) {
    client_enter(c, CLIENT_DEAD);
}

void client_cut(struct client *c, bool reset) {
    c->abrupt = true;
    c->reset = reset;
    client_shut(c);
}

/* ---- life ---- */

struct client *client_new(struct proxy *p, int fd, enum way_in door, const char *peer,
                          const char *meant) {
    struct client *c = calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        return NULL;
    }
    if (wire_init(&c->wire, p->loop, fd, OUT_MAX, on_readable, on_writable, c) != 0) {
        free(c);
        return NULL;
    }
    buf_init(&c->in, IN_MAX);
    c->proxy = p;
    c->door = door;
    c->way = door == WAY_TRANSPARENT ? LANE_WAY_TRANSPARENT : LANE_WAY_CONNECT;
    snprintf(c->peer, sizeof c->peer, "%s", peer);
    snprintf(c->meant, sizeof c->meant, "%s", meant);
    c->next = p->clients;
    c->back = &p->clients;
    if (c->next)
        c->next->back = &c->next;
    p->clients = c;
    p->n_clients++;
    client_enter(c, CLIENT_FIRST);
    if (door == WAY_TRANSPARENT)
        silence_begin(c);
    watch(c);
    return c;
}

void client_free(struct client *c) {
    struct proxy *p = c->proxy;
    assert(c->state == CLIENT_DEAD && !c->is_dirty);
    if (c->is_waiting)
        p->n_waiting--;
    silence_end(c);
    gate_forget(c);
    socks_forget(c);
    names_forget(c);
    client_parser_done(c);
    wire_free(&c->wire, c->reset);
    buf_free(&c->in);
    free(c->passage);
    *c->back = c->next;
    if (c->next)
        c->next->back = c->back;
    free(c);
}

void client_sweep(struct client *c, uint64_t now) {
    if (c->relay) {
        relay_sweep(c->relay, now);
    } else if (now >= c->deadline && c->state != CLIENT_DEAD) {
        log_debug("client %s: too long in state %s", c->peer, rows[c->state].name);
        rows[c->state].late(c);
    }
    if (c->state == CLIENT_IDLE && buf_len(&c->wire.out) == 0)
        buf_free(&c->wire.out);
    if (c->state == CLIENT_IDLE && buf_len(&c->in) == 0)
        buf_free(&c->in);
    watch(c);
}

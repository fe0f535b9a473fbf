#include "egress/egress.h"

#include "base/json.h"
#include "base/log.h"
#include "base/rights.h"
#include "base/secret.h"
#include "broker/broker_messages.h"
#include "ca/ca_messages.h"
#include "egress/ask.h"
#include "egress/datagrams.h"
#include "egress/dialer_messages.h"
#include "egress/exchange.h"
#include "egress/facts_message.h"
#include "egress/hostile.h"
#include "egress/lane_messages.h"
#include "egress/lease.h"
#include "egress/names.h"
#include "egress/splice.h"
#include "egress/suspension.h"
#include "egress/tally.h"
#include "egress/tunnel.h"
#include "http/http1.h"
#include "http/tls.h"

#include <stdio.h>
#include <unistd.h>

/* Heads with a secret, leases, the guard's patterns, broker's channel. */
enum { ARENA_SIZE = 6 << 20 };

/* ---- what each peer may say ---- */

#define LANE(name, function)                                                                       \
    static int name(void *ctx, struct channel *ch, struct message *m) {                            \
        (void)ch;                                                                                  \
        return function(ctx, m);                                                                   \
    }
LANE(on_open, tunnel_take_open)
LANE(on_hello, tunnel_take_hello)
LANE(on_failed, tunnel_take_failed)
LANE(on_close, tunnel_take_close)
LANE(on_request, exchange_take_request)
LANE(on_body, exchange_take_body)
LANE(on_end, exchange_take_end)
LANE(on_gone, exchange_take_gone)
LANE(on_credit, exchange_take_credit)
LANE(on_malformed, exchange_take_malformed)
LANE(on_raw, splice_take_bytes)
LANE(on_raw_end, splice_take_end)
LANE(on_raw_credit, splice_take_credit)
LANE(on_lookup, names_take_lookup)
LANE(on_datagram, datagrams_take)
LANE(on_leaf, leaf_take)
LANE(on_leaf_refused, leaf_take_refused)
LANE(on_ca_changed, leaf_take_changed)
LANE(on_dialed, dialing_take_done)
LANE(on_dial_refused, dialing_take_refused)
LANE(on_lease, lease_take)
LANE(on_lease_refused, lease_take_refused)
LANE(on_lease_drop, lease_take_drop)
LANE(on_certificate, certificate_take)
LANE(on_certificate_refused, certificate_take_refused)
LANE(on_inspected, inspection_take)
#undef LANE

static const struct channel_rule proxy_rules[] = {
    {LANE_OPEN, 0, LANE_HEAD_MAX, on_open, "lane open"},
    {LANE_HELLO, 0, 512, on_hello, "lane hello"},
    {LANE_FAILED, 0, LANE_TEXT_MAX + 16, on_failed, "lane failed"},
    {LANE_CLOSE, 0, 0, on_close, "lane close"},
    {LANE_REQUEST, 0, LANE_HEAD_MAX, on_request, "lane request"},
    {LANE_BODY, 0, LANE_BODY_MAX, on_body, "lane body"},
    {LANE_END, 0, LANE_HEAD_MAX, on_end, "lane end"},
    {LANE_GONE, 0, LANE_TEXT_MAX + 16, on_gone, "lane gone"},
    {LANE_CREDIT, 0, 4, on_credit, "lane credit"},
    {LANE_MALFORMED, 0, 3 * LANE_TEXT_MAX, on_malformed, "lane malformed"},
    {LANE_RAW, 0, LANE_BODY_MAX, on_raw, "lane raw"},
    {LANE_RAW_END, 0, 0, on_raw_end, "lane raw end"},
    {LANE_RAW_CREDIT, 0, 4, on_raw_credit, "lane raw credit"},
    {LANE_LOOKUP, 0, 3 * LANE_TEXT_MAX, on_lookup, "lane lookup"},
    {LANE_DATAGRAM, 0, LANE_TEXT_MAX, on_datagram, "lane datagram"},
};

static const struct channel_rule ca_rules[] = {
    {CA_LEAF, 0, 2 * CA_CERT_MAX + 16, on_leaf, "ca leaf"},
    {CA_REFUSED, 0, 2, on_leaf_refused, "ca refused"},
    {CA_CHANGED, 0, 0, on_ca_changed, "ca changed"},
};

static const struct channel_rule dialer_rules[] = {
    {DIAL_DONE, CHANNEL_FD, 4 * (DIALER_FACTS_MAX + 4), on_dialed, "dial done"},
    {DIAL_REFUSED, 0, 4 * (DIALER_FACTS_MAX + 4), on_dial_refused, "dial refused"},
};

static const struct channel_rule broker_rules[] = {
    {LEASE, 0, LEASE_MAX, on_lease, "lease"},
    {LEASE_REFUSED, 0, 2, on_lease_refused, "lease refused"},
    {LEASE_DROP, 0, CREDENTIAL_NAME_MAX + 4, on_lease_drop, "lease drop"},
    {LEASE_CERTIFICATE, 0, LEASE_MAX, on_certificate, "lease certificate"},
    {LEASE_CERTIFICATE_REFUSED, 0, LEASE_REFUSED_MAX, on_certificate_refused,
     "lease certificate refused"},
};

static const struct channel_rule inspect_rules[] = {
    {INSPECT_PLAIN, 0, INSPECT_PIECE_MAX + 4, on_inspected, "inspect plain"},
    {INSPECT_CLEAR, 0, 4, on_inspected, "inspect clear"},
    {INSPECT_FOUND, 0, 1024, on_inspected, "inspect found"},
    {INSPECT_DONE, 0, 0, on_inspected, "inspect done"},
    {INSPECT_BAD, 0, 1024, on_inspected, "inspect bad"},
    {INSPECT_FACTS, 0, FACTS_MAX, on_inspected, "inspect facts"},
};

/* ---- peers ---- */

static const struct peer {
    enum role role;
    size_t channel; /* offset in struct lane */
    const struct channel_rule *rules;
    size_t n_rules;
    unsigned flags;
} peers[] = {
    {ROLE_PROXY, offsetof(struct lane, proxy), proxy_rules,
     sizeof proxy_rules / sizeof *proxy_rules, 0},
    {ROLE_CA, offsetof(struct lane, ca), ca_rules, sizeof ca_rules / sizeof *ca_rules, 0},
    {ROLE_DIALER, offsetof(struct lane, dialer), dialer_rules,
     sizeof dialer_rules / sizeof *dialer_rules, 0},
    {ROLE_BROKER, offsetof(struct lane, broker), broker_rules,
     sizeof broker_rules / sizeof *broker_rules, CHANNEL_SECRET},
    {ROLE_INSPECT, offsetof(struct lane, inspect), inspect_rules,
     sizeof inspect_rules / sizeof *inspect_rules, CHANNEL_CLEARED},
};

static struct channel **peer_channel(struct lane *l, const struct peer *p) {
    return (struct channel **)(void *)((char *)l + p->channel);
}

static const struct peer *peer_find(enum role role) {
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        if (peers[i].role == role)
            return &peers[i];
    return NULL;
}

/* Everything that waits for that role is refused. */
static void lose_peer(struct lane *l, const struct peer *p) {
    struct channel **ch = peer_channel(l, p);
    channel_free(*ch);
    *ch = NULL;
    if (p->role == ROLE_INSPECT)
        inspection_lose_all(l);
    else
        ask_lose_all(l, p->role);
}

static void on_peer_closed(void *ctx, struct channel *ch, int why) {
    struct lane *l = ctx;
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        if (*peer_channel(l, &peers[i]) != ch)
            continue;
        if (!l->stopping)
            log_line(why == ERR_CLOSED ? LOG_DEBUG : LOG_WARN, "%s's channel: %s",
                     role_name(peers[i].role), err_text(why));
        if (peers[i].role == ROLE_PROXY) {
            /* Without its proxy a lane has nothing to do; the parent starts both anew. */
            loop_stop(l->loop);
            return;
        }
        /* We sent more than we should: that is not the peer's doing, and the lane begins anew. */
        if (why == ERR_LIMIT) {
            loop_stop(l->loop);
            return;
        }
        if (why != ERR_CLOSED)
            child_bad_peer(l->child, peers[i].role, l->id);
        lose_peer(l, &peers[i]);
        return;
    }
}

static void on_proxy_drained(void *ctx) {
    exchange_resume_all(ctx);
    splice_resume_all(ctx);
}

static void on_inspect_drained(void *ctx) {
    inspection_more_room(ctx);
}

static int on_peer(void *ctx, enum role role, uint32_t lane, struct view name, int fd) {
    struct lane *l = ctx;
    const struct peer *p = peer_find(role);
    (void)lane;
    (void)name;
    if (role == ROLE_AUDIT)
        return trail_attach(l, fd);
    if (!p) {
        close(fd);
        return ERR_BAD;
    }
    if (*peer_channel(l, p))
        lose_peer(l, p);
    /* One that was started anew may have found the files of another CA. */
    if (role == ROLE_CA)
        leaf_drop_all(l);
    *peer_channel(l, p) =
        channel_new(l->loop, fd, p->rules, p->n_rules, p->flags, on_peer_closed, l);
    if (l->proxy && role == ROLE_PROXY)
        channel_on_drained(l->proxy, on_proxy_drained, l);
    if (l->inspect && role == ROLE_INSPECT)
        channel_on_drained(l->inspect, on_inspect_drained, l);
    return *peer_channel(l, p) ? 0 : ERR_MEMORY;
}

static void on_peer_gone(void *ctx, enum role role, uint32_t lane) {
    struct lane *l = ctx;
    const struct peer *p = peer_find(role);
    (void)lane;
    if (role == ROLE_AUDIT)
        trail_away(l);
    else if (p && *peer_channel(l, p))
        lose_peer(l, p);
}

/* ---- generations ---- */

static int on_generation(void *ctx, uint32_t number, struct view text) {
    struct lane *l = ctx;
    struct generation *g;
    int result = generation_new(number, text, l->id, l->now, &g);
    if (result != 0)
        return result;
    generation_drop(l->next);
    l->next = g;
    return 0;
}

static int on_file(void *ctx, struct view name, int fd) {
    if (view_equal(name, VIEW("grants")))
        return tally_attach(ctx, fd);
    close(fd);
    return ERR_BAD;
}

static int on_suspended(void *ctx, struct view list) {
    return suspension_take(ctx, list);
}

static void on_opened(void *ctx) {
    struct lane *l = ctx;
    l->opened = true;
}

static void on_commit(void *ctx, uint32_t number) {
    struct lane *l = ctx;
    (void)number;
    generation_drop(l->now);
    l->now = l->next;
    l->next = NULL;
    leaf_drop_all(l);
    lease_drop_all(l);
    upstream_drop_idle(l);
    tunnel_judge_all(l);
    exchange_judge_all(l);
    hostile_start(l);
}

/* ---- the end ---- */

static void on_stop(void *ctx) {
    struct lane *l = ctx;
    /* Proxy finishes its exchanges and closes the channel; then nothing is left. */
    l->stopping = true;
    upstream_drop_idle(l);
}

static void on_status(void *ctx, struct buf *out) {
    struct lane *l = ctx;
    size_t open = l->n_upstreams, idle = l->n_idle;
    buf_printf(out,
               "\"requests\":%llu,\"refusals\":%llu,\"exchanges\":%zu,\"upstreams\":%zu,\"idle_"
               "upstreams\":%zu,\"splices\":%zu,"
               "\"arena_bytes\":%zu,\"audit\":%s",
               (unsigned long long)l->requests, (unsigned long long)l->refusals, exchange_count(l),
               open, idle, l->n_splices, secret_in_use(), trail_ready(l) ? "true" : "false");
    json_put_number(out, "observed", l->observed);
    if (suspension_count(l) > 0)
        json_put_text(out, "trouble",
                      VIEW("a sandbox is suspended, because its answers held many parts of a "
                           "credential: `exeat log --json` has the event sandbox_suspended"));
    tally_put_status(l, out);
}

static const struct child_ops ops = {
    .on_peer = on_peer,
    .on_peer_gone = on_peer_gone,
    .on_file = on_file,
    .on_generation = on_generation,
    .on_commit = on_commit,
    .on_suspended = on_suspended,
    .on_opened = on_opened,
    .on_stop = on_stop,
    .on_status = on_status,
};

static int start(const struct role_args *args) {
    int result = http1_self_test();
    if (result == 0)
        result = tls_start();
    if (result == 0)
        result = secret_arena_open(ARENA_SIZE);
    return result == 0 ? rights_enter(args) : result;
}

struct lane *egress_new(struct loop *loop, const struct role_args *args) {
    static struct lane lane;
    lane.id = args->lane;
    lane.loop = loop;
    hostile_plan(args);
    lane.child = loop ? child_new(loop, args, &ops, &lane) : NULL;
    if (!lane.child || ask_start(&lane) != 0)
        return NULL;
    trail_start(&lane);
    return exchange_start(&lane) == 0 ? &lane : NULL;
}

int egress_main(const struct role_args *args) {
    char name[32];
    snprintf(name, sizeof name, "egress %u", args->lane);
    log_open(name, args->debug ? LOG_DEBUG : LOG_INFO);
    int result = start(args);
    struct lane *lane = result == 0 ? egress_new(loop_new(), args) : NULL;
    if (!lane) {
        log_fatal("cannot start: %s", err_text(result == 0 ? ERR_MEMORY : result));
        return 1;
    }
    child_up(lane->child, (struct view){NULL, 0});
    return loop_run(lane->loop) == 0 ? 0 : 1;
}

#include "egress/dials.h"

#include "base/log.h"
#include "egress/dialer_messages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One DIAL_ASK until it is answered. */
struct request {
    struct lane_peer *lane;
    struct party *party;
    struct request *next;
    struct dial *dial;
    uint32_t id;
    bool active;    /* at work, else it waits for its turn */
    bool cancelled; /* not to be answered */
};

/* What one sandbox of a lane has asked for; there while it is anything. */
struct party {
    struct party *next;
    size_t n, active;
    uint64_t turn; /* when it had its last */
    char sandbox[SANDBOX_NAME_MAX + 1];
};

struct lane_peer {
    struct dials *dials;
    struct lane_peer *next;
    struct channel *channel;
    struct party *parties;
    struct request *first, **last; /* oldest first */
    size_t n, active;
    uint32_t id;
};

struct dials {
    struct dials_options options;
    struct resolver_server system[RESOLVERS_MAX];
    struct dial_tools tools;
    struct dial_rules *prepared;
    struct lane_peer *lanes; /* the lane that is served next stands first */
    struct deferred schedule;
    size_t active;
    uint64_t turns, done, refused;
};

/* ---- answers ---- */

static void put_facts(struct buf *b, const struct dial_end *e) {
    buf_put_block(b, view_str(e->address));
    buf_put_block(b, view_str(e->aliases));
}

static void answer_refused(struct channel *ch, uint32_t id, const struct dial_end *e) {
    struct buf *b = channel_begin(ch, DIAL_REFUSED, id, e->generation);
    buf_put_u16(b, (uint16_t)e->reason);
    buf_put_block(b, view_str(e->detail));
    put_facts(b, e);
    channel_end(ch);
}

/* The channel may be gone afterwards. */
static void answer_done(struct channel *ch, uint32_t id, const struct dial_end *e) {
    struct buf b;
    buf_init(&b, 2 * DIALER_FACTS_MAX);
    put_facts(&b, e);
    buf_put_block(&b, view_str(e->where.country));
    buf_put_block(&b, view_str(e->where.asn));
    if (buf_ok(&b)) {
        channel_send_fd(ch, DIAL_DONE, id, e->generation, buf_view(&b), e->fd);
        /* At once: a channel holds few descriptors back. */
        channel_flush(ch);
    } else {
        struct dial_end refused = *e;
        close(e->fd);
        refused.reason = REASON_DIALER_UNAVAILABLE;
        refused.detail = "out of memory";
        answer_refused(ch, id, &refused);
    }
    buf_free(&b);
}

static void refuse_at_once(struct lane_peer *lane, uint32_t id, enum reason reason,
                           const char *detail) {
    struct dials *d = lane->dials;
    const struct dial_end end = {.reason = reason,
                                 .fd = -1,
                                 .detail = detail,
                                 .address = "",
                                 .aliases = "",
                                 .generation = d->tools.rules ? d->tools.rules->generation : 0};
    d->refused++;
    answer_refused(lane->channel, id, &end);
}

/* ---- parties ---- */

static struct party *party_find(const struct lane_peer *lane, const char *sandbox) {
    struct party *p = lane->parties;
    while (p && strcmp(p->sandbox, sandbox) != 0)
        p = p->next;
    return p;
}

static struct party *party_get(struct lane_peer *lane, const char *sandbox) {
    struct party *p = party_find(lane, sandbox);
    if (p || !(p = calloc(1, sizeof *p)))
        return p;
    memcpy(p->sandbox, sandbox, strlen(sandbox) + 1);
    p->next = lane->parties;
    return lane->parties = p;
}

static void party_drop_unused(struct lane_peer *lane, struct party *p) {
    struct party **at = &lane->parties;
    if (p->n > 0)
        return;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    free(p);
}

/* ---- requests ---- */

static void request_unlink(struct request *r) {
    struct lane_peer *lane = r->lane;
    struct request **at = &lane->first;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    if (!r->next)
        lane->last = at;
    lane->n--;
    r->party->n--;
    if (r->active) {
        lane->dials->active--;
        lane->active--;
        r->party->active--;
    }
    party_drop_unused(lane, r->party);
    loop_defer(lane->dials->options.loop, &lane->dials->schedule);
}

static void on_dial_end(void *ctx, const struct dial_end *e) {
    struct request *r = ctx;
    struct dials *d = r->lane->dials;
    struct channel *ch = r->lane->channel;
    uint32_t id = r->id;
    bool wanted = !r->cancelled;
    request_unlink(r);
    free(r);
    if (e->reason == REASON_ALLOWED && wanted)
        d->done++;
    else
        d->refused++;
    if (!wanted && e->fd >= 0)
        close(e->fd);
    else if (wanted && e->reason == REASON_ALLOWED)
        answer_done(ch, id, e);
    else if (wanted)
        answer_refused(ch, id, e);
}

static struct request *request_new(struct lane_peer *lane, uint32_t id,
                                   const struct dial_wish *wish) {
    struct party *party = party_get(lane, wish->sandbox);
    struct request *r = party ? calloc(1, sizeof *r) : NULL;
    if (r)
        r->dial = dial_new(&lane->dials->tools, wish, on_dial_end, r);
    if (!r || !r->dial) {
        free(r);
        if (party)
            party_drop_unused(lane, party);
        return NULL;
    }
    r->lane = lane;
    r->id = id;
    r->party = party;
    *lane->last = r;
    lane->last = &r->next;
    lane->n++;
    party->n++;
    return r;
}

/* Moves a lane behind the others. */
static void to_the_back(struct lane_peer **at) {
    struct lane_peer *lane = *at, **end = at;
    *at = lane->next;
    while (*end)
        end = &(*end)->next;
    lane->next = NULL;
    *end = lane;
}

/* As egress/share.c does it: whoever comes next finds as much free as the greediest holds. */
static bool has_share(const struct dials *d, const struct lane_peer *lane) {
    return lane->active < d->options.active_max - d->active;
}

/* The same within a lane, whose share is left to its sandboxes. */
static bool party_has_share(const struct lane_peer *lane, const struct party *p) {
    return p->active < lane->dials->options.active_max - lane->dials->active - lane->active;
}

static bool comes_before(const struct party *a, const struct party *b) {
    return a->active < b->active || (a->active == b->active && a->turn < b->turn);
}

/* The oldest that waits of the sandbox that has the fewest at work. */
static struct request *first_waiting(const struct lane_peer *lane) {
    struct request *found = NULL;
    for (struct request *r = lane->first; r; r = r->next)
        if (!r->active && party_has_share(lane, r->party) &&
            (!found || comes_before(r->party, found->party)))
            found = r;
    return found;
}

/* The next dial to start: of the first lane that has one waiting, which then goes to the back. */
static struct request *take_turn(struct dials *d) {
    for (struct lane_peer **at = &d->lanes; *at; at = &(*at)->next) {
        struct request *r = has_share(d, *at) ? first_waiting(*at) : NULL;
        if (!r)
            continue;
        to_the_back(at);
        return r;
    }
    return NULL;
}

static void on_schedule(void *ctx) {
    struct dials *d = ctx;
    struct request *r;
    while (d->active < d->options.active_max && (r = take_turn(d)) != NULL) {
        r->active = true;
        r->lane->active++;
        r->party->active++;
        r->party->turn = ++d->turns;
        d->active++;
        dial_start(r->dial);
    }
}

/* ---- messages ---- */

static int read_wish(struct lane_peer *lane, struct view body, struct dial_wish *out) {
    struct reader r = reader_of(body);
    struct view sandbox = read_block(&r, SANDBOX_NAME_MAX);
    uint8_t tls = read_u8(&r);
    struct view host = read_block(&r, HOST_SIZE - 1);
    uint16_t port = read_u16(&r);
    *out = (struct dial_wish){.lane = lane->id, .tls = tls == 1};
    if (!read_done(&r) || tls > 1 || view_cstr(sandbox, out->sandbox, sizeof out->sandbox) != 0)
        return ERR_BAD;
    /* Spelled otherwise: egress did not judge what it asks. */
    return authority_read(host, port, &out->authority);
}

static struct request *find_request(const struct lane_peer *lane, uint32_t id) {
    struct request *r = lane->first;
    while (r && (r->id != id || r->cancelled))
        r = r->next;
    return r;
}

static bool has_room(const struct lane_peer *lane, const char *sandbox) {
    const struct party *p = party_find(lane, sandbox);
    size_t most = lane->dials->options.lane_max;
    return lane->n < most && (!p || p->n < most - lane->n);
}

static int take_ask(void *ctx, struct channel *ch, struct message *m) {
    struct lane_peer *lane = ctx;
    struct dials *d = lane->dials;
    struct dial_wish wish;
    (void)ch;
    if (read_wish(lane, m->body, &wish) != 0 || find_request(lane, m->id))
        return ERR_BAD;
    if (!d->tools.rules || m->generation != d->tools.rules->generation) {
        refuse_at_once(lane, m->id, REASON_NOT_READY, "another generation is in use");
        return 0;
    }
    if (!has_room(lane, wish.sandbox)) {
        refuse_at_once(lane, m->id, REASON_TOO_MANY, "too many dials of this sandbox");
        return 0;
    }
    struct request *r = request_new(lane, m->id, &wish);
    if (!r)
        refuse_at_once(lane, m->id, REASON_DIALER_UNAVAILABLE, "out of memory");
    else if (dial_judge(r->dial))
        loop_defer(d->options.loop, &d->schedule);
    return 0;
}

static int take_cancel(void *ctx, struct channel *ch, struct message *m) {
    struct request *r = find_request(ctx, m->id);
    (void)ch;
    /* None: the answer and the cancellation have crossed. */
    if (r) {
        r->cancelled = true;
        dial_abandon(r->dial);
    }
    return 0;
}

static const struct channel_rule rules[] = {
    {DIAL_ASK, 0, SANDBOX_NAME_MAX + HOST_SIZE + 16, take_ask, "dial ask"},
    {DIAL_CANCEL, 0, 0, take_cancel, "dial cancel"},
};

/* ---- lanes ---- */

static void lane_free(struct lane_peer *lane) {
    struct dials *d = lane->dials;
    struct lane_peer **at = &d->lanes;
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    for (struct request *r = lane->first, *next; r; r = next) {
        next = r->next;
        request_unlink(r);
        dial_free(r->dial);
        free(r);
    }
    channel_free(lane->channel);
    free(lane);
}

static void on_lane_closed(void *ctx, struct channel *ch, int why) {
    struct lane_peer *lane = ctx;
    struct dials *d = lane->dials;
    uint32_t id = lane->id;
    (void)ch;
    lane_free(lane);
    if (why != ERR_CLOSED) {
        log_warn("egress %u: its channel is dropped: %s", id, err_text(why));
        d->options.bad_peer(d->options.ctx, id);
    }
}

void dials_peer_gone(struct dials *d, uint32_t lane) {
    struct lane_peer *at = d->lanes;
    while (at && at->id != lane)
        at = at->next;
    if (at)
        lane_free(at);
}

int dials_peer(struct dials *d, uint32_t lane, int fd) {
    dials_peer_gone(d, lane);
    struct lane_peer *peer = calloc(1, sizeof *peer);
    if (!peer) {
        close(fd);
        return ERR_MEMORY;
    }
    peer->channel = channel_new(d->options.loop, fd, rules, sizeof rules / sizeof *rules, 0,
                                on_lane_closed, peer);
    if (!peer->channel) {
        free(peer);
        return ERR_MEMORY;
    }
    peer->dials = d;
    peer->id = lane;
    peer->last = &peer->first;
    peer->next = d->lanes;
    d->lanes = peer;
    return 0;
}

/* ---- audit ---- */

int dials_audit(struct dials *d, int fd) {
    if (fd >= 0)
        return audit_stream_attach(&d->tools.audit, fd);
    audit_stream_away(&d->tools.audit);
    return 0;
}

/* ---- generations ---- */

int dials_generation(struct dials *d, uint32_t generation, struct view text) {
    struct dial_rules *rules_new;
    int result = dial_rules_new(generation, text, d->system, d->options.n_system, &rules_new);
    if (result != 0)
        return result;
    dial_rules_free(d->prepared);
    d->prepared = rules_new;
    return 0;
}

static bool same_servers(const struct dial_rules *a, const struct dial_rules *b) {
    if (!a || a->n_servers != b->n_servers)
        return false;
    for (size_t i = 0; i < a->n_servers; i++)
        if (a->servers[i].port != b->servers[i].port ||
            !address_equal(&a->servers[i].address, &b->servers[i].address))
            return false;
    return true;
}

/* Denied dials end here; each takes only itself out of the list. */
static void judge_again(struct dials *d) {
    for (struct lane_peer *lane = d->lanes; lane; lane = lane->next)
        for (struct request *r = lane->first, *next; r; r = next) {
            next = r->next;
            (void)dial_judge(r->dial);
        }
}

void dials_commit(struct dials *d, uint32_t generation) {
    struct dial_rules *old = d->tools.rules;
    assert(d->prepared && d->prepared->generation == generation);
    d->tools.rules = d->prepared;
    d->prepared = NULL;
    judge_again(d);
    if (!same_servers(old, d->tools.rules) &&
        resolver_use(d->options.resolver, d->tools.rules->servers, d->tools.rules->n_servers) != 0)
        log_warn("generation %u: its resolvers cannot be used", generation);
    if (d->tools.rules->n_servers == 0)
        log_warn("generation %u: there is no resolver: only static hosts and addresses work",
                 generation);
    dial_rules_free(old);
}

/* ---- life ---- */

void dials_status(const struct dials *d, struct buf *out) {
    size_t dials = 0;
    for (const struct lane_peer *lane = d->lanes; lane; lane = lane->next)
        dials += lane->n;
    buf_printf(out,
               "\"dials\":%zu,\"waiting\":%zu,\"lookups\":%zu,\"connected\":%llu,\"refused\":%llu",
               dials, dials - d->active, resolver_lookups(d->options.resolver),
               (unsigned long long)d->done, (unsigned long long)d->refused);
}

struct dials *dials_new(const struct dials_options *o) {
    struct dials *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->options = *o;
    if (d->options.n_system > RESOLVERS_MAX)
        d->options.n_system = RESOLVERS_MAX;
    if (d->options.n_system > 0)
        memcpy(d->system, o->system, d->options.n_system * sizeof *d->system);
    d->options.system = d->system;
    d->tools = (struct dial_tools){.loop = o->loop,
                                   .resolver = o->resolver,
                                   .interfaces = o->interfaces,
                                   .geography = o->geography};
    audit_stream_init(&d->tools.audit, o->loop, "dialer", NULL, NULL);
    d->schedule = (struct deferred){.run = on_schedule, .ctx = d};
    return d;
}

void dials_free(struct dials *d) {
    if (!d)
        return;
    for (struct lane_peer *lane = d->lanes, *next; lane; lane = next) {
        next = lane->next;
        lane_free(lane);
    }
    audit_stream_close(&d->tools.audit);
    loop_forget(d->options.loop, &d->schedule);
    dial_rules_free(d->tools.rules);
    dial_rules_free(d->prepared);
    free(d);
}

#include "broker/lend.h"

#include "base/log.h"
#include "broker/issue.h"
#include "policy/bundle.h"

#include <stdlib.h>
#include <string.h>

struct lane {
    struct lender *lender;
    struct lane *next;
    struct channel *channel;
    uint32_t id;
};

struct lender {
    struct loop *loop;
    struct custody *custody;
    struct lane *lanes;
    void (*bad)(void *ctx, uint32_t lane);
    void *ctx;
};

/* ---- one lease ---- */

/* The decision alone: REASON_ALLOWED, or why not. */
static enum reason judge(const struct custody *c, const struct journal_lease *ask,
                         const uint8_t fingerprint[DIGEST_SIZE]) {
    if (!c->mandate || ask->generation != c->mandate->number)
        return REASON_NOT_READY;
    if (!c->vault)
        return REASON_BROKER_UNAVAILABLE;
    if (!mandate_lane_has(c->mandate, ask->lane, ask->sandbox) ||
        !issue_covers(vault_inventory(c->vault), ask->sandbox, ask->credential, fingerprint))
        return REASON_PLACEHOLDER_WRONG_IDENTITY;
    if (!policy_lends(c->mandate->policy, ask->sandbox, ask->credential, ask->authority))
        return REASON_PLACEHOLDER_WRONG_DESTINATION;
    return REASON_ALLOWED;
}

/* NULL: it may be shown. */
static const char *unshown(const struct custody *c, const struct journal_lease *ask,
                           uint64_t seconds) {
    const struct vault_secret *s = inventory_secret(vault_inventory(c->vault), ask->credential);
    if (!mandate_lane_has(c->mandate, ask->lane, ask->sandbox) ||
        !policy_shows(c->mandate->policy, ask->sandbox, ask->credential, ask->authority))
        return "the policy does not show the client certificate for this sandbox at this host";
    if (!s)
        return "the vault has no client certificate of that name: `exeat secret add`";
    if (!vault_secret_is_certificate(s))
        return "what the vault has under that name is no client certificate";
    return seconds < s->certificate.not_after
               ? NULL
               : "the client certificate has expired: `exeat secret rotate`";
}

/* The same of a client certificate, at this time; *detail: static, or NULL. */
static enum reason judge_certificate(const struct custody *c, const struct journal_lease *ask,
                                     uint64_t seconds, const char **detail) {
    *detail = NULL;
    if (!c->mandate || ask->generation != c->mandate->number)
        return REASON_NOT_READY;
    if (!c->vault)
        return REASON_BROKER_UNAVAILABLE;
    *detail = unshown(c, ask, seconds);
    return *detail ? REASON_CERTIFICATE_UNAVAILABLE : REASON_ALLOWED;
}

/* fingerprint: NULL where there is none to be read. */
static int read_ask(const struct message *m, struct journal_lease *ask, struct authority *authority,
                    const uint8_t **fingerprint) {
    struct reader r = reader_of(m->body);
    ask->generation = m->generation;
    ask->sandbox = read_block(&r, NAME_SIZE - 1);
    ask->credential = read_block(&r, NAME_SIZE - 1);
    struct view host = read_block(&r, HOST_SIZE - 1);
    uint16_t port = read_u16(&r);
    if (fingerprint)
        *fingerprint = read_bytes(&r, DIGEST_SIZE).p;
    if (!read_done(&r) || authority_read(host, port, authority) != 0)
        return ERR_BAD;
    ask->authority = authority;
    return 0;
}

static void refuse(struct channel *ch, const struct message *m, enum reason reason) {
    buf_put_u16(channel_begin(ch, LEASE_REFUSED, m->id, m->generation), (uint16_t)reason);
    channel_end(ch);
}

static void lend(const struct custody *c, struct channel *ch, const struct message *m,
                 const struct journal_lease *ask, struct view secret) {
    const struct vault_secret *s = inventory_secret(vault_inventory(c->vault), ask->credential);
    struct buf *b = channel_begin(ch, LEASE, m->id, m->generation);
    buf_put_u32(b, ask->version);
    buf_put_u32(b, (uint32_t)c->mandate->limits.v[LIMIT_LEASE_TIME]);
    buf_put_u16(b, (uint16_t)strlen(s->like));
    buf_put_block(b, secret);
    channel_end(ch);
}

static struct journal_lease ask_of(const struct lane *lane, const char *event) {
    const struct mandate *m = lane->lender->custody->mandate;
    bool unenforced = m && bundle_lane_unenforced(buf_view(&m->lanes), lane->id);
    return (struct journal_lease){.lane = lane->id, .unenforced = unenforced, .event = event};
}

static int take_ask(void *ctx, struct channel *ch, struct message *m) {
    struct lane *lane = ctx;
    struct custody *c = lane->lender->custody;
    struct journal_lease ask = ask_of(lane, "lease");
    struct authority authority;
    const uint8_t *fingerprint;
    struct buf secret;
    if (read_ask(m, &ask, &authority, &fingerprint) != 0)
        return ERR_BAD;
    buf_init_secret(&secret, SECRET_MAX);
    ask.reason = judge(c, &ask, fingerprint);
    if (ask.reason == REASON_ALLOWED) {
        int result = vault_reveal(c->vault, ask.credential, &secret, &ask.version);
        if (result != 0) {
            log_warn("vault: %.*s cannot be read: %s", VIEW_ARG(ask.credential), err_text(result));
            ask.reason = REASON_BROKER_UNAVAILABLE;
        }
    }
    if (journal_lease(c->journal, &ask) != 0)
        ask.reason = REASON_AUDIT_UNAVAILABLE;
    if (ask.reason == REASON_ALLOWED)
        lend(c, ch, m, &ask, buf_view(&secret));
    else
        refuse(ch, m, ask.reason);
    ask.reason == REASON_ALLOWED ? c->lent++ : c->refused++;
    buf_free(&secret);
    return 0;
}

/* ---- one client certificate ---- */

static void refuse_certificate(struct channel *ch, const struct message *m,
                               const struct journal_lease *ask) {
    struct buf *b = channel_begin(ch, LEASE_CERTIFICATE_REFUSED, m->id, m->generation);
    buf_put_u16(b, (uint16_t)ask->reason);
    buf_put_block(b, view_str(ask->detail ? ask->detail : ""));
    channel_end(ch);
}

static int reveal_certificate(struct custody *c, struct journal_lease *ask, struct buf *chain,
                              struct buf *digits) {
    int result = vault_reveal(c->vault, ask->credential, digits, &ask->version);
    if (result == 0)
        result = vault_chain(c->vault, ask->credential, chain);
    if (result == 0)
        ask->certificate =
            inventory_secret(vault_inventory(c->vault), ask->credential)->certificate.fingerprint;
    else
        log_warn("vault: %.*s cannot be read: %s", VIEW_ARG(ask->credential), err_text(result));
    return result;
}

static int take_ask_certificate(void *ctx, struct channel *ch, struct message *m) {
    struct lane *lane = ctx;
    struct custody *c = lane->lender->custody;
    struct journal_lease ask = ask_of(lane, "certificate_lent");
    struct authority authority;
    struct buf chain, digits;
    if (read_ask(m, &ask, &authority, NULL) != 0)
        return ERR_BAD;
    buf_init(&chain, CERTIFICATE_CHAIN_MAX);
    buf_init_secret(&digits, SECRET_MAX);
    ask.reason = judge_certificate(c, &ask, clock_wall() / 1000000000u, &ask.detail);
    if (ask.reason == REASON_ALLOWED && reveal_certificate(c, &ask, &chain, &digits) != 0)
        ask.reason = REASON_BROKER_UNAVAILABLE;
    if (journal_lease(c->journal, &ask) != 0)
        ask.reason = REASON_AUDIT_UNAVAILABLE;
    if (ask.reason == REASON_ALLOWED) {
        struct buf *b = channel_begin(ch, LEASE_CERTIFICATE, m->id, m->generation);
        buf_put(b, view_of(ask.certificate, DIGEST_SIZE));
        buf_put_block(b, buf_view(&chain));
        buf_put_block(b, buf_view(&digits));
        channel_end(ch);
    } else {
        refuse_certificate(ch, m, &ask);
    }
    ask.reason == REASON_ALLOWED ? c->lent++ : c->refused++;
    buf_free(&chain);
    buf_free(&digits);
    return 0;
}

/* ---- lanes ---- */

static const struct channel_rule lane_rules[] = {
    {LEASE_ASK, 0, 1024, take_ask, "lease ask"},
    {LEASE_ASK_CERTIFICATE, 0, 1024, take_ask_certificate, "lease ask certificate"},
};

static void unlink_lane(struct lane *lane) {
    struct lane **at = &lane->lender->lanes;
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    channel_free(lane->channel);
    free(lane);
}

static void on_lane_closed(void *ctx, struct channel *ch, int why) {
    struct lane *lane = ctx;
    struct lender *n = lane->lender;
    uint32_t id = lane->id;
    (void)ch;
    log_line(why == ERR_CLOSED ? LOG_DEBUG : LOG_WARN, "lane %u: egress's channel: %s", id,
             err_text(why));
    unlink_lane(lane);
    if (why == ERR_BAD || why == ERR_LIMIT)
        n->bad(n->ctx, id);
}

static struct lane *find_lane(const struct lender *n, uint32_t id) {
    struct lane *lane = n->lanes;
    while (lane && lane->id != id)
        lane = lane->next;
    return lane;
}

int lender_add(struct lender *n, uint32_t id, int fd) {
    lender_remove(n, id);
    struct lane *lane = calloc(1, sizeof *lane);
    if (!lane) {
        evutil_closesocket(fd);
        return ERR_MEMORY;
    }
    *lane = (struct lane){.lender = n, .id = id};
    lane->channel = channel_new(n->loop, fd, lane_rules, sizeof lane_rules / sizeof *lane_rules,
                                CHANNEL_SECRET, on_lane_closed, lane);
    if (!lane->channel) {
        free(lane);
        return ERR_MEMORY;
    }
    lane->next = n->lanes;
    n->lanes = lane;
    return 0;
}

void lender_remove(struct lender *n, uint32_t id) {
    struct lane *lane = find_lane(n, id);
    if (lane)
        unlink_lane(lane);
}

void lender_recall(struct lender *n, struct view credential) {
    for (struct lane *lane = n->lanes; lane; lane = lane->next) {
        buf_put_block(channel_begin(lane->channel, LEASE_DROP, 0, 0), credential);
        channel_end(lane->channel);
    }
}

size_t lender_lanes(const struct lender *n) {
    size_t count = 0;
    for (const struct lane *lane = n->lanes; lane; lane = lane->next)
        count++;
    return count;
}

struct lender *lender_new(struct loop *l, struct custody *c, void (*bad)(void *ctx, uint32_t lane),
                          void *ctx) {
    struct lender *n = calloc(1, sizeof *n);
    if (n)
        *n = (struct lender){.loop = l, .custody = c, .bad = bad, .ctx = ctx};
    return n;
}

void lender_free(struct lender *n) {
    if (!n)
        return;
    for (struct lane *lane = n->lanes, *next; lane; lane = next) {
        next = lane->next;
        unlink_lane(lane);
    }
    free(n);
}

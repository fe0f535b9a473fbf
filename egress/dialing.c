#include "egress/dialing.h"

#include "egress/ask.h"
#include "egress/dialer_messages.h"
#include "egress/generation.h"
#include "egress/geography.h"
#include "egress/hostile.h"

enum { RETRY_MS = 20 };
#define SECOND UINT64_C(1000000000)

static void on_lost(struct lane *l, void *ctx, enum reason why) {
    struct dialing *d = ctx;
    (void)l;
    d->ask = 0;
    d->failed(d->ctx, why, (struct view){NULL, 0});
}

static void ask(struct dialing *d) {
    struct lane *l = d->lane;
    uint64_t seconds = lane_limit(l, LIMIT_DNS_TIME) + lane_limit(l, LIMIT_CONNECT_TIME) + 1;
    d->ask = l->dialer ? ask_new(l, ROLE_DIALER, seconds, on_lost, d) : 0;
    if (!d->ask) {
        d->failed(d->ctx, REASON_DIALER_UNAVAILABLE, (struct view){NULL, 0});
        return;
    }
    struct buf *b = channel_begin(l->dialer, DIAL_ASK, d->ask, d->generation);
    buf_put_block(b, view_str(d->sandbox));
    buf_put_u8(b, d->tls);
    buf_put_block(b, view_str(d->authority->host));
    buf_put_u16(b, d->authority->port);
    channel_end(l->dialer);
}

void dialing_start(struct dialing *d) {
    d->give_up = loop_now(d->lane->loop) + lane_limit(d->lane, LIMIT_ASK_TIME) * SECOND;
    ask(d);
}

void dialing_end(struct dialing *d) {
    struct lane *l = d->lane;
    if (d->ask) {
        if (l->dialer)
            channel_send(l->dialer, DIAL_CANCEL, d->ask, d->generation, (struct view){NULL, 0});
        ask_forget(l, d->ask);
        d->ask = 0;
    }
    if (d->retry)
        event_free(d->retry);
    d->retry = NULL;
}

bool dialing_suits(const struct dialing *d, const struct generation *g, const struct service *s) {
    struct address a;
    if (!service_permits_location(s, view_str(d->country), geography_asn(d->asn)))
        return false;
    /* Behind a proxy the address is the proxy's. */
    return g->behind_proxy ||
           (address_parse(view_str(d->address), &a) == 0 && service_permits_address(s, &a) &&
            !policy_never_address(g->policy, &a, d->authority->port));
}

/* ---- answers ---- */

static void keep_text(char *out, size_t size, struct view v) {
    if (view_cstr(view_head(v, size - 1), out, size) != 0)
        out[0] = 0;
}

static struct dialing *answered(struct lane *l, uint32_t id, struct view address,
                                struct view aliases) {
    struct dialing *d = ask_take(l, ROLE_DIALER, id, on_lost);
    if (!d)
        return NULL;
    d->ask = 0;
    keep_text(d->address, sizeof d->address, address);
    keep_text(d->aliases, sizeof d->aliases, aliases);
    return d;
}

int dialing_take_done(struct lane *l, struct message *m) {
    if (hostile_heard("dial", m, true))
        return 0;
    struct reader r = reader_of(m->body);
    struct view address = read_block(&r, DIALER_FACTS_MAX),
                aliases = read_block(&r, DIALER_FACTS_MAX);
    struct view country = read_block(&r, DIALER_FACTS_MAX), asn = read_block(&r, DIALER_FACTS_MAX);
    if (!read_done(&r))
        return ERR_BAD;
    struct dialing *d = answered(l, m->id, address, aliases);
    if (!d)
        return 0;
    int fd = m->fd;
    m->fd = -1;
    keep_text(d->country, sizeof d->country, country);
    keep_text(d->asn, sizeof d->asn, asn);
    d->connected(d->ctx, fd);
    return 0;
}

static void on_retry(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    ask(ctx);
}

static bool retry_later(struct dialing *d) {
    struct timeval soon = {0, RETRY_MS * 1000};
    if (loop_now(d->lane->loop) >= d->give_up)
        return false;
    if (!d->retry)
        d->retry = event_new(loop_base(d->lane->loop), -1, 0, on_retry, d);
    return d->retry && event_add(d->retry, &soon) == 0;
}

int dialing_take_refused(struct lane *l, struct message *m) {
    if (hostile_heard("dial", m, false))
        return 0;
    struct reader r = reader_of(m->body);
    uint16_t why = read_u16(&r);
    struct view detail = read_block(&r, DIALER_FACTS_MAX);
    struct view address = read_block(&r, DIALER_FACTS_MAX),
                aliases = read_block(&r, DIALER_FACTS_MAX);
    if (!read_done(&r) || why == REASON_ALLOWED || why >= REASON_COUNT)
        return ERR_BAD;
    struct dialing *d = answered(l, m->id, address, aliases);
    if (!d)
        return 0;
    /* Dialer is about to change to our generation, or we to its: then the asker is judged again. */
    if (why == REASON_NOT_READY && retry_later(d))
        return 0;
    d->failed(d->ctx, (enum reason)why, detail);
    return 0;
}

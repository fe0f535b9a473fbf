#include "egress/certificate.h"

#include "base/client_key.h"
#include "base/digest.h"
#include "broker/broker_messages.h"
#include "egress/ask.h"
#include "egress/hostile.h"

enum { RETRY_MS = 20 };
#define SECOND UINT64_C(1000000000)

static void on_lost(struct lane *l, void *ctx, enum reason why) {
    struct certificate_ask *c = ctx;
    (void)l;
    c->ask = 0;
    c->failed(c->ctx, why, (struct view){NULL, 0});
}

static void ask(struct certificate_ask *c) {
    struct lane *l = c->lane;
    c->ask = l->broker ? ask_new(l, ROLE_BROKER, lane_limit(l, LIMIT_ASK_TIME), on_lost, c) : 0;
    if (!c->ask) {
        c->failed(c->ctx, REASON_BROKER_UNAVAILABLE, (struct view){NULL, 0});
        return;
    }
    struct buf *b = channel_begin(l->broker, LEASE_ASK_CERTIFICATE, c->ask, c->generation);
    buf_put_block(b, view_str(c->sandbox));
    buf_put_block(b, view_str(c->name));
    buf_put_block(b, view_str(c->authority->host));
    buf_put_u16(b, c->authority->port);
    channel_end(l->broker);
}

void certificate_start(struct certificate_ask *c) {
    c->give_up = loop_now(c->lane->loop) + lane_limit(c->lane, LIMIT_ASK_TIME) * SECOND;
    ask(c);
}

void certificate_end(struct certificate_ask *c) {
    if (c->ask)
        ask_forget(c->lane, c->ask);
    if (c->retry)
        event_free(c->retry);
    c->ask = 0;
    c->retry = NULL;
}

/* ---- answers ---- */

int certificate_take(struct lane *l, struct message *m) {
    if (hostile_heard("certificate", m, true))
        return 0;
    struct reader r = reader_of(m->body);
    struct lent_certificate lent;
    lent.fingerprint = read_bytes(&r, DIGEST_SIZE);
    lent.chain = read_block(&r, CERTIFICATE_CHAIN_MAX);
    lent.digits = read_block(&r, CLIENT_KEY_DIGITS);
    if (!read_done(&r) || lent.chain.n == 0 || lent.digits.n == 0)
        return ERR_BAD;
    struct certificate_ask *c = ask_take(l, ROLE_BROKER, m->id, on_lost);
    if (!c)
        return 0;
    c->ask = 0;
    c->lent(c->ctx, &lent);
    return 0;
}

static void on_retry(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    ask(ctx);
}

static bool retry_later(struct certificate_ask *c) {
    struct timeval soon = {0, RETRY_MS * 1000};
    if (loop_now(c->lane->loop) >= c->give_up)
        return false;
    if (!c->retry)
        c->retry = event_new(loop_base(c->lane->loop), -1, 0, on_retry, c);
    return c->retry && event_add(c->retry, &soon) == 0;
}

int certificate_take_refused(struct lane *l, struct message *m) {
    if (hostile_heard("certificate", m, false))
        return 0;
    struct reader r = reader_of(m->body);
    uint16_t why = read_u16(&r);
    struct view detail = read_block(&r, LEASE_REFUSED_MAX);
    if (!read_done(&r) || why == REASON_ALLOWED || why >= REASON_COUNT)
        return ERR_BAD;
    struct certificate_ask *c = ask_take(l, ROLE_BROKER, m->id, on_lost);
    if (!c)
        return 0;
    c->ask = 0;
    if (why != REASON_NOT_READY || !retry_later(c))
        c->failed(c->ctx, (enum reason)why, detail);
    return 0;
}

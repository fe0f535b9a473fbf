#include "egress/lease.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/secret.h"
#include "broker/broker_messages.h"
#include "egress/ask.h"
#include "egress/exchange.h"
#include "egress/hostile.h"
#include "egress/substitute.h"
#include "egress/suspension.h"

#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 20 };
#define SECOND UINT64_C(1000000000)

struct waiting {
    struct exchange *exchange;
    struct waiting *next;
};

/* Keyed as the connection it is for: one sandbox, authority, credential and generation. */
struct lease {
    struct lane *lane;
    struct upstream_key key;
    uint8_t fingerprint[FINGERPRINT_SIZE];
    size_t prefix;
    bool encoded, escaped; /* it is sent percent-encoded, or as a JSON string */
    struct buf secret;     /* in the arena; empty while it is asked for */
    uint64_t expires, give_up;
    uint32_t ask;
    struct event *retry;
    struct waiting *waiting;
    struct lease *next;
};

struct guarded {
    char sandbox[IDENTITY_SIZE];
    struct guard_set *set;
    struct guarded *next;
};

/* ---- guards ---- */

static struct guarded *guarded_find(const struct lane *l, struct view sandbox) {
    struct guarded *g = l->guarded;
    while (g && !view_equal(view_str(g->sandbox), sandbox))
        g = g->next;
    return g;
}

/* Without memory for them the limits of now wait: it is called every second. */
static void take_limits(const struct lane *l, struct guard_set *set) {
    int result = guard_set_limit(set, lane_limit(l, LIMIT_SECRETS), lane_limit(l, LIMIT_GUARD_RUN));
    if (result != 0)
        log_warn("the guard has no memory for its new limits yet");
    guard_set_count_fragments(set, suspension_fragments(l),
                              lane_limit(l, LIMIT_GUARD_TIME) * SECOND);
}

static struct guarded *guarded_new(struct lane *l, struct view sandbox) {
    struct guarded *g = calloc(1, sizeof *g);
    uint64_t random;
    if (!g)
        return NULL;
    random_bytes(&random, sizeof random);
    g->set = guard_set_new(lane_limit(l, LIMIT_SECRETS), lane_limit(l, LIMIT_GUARD_RUN), random);
    if (!g->set || view_cstr(sandbox, g->sandbox, sizeof g->sandbox) != 0) {
        guard_set_free(g->set);
        free(g);
        return NULL;
    }
    take_limits(l, g->set);
    g->next = l->guarded;
    l->guarded = g;
    return g;
}

const char *lease_suspended(const struct lane *l, struct view sandbox) {
    const struct guarded *g = guarded_find(l, sandbox);
    return g ? guard_set_exceeded(g->set) : NULL;
}

/* Also when nothing is lent yet: a parallel request may be lent a secret while this answer streams. */
struct guard_set *lease_guard(struct lane *l, struct view sandbox) {
    struct guarded *g = guarded_find(l, sandbox);
    if (!g && policy_sandbox_credentials(l->now->policy, sandbox) > 0)
        g = guarded_new(l, sandbox);
    return g ? g->set : NULL;
}

/* An upstream may encode what it was sent once more: what is spelled otherwise there is guarded, too. */
static int guard_spelled(struct guard_set *set, const struct lease *lease, enum place place,
                         uint64_t until) {
    struct view secret = buf_view(&lease->secret);
    struct buf prefix, spelled;
    int result = 0;
    buf_init_secret(&prefix, GUARD_SECRET_MAX);
    buf_init_secret(&spelled, SUBSTITUTE_GROWTH * SECRET_MAX);
    substitute_spell(place, view_head(secret, lease->prefix), &prefix);
    substitute_spell(place, secret, &spelled);
    if (!buf_ok(&prefix) || !buf_ok(&spelled))
        result = ERR_MEMORY;
    else if (!view_equal(buf_view(&spelled), secret))
        result = guard_set_add(set, buf_view(&spelled), view_str(lease->key.credential),
                               buf_len(&prefix), until);
    buf_free(&prefix);
    buf_free(&spelled);
    return result;
}

/* Before a secret leaves, answers are scanned for it: what cannot be guarded is not used. */
static int guard(struct lane *l, const struct lease *lease) {
    struct view sandbox = view_str(lease->key.sandbox);
    struct guarded *g = guarded_find(l, sandbox);
    if (!g)
        g = guarded_new(l, sandbox);
    if (!g)
        return ERR_MEMORY;
    uint64_t until = loop_now(l->loop) + lane_limit(l, LIMIT_GUARD_TIME) * SECOND;
    int result = guard_set_add(g->set, buf_view(&lease->secret), view_str(lease->key.credential),
                               lease->prefix, until);
    if (result == 0 && lease->encoded)
        result = guard_spelled(g->set, lease, PLACE_QUERY, until);
    if (result == 0 && lease->escaped)
        result = guard_spelled(g->set, lease, PLACE_JSON, until);
    return result;
}

/* ---- leases ---- */

enum { BUCKETS = sizeof((struct lane *)0)->leases / sizeof(struct lease *) };

static struct lease **bucket(struct lane *l, const struct upstream_key *key) {
    return &l->leases[key->hash % BUCKETS];
}

/* An exchange that waits for it waits no more. */
static void free_waiting(struct waiting *w) {
    w->exchange->waits_for = NULL;
    free(w);
}

static void lease_free(struct lane *l, struct lease *lease) {
    struct lease **at = bucket(l, &lease->key);
    while (*at != lease)
        at = &(*at)->next;
    *at = lease->next;
    if (lease->ask)
        ask_forget(l, lease->ask);
    if (lease->retry)
        event_free(lease->retry);
    while (lease->waiting) {
        struct waiting *w = lease->waiting;
        lease->waiting = w->next;
        free_waiting(w);
    }
    buf_free(&lease->secret);
    free(lease);
}

static struct lease *first_from(struct lane *l, size_t bucket_at) {
    while (bucket_at < BUCKETS && !l->leases[bucket_at])
        bucket_at++;
    return bucket_at < BUCKETS ? l->leases[bucket_at] : NULL;
}

/* All of them, in no order. */
static struct lease *first(struct lane *l) {
    return first_from(l, 0);
}

static struct lease *following(struct lane *l, const struct lease *lease) {
    return lease->next ? lease->next : first_from(l, lease->key.hash % BUCKETS + 1);
}

static struct lease *lease_find(struct lane *l, const struct upstream_key *key) {
    struct lease *lease = *bucket(l, key);
    while (lease && !upstream_key_equal(&lease->key, key))
        lease = lease->next;
    return lease;
}

static struct exchange *next_waiting(struct lease *lease) {
    struct waiting *w = lease->waiting;
    if (!w)
        return NULL;
    struct exchange *ex = w->exchange;
    lease->waiting = w->next;
    free_waiting(w);
    return ex;
}

static void refuse_waiting(struct lane *l, struct lease *lease, enum reason why) {
    struct exchange *ex;
    while ((ex = next_waiting(lease)) != NULL)
        exchange_not_lent(ex, why);
    lease_free(l, lease);
}

static void use(struct lane *l, struct lease *lease, struct exchange *ex) {
    if (guard(l, lease) == 0)
        exchange_lent(ex, lease);
    else
        exchange_not_lent(ex, REASON_TOO_MANY);
}

static void on_lost(struct lane *l, void *ctx, enum reason why) {
    struct lease *lease = ctx;
    lease->ask = 0;
    refuse_waiting(l, lease, why);
}

static void ask_broker(struct lane *l, struct lease *lease) {
    lease->ask =
        l->broker ? ask_new(l, ROLE_BROKER, lane_limit(l, LIMIT_ASK_TIME), on_lost, lease) : 0;
    if (!lease->ask) {
        refuse_waiting(l, lease, REASON_BROKER_UNAVAILABLE);
        return;
    }
    struct buf *b = channel_begin(l->broker, LEASE_ASK, lease->ask, lease->key.generation);
    buf_put_block(b, view_str(lease->key.sandbox));
    buf_put_block(b, view_str(lease->key.credential));
    buf_put_block(b, view_str(lease->key.authority.host));
    buf_put_u16(b, lease->key.authority.port);
    buf_put(b, view_of(lease->fingerprint, sizeof lease->fingerprint));
    channel_end(l->broker);
}

static struct lease *lease_new(struct lane *l, const struct upstream_key *key,
                               const uint8_t fingerprint[FINGERPRINT_SIZE]) {
    struct lease *lease = calloc(1, sizeof *lease);
    if (!lease)
        return NULL;
    lease->lane = l;
    lease->key = *key;
    struct view credential = view_str(key->credential);
    lease->encoded = policy_puts(l->now->policy, credential, PLACE_QUERY) ||
                     policy_puts(l->now->policy, credential, PLACE_PATH) ||
                     policy_puts(l->now->policy, credential, PLACE_FORM);
    lease->escaped = policy_puts(l->now->policy, credential, PLACE_JSON);
    memcpy(lease->fingerprint, fingerprint, FINGERPRINT_SIZE);
    buf_init_secret(&lease->secret, SECRET_MAX);
    lease->give_up = loop_now(l->loop) + lane_limit(l, LIMIT_ASK_TIME) * SECOND;
    struct lease **at = bucket(l, key);
    lease->next = *at;
    *at = lease;
    return lease;
}

static bool wait_for(struct lease *lease, struct exchange *ex) {
    struct waiting *w = calloc(1, sizeof *w);
    if (!w)
        return false;
    *w = (struct waiting){ex, lease->waiting};
    lease->waiting = w;
    ex->waits_for = lease;
    return true;
}

void lease_get(struct lane *l, const struct upstream_key *key,
               const uint8_t fingerprint[FINGERPRINT_SIZE], struct exchange *ex) {
    struct lease *lease = lease_find(l, key);
    if (lease && buf_len(&lease->secret) > 0 && lease->expires <= loop_now(l->loop)) {
        lease_free(l, lease);
        lease = NULL;
    }
    if (lease && buf_len(&lease->secret) > 0) {
        use(l, lease, ex);
        return;
    }
    bool asked = lease != NULL;
    if (!lease)
        lease = lease_new(l, key, fingerprint);
    if (!lease || !wait_for(lease, ex)) {
        exchange_not_lent(ex, REASON_TOO_MANY);
        return;
    }
    if (!asked)
        ask_broker(l, lease);
}

void lease_forget(struct exchange *ex) {
    struct waiting **at = ex->waits_for ? &ex->waits_for->waiting : NULL;
    if (!at)
        return;
    while ((*at)->exchange != ex)
        at = &(*at)->next;
    struct waiting *w = *at;
    *at = w->next;
    free_waiting(w);
}

struct view lease_secret(const struct lease *lease) {
    return buf_view(&lease->secret);
}

/* ---- broker's answers ---- */

int lease_take(struct lane *l, struct message *m) {
    if (hostile_heard("lease", m, true))
        return 0;
    struct reader r = reader_of(m->body);
    read_u32(&r); /* version: broker records it */
    uint32_t seconds = read_u32(&r);
    uint16_t prefix = read_u16(&r);
    struct view secret = read_block(&r, SECRET_MAX);
    if (!read_done(&r) || secret.n == 0)
        return ERR_BAD;
    struct lease *lease = ask_take(l, ROLE_BROKER, m->id, on_lost);
    if (!lease)
        return 0;
    lease->ask = 0;
    buf_put(&lease->secret, secret);
    lease->prefix = prefix;
    lease->expires = loop_now(l->loop) + seconds * SECOND;
    if (!buf_ok(&lease->secret)) {
        refuse_waiting(l, lease, REASON_TOO_MANY);
        return 0;
    }
    struct exchange *ex;
    while ((ex = next_waiting(lease)) != NULL)
        use(l, lease, ex);
    return 0;
}

static void on_retry(evutil_socket_t fd, short what, void *ctx) {
    struct lease *lease = ctx;
    (void)fd;
    (void)what;
    ask_broker(lease->lane, lease);
}

static bool retry_later(struct lane *l, struct lease *lease) {
    struct timeval soon = {0, RETRY_MS * 1000};
    if (loop_now(l->loop) >= lease->give_up)
        return false;
    if (!lease->retry)
        lease->retry = event_new(loop_base(l->loop), -1, 0, on_retry, lease);
    return lease->retry && event_add(lease->retry, &soon) == 0;
}

int lease_take_refused(struct lane *l, struct message *m) {
    if (hostile_heard("lease", m, false))
        return 0;
    struct reader r = reader_of(m->body);
    uint16_t why = read_u16(&r);
    if (!read_done(&r) || why == REASON_ALLOWED || why >= REASON_COUNT)
        return ERR_BAD;
    struct lease *lease = ask_take(l, ROLE_BROKER, m->id, on_lost);
    if (!lease)
        return 0;
    lease->ask = 0;
    if (why == REASON_NOT_READY && retry_later(l, lease))
        return 0;
    refuse_waiting(l, lease, (enum reason)why);
    return 0;
}

/* Rotated or removed: the next request asks again. The guard goes on looking for the old value. */
int lease_take_drop(struct lane *l, struct message *m) {
    struct reader r = reader_of(m->body);
    struct view credential = read_block(&r, CREDENTIAL_NAME_MAX);
    if (!read_done(&r))
        return ERR_BAD;
    for (struct lease *lease = first(l), *next; lease; lease = next) {
        next = following(l, lease);
        if (view_equal(view_str(lease->key.credential), credential) && buf_len(&lease->secret) > 0)
            lease_free(l, lease);
    }
    upstream_recall(l, credential);
    return 0;
}

void lease_sweep(struct lane *l, uint64_t now) {
    for (struct lease *lease = first(l), *next; lease; lease = next) {
        next = following(l, lease);
        if (buf_len(&lease->secret) > 0 && lease->expires <= now)
            lease_free(l, lease);
    }
    for (struct guarded *g = l->guarded; g; g = g->next) {
        guard_set_expire(g->set, now);
        take_limits(l, g->set);
    }
}

void lease_drop_all(struct lane *l) {
    for (struct lease *lease = first(l), *next; lease; lease = next) {
        next = following(l, lease);
        if (!lease->waiting)
            lease_free(l, lease);
    }
    for (struct guarded *g = l->guarded; g; g = g->next)
        take_limits(l, g->set);
}

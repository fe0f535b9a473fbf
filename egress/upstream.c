#include "egress/upstream.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/secret.h"
#include "egress/exchange.h"
#include "egress/share.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SESSIONS = sizeof((struct lane *)0)->sessions / sizeof(struct kept_session *) };
#define SECOND UINT64_C(1000000000)

/* ---- sessions to be resumed, keyed as connections are; two keys of one slot take turns ---- */

struct kept_session {
    struct upstream_key key;
    struct tls_session *session;
    char shown[SHOWN_SIZE]; /* in the handshake that it is of */
};

static uint32_t hash_more(uint32_t h, const char *text) {
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 16777619u; /* FNV-1a */
    return h;
}

void upstream_key_seal(struct upstream_key *key) {
    uint32_t h = 2166136261u ^ key->authority.port ^ (uint32_t)key->tls << 16;
    h = hash_more(h, key->authority.host);
    h = hash_more(h, key->sandbox);
    key->hash = hash_more(h, key->credential);
}

bool upstream_key_equal(const struct upstream_key *a, const struct upstream_key *b) {
    return a->hash == b->hash && a->generation == b->generation && a->tls == b->tls &&
           authority_equal(&a->authority, &b->authority) && strcmp(a->sandbox, b->sandbox) == 0 &&
           strcmp(a->credential, b->credential) == 0;
}

struct upstream_proof upstream_proof_of(const struct generation *g, const struct service *s) {
    struct upstream_proof proof = {.anchors = generation_own_tls(g, s)};
    const uint8_t *pin = service_upstream(s)->pin;
    proof.pinned = pin != NULL;
    if (pin)
        memcpy(proof.pin, pin, sizeof proof.pin);
    view_copy(view_head(service_upstream(s)->client_certificate, CREDENTIAL_NAME_MAX),
              proof.certificate);
    return proof;
}

static bool same_proof(const struct upstream_proof *a, const struct upstream_proof *b) {
    return a->anchors == b->anchors && a->pinned == b->pinned &&
           memcmp(a->pin, b->pin, sizeof a->pin) == 0 &&
           strcmp(a->certificate, b->certificate) == 0;
}

bool upstream_suits(const struct upstream *u, const struct generation *g, const struct service *s) {
    struct upstream_proof proof = upstream_proof_of(g, s);
    return (!u->key.tls || same_proof(&u->key.proof, &proof)) && dialing_suits(&u->dialing, g, s);
}

static bool same_key(const struct upstream_key *a, const struct upstream_key *b) {
    return upstream_key_equal(a, b) && same_proof(&a->proof, &b->proof);
}

static struct kept_session **session_slot(struct lane *l, const struct upstream_key *key) {
    return &l->sessions[key->hash % SESSIONS];
}

static void session_forget(struct kept_session **slot) {
    if (!*slot)
        return;
    tls_session_free((*slot)->session);
    free(*slot);
    *slot = NULL;
}

static struct tls_session *session_for(struct lane *l, const struct upstream_key *key) {
    struct kept_session **slot = session_slot(l, key);
    if (!*slot || !same_key(&(*slot)->key, key))
        return NULL;
    if (tls_session_fresh((*slot)->session, clock_wall() / SECOND))
        return (*slot)->session;
    session_forget(slot);
    return NULL;
}

static void session_keep(struct lane *l, const struct upstream *u) {
    struct kept_session **slot = session_slot(l, &u->key);
    struct tls_session *session = u->tls && !u->recalled ? tls_take_session(u->tls) : NULL;
    if (!session)
        return;
    session_forget(slot);
    *slot = calloc(1, sizeof **slot);
    if (!*slot) {
        tls_session_free(session);
        return;
    }
    **slot = (struct kept_session){u->key, session, ""};
    memcpy((*slot)->shown, u->shown, sizeof u->shown);
}

/* ---- the lists ---- */

static void link_all(struct lane *l, struct upstream *u) {
    u->next = l->upstreams;
    if (u->next)
        u->next->previous = u;
    l->upstreams = u;
    l->n_upstreams++;
}

static void unlink_all(struct lane *l, struct upstream *u) {
    *(u->previous ? &u->previous->next : &l->upstreams) = u->next;
    if (u->next)
        u->next->previous = u->previous;
    l->n_upstreams--;
}

/* Of many hosts' idle connections only those of one bucket are looked at. */
static struct upstream **idle_bucket(struct lane *l, const struct upstream_key *key) {
    return &l->idle[key->hash % (sizeof l->idle / sizeof *l->idle)];
}

static void link_idle(struct lane *l, struct upstream *u) {
    struct upstream **bucket = idle_bucket(l, &u->key);
    u->idle_previous = NULL;
    u->idle_next = *bucket;
    if (u->idle_next)
        u->idle_next->idle_previous = u;
    *bucket = u;
    u->newer = NULL;
    u->older = l->idle_newest;
    *(u->older ? &u->older->newer : &l->idle_oldest) = u;
    l->idle_newest = u;
    l->n_idle++;
}

static void unlink_idle(struct lane *l, struct upstream *u) {
    *(u->idle_previous ? &u->idle_previous->idle_next : idle_bucket(l, &u->key)) = u->idle_next;
    if (u->idle_next)
        u->idle_next->idle_previous = u->idle_previous;
    *(u->newer ? &u->newer->older : &l->idle_newest) = u->older;
    *(u->older ? &u->older->newer : &l->idle_oldest) = u->newer;
    u->newer = u->older = NULL;
    l->n_idle--;
}

/* ---- life ---- */

/* An answer may have held a secret that the upstream echoed: before it was masked it lay here. */
static void forget_answer(struct upstream *u) {
    if (u->in.p)
        secret_clear(u->in.p, u->touched);
    buf_free(&u->in);
    u->touched = 0;
}

void upstream_touch(struct upstream *u, const uint8_t *p, size_t n) {
    size_t end = (size_t)(p - u->in.p) + n;
    if (end > u->touched)
        u->touched = end;
}

void upstream_free(struct upstream *u) {
    struct lane *l = u->lane;
    if (u->state == UPSTREAM_IDLE)
        unlink_idle(l, u);
    unlink_all(l, u);
    dialing_end(&u->dialing);
    certificate_end(&u->certificate);
    if (u->readable)
        event_free(u->readable);
    if (u->writable)
        event_free(u->writable);
    if (u->tls && u->state == UPSTREAM_IDLE)
        tls_shutdown(u->tls);
    tls_free(u->tls);
    http1_free(u->answers);
    generation_drop(u->generation);
    forget_answer(u);
    if (u->fd >= 0)
        close(u->fd);
    free(u);
}

static void fail(struct upstream *u, enum reason why, struct view detail) {
    struct exchange *ex = u->user;
    u->user = NULL;
    /* The exchange looks at the address and the aliases before they go. */
    exchange_not_connected(ex, u, why, detail);
    upstream_free(u);
}

static struct upstream *upstream_new(struct lane *l, const struct upstream_key *key,
                                     struct exchange *ex) {
    struct upstream *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->lane = l;
    u->key = *key;
    u->user = ex;
    u->fd = -1;
    u->started = loop_now(l->loop);
    /* A head must lie whole in it, and so must trailers. */
    uint64_t head = lane_limit(l, LIMIT_HEAD_BYTES), trailers = lane_limit(l, LIMIT_TRAILER_BYTES);
    buf_init(&u->in, (size_t)(head > trailers ? head : trailers) + 32 * 1024);
    u->generation = generation_keep(l->now);
    u->answers = http1_new(HTTP1_ANSWERS, &u->generation->limits);
    link_all(l, u);
    if (!u->answers) {
        upstream_free(u);
        return NULL;
    }
    return u;
}

/* ---- dialling ---- */

static void on_dialled(void *ctx, int fd);

static void on_not_dialled(void *ctx, enum reason why, struct view detail) {
    fail(ctx, why, detail);
}

static void dial(struct upstream *u) {
    u->state = UPSTREAM_DIALING;
    u->dialing = (struct dialing){.lane = u->lane,
                                  .sandbox = u->key.sandbox,
                                  .authority = &u->key.authority,
                                  .generation = u->key.generation,
                                  .tls = u->key.tls,
                                  .connected = on_dialled,
                                  .failed = on_not_dialled,
                                  .ctx = u};
    dialing_start(&u->dialing);
}

/* Whether the sandbox may have one more to this host: a limit of the lane, of which each has a share. */
static bool has_room(struct lane *l, const struct upstream_key *key) {
    size_t own = 0, all = 0, limit = lane_limit(l, LIMIT_UPSTREAMS);
    /* Below that even all of them leave room, whoever has them. */
    if (l->n_upstreams < limit / 2)
        return true;
    for (struct upstream *u = l->upstreams; u; u = u->next) {
        if (u->state == UPSTREAM_IDLE || !authority_equal(&u->key.authority, &key->authority))
            continue;
        all++;
        own += strcmp(u->key.sandbox, key->sandbox) == 0;
    }
    return share_allows(l, own, all, limit);
}

/* An idle connection may only bring session tickets, or its end. */
static bool is_quiet(struct upstream *u) {
    uint8_t byte;
    size_t n = 0;
    return upstream_read(u, &byte, 1, &n) == TLS_WANT_READ;
}

/* Asked again here: what came since the loop last looked must not be taken for the next answer (RS-03). */
static struct upstream *take_idle(struct lane *l, const struct upstream_key *key) {
    struct upstream *next;
    for (struct upstream *u = *idle_bucket(l, key); u; u = next) {
        next = u->idle_next;
        if (!same_key(&u->key, key))
            continue;
        if (is_quiet(u))
            return u;
        upstream_free(u);
    }
    return NULL;
}

void upstream_get(struct lane *l, const struct upstream_key *key, bool fresh, struct exchange *ex) {
    struct upstream *u = fresh ? NULL : take_idle(l, key);
    if (u) {
        unlink_idle(l, u);
        u->state = UPSTREAM_BUSY;
        u->user = ex;
        u->reused = true;
        http1_reset(u->answers);
        exchange_connected(ex, u);
        return;
    }
    if (!has_room(l, key)) {
        exchange_not_connected(ex, NULL, REASON_TOO_MANY, VIEW("connections to this host"));
        return;
    }
    u = upstream_new(l, key, ex);
    if (u) {
        exchange_connecting(ex, u);
        dial(u);
        return;
    }
    exchange_not_connected(ex, NULL, REASON_TOO_MANY, VIEW("memory"));
}

/* ---- events of the socket ---- */

static void connected(struct upstream *u) {
    u->state = UPSTREAM_BUSY;
    exchange_connected(u->user, u);
}

/* What there is to tell of a client certificate, of this handshake or of the one that is resumed. */
static void note_shown(struct upstream *u) {
    const struct kept_session *kept = *session_slot(u->lane, &u->key);
    if (tls_resumed(u->tls) && kept && same_key(&kept->key, &u->key))
        memcpy(u->shown, kept->shown, sizeof u->shown);
    else if (tls_was_asked(u->tls) && !u->shown[0])
        strcpy(u->shown, "none");
}

static void handshake(struct upstream *u);

static void on_certificate(void *ctx, const struct lent_certificate *c) {
    struct upstream *u = ctx;
    char digits[2 * DIGEST_SIZE + 1];
    int result = tls_show_certificate(u->tls, c->chain, c->digits);
    if (result == ERR_MEMORY) {
        fail(u, REASON_TOO_MANY, VIEW("memory"));
        return;
    }
    if (result != 0) {
        fail(u, REASON_CERTIFICATE_UNAVAILABLE, VIEW("the key is not that of the certificate"));
        return;
    }
    hex_encode(c->fingerprint, digits);
    snprintf(u->shown, sizeof u->shown, "%s %s", u->key.proof.certificate, digits);
    event_add(u->readable, NULL);
    handshake(u);
}

static void on_no_certificate(void *ctx, enum reason why, struct view detail) {
    fail(ctx, why, detail);
}

/* Until it is there the upstream has nothing to say that would be read. */
static void ask_certificate(struct upstream *u) {
    event_del(u->readable);
    event_del(u->writable);
    u->certificate = (struct certificate_ask){.lane = u->lane,
                                              .sandbox = u->key.sandbox,
                                              .name = u->key.proof.certificate,
                                              .authority = &u->key.authority,
                                              .generation = u->key.generation,
                                              .lent = on_certificate,
                                              .failed = on_no_certificate,
                                              .ctx = u};
    certificate_start(&u->certificate);
}

static void handshake(struct upstream *u) {
    switch (tls_handshake(u->tls)) {
    case TLS_DONE:
        note_shown(u);
        connected(u);
        return;
    case TLS_WANT_READ:
        return;
    case TLS_WANT_CERTIFICATE:
        ask_certificate(u);
        return;
    case TLS_WANT_WRITE:
        event_add(u->writable, NULL);
        return;
    case TLS_FAILED:
        fail(u, REASON_UPSTREAM_TLS, view_str(tls_error(u->tls)));
        return;
    case TLS_NO_MEMORY:
        fail(u, REASON_TOO_MANY, VIEW("memory"));
        return;
    case TLS_EOF:
    case TLS_CUT:
        fail(u, REASON_UPSTREAM_TLS,
             VIEW("the upstream ended the connection during the handshake"));
        return;
    }
}

static void on_readable(evutil_socket_t fd, short what, void *ctx) {
    struct upstream *u = ctx;
    (void)fd;
    (void)what;
    if (u->state == UPSTREAM_HANDSHAKE)
        handshake(u);
    else if (u->state == UPSTREAM_IDLE && !is_quiet(u))
        upstream_free(u);
    else if (u->state == UPSTREAM_BUSY)
        exchange_readable(u->user);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx) {
    struct upstream *u = ctx;
    (void)fd;
    (void)what;
    if (u->state == UPSTREAM_HANDSHAKE)
        handshake(u);
    else if (u->state == UPSTREAM_BUSY)
        exchange_writable(u->user);
}

static int open_events(struct upstream *u) {
    struct event_base *base = loop_base(u->lane->loop);
    u->readable = event_new(base, u->fd, EV_READ | EV_PERSIST, on_readable, u);
    u->writable = event_new(base, u->fd, EV_WRITE, on_writable, u);
    return u->readable && u->writable && event_add(u->readable, NULL) == 0 ? 0 : ERR_MEMORY;
}

/* The dialled socket is ours: start TLS, or use it as it is in clear. */
static void on_dialled(void *ctx, int fd) {
    struct upstream *u = ctx;
    struct lane *l = u->lane;
    u->fd = fd;
    if (open_events(u) != 0) {
        fail(u, REASON_TOO_MANY, VIEW("memory"));
        return;
    }
    if (!u->key.tls) {
        connected(u);
        return;
    }
    const struct authority *a = &u->key.authority;
    struct view address = {NULL, 0};
    if (a->kind == HOST_ADDRESS)
        address = view_of(a->address.bytes, a->address.family == 4 ? 4 : 16);
    const struct upstream_proof *proof = &u->key.proof;
    struct tls_client *client =
        proof->anchors ? proof->anchors : generation_tls(exchange_generation(u->user));
    u->tls = tls_connect(client, u->fd, a->host, address, proof->pinned ? proof->pin : NULL,
                         session_for(l, &u->key));
    if (!u->tls) {
        fail(u, REASON_TOO_MANY, VIEW("memory"));
        return;
    }
    if (proof->certificate[0])
        tls_offer_certificate(u->tls);
    u->state = UPSTREAM_HANDSHAKE;
    u->deadline = loop_now(l->loop) + lane_limit(l, LIMIT_UPSTREAM_HANDSHAKE) * SECOND;
    handshake(u);
}

/* ---- reading and writing ---- */

static enum tls_result plain_result(ssize_t got, enum tls_result blocked, size_t *n) {
    if (got > 0) {
        *n = (size_t)got;
        return TLS_DONE;
    }
    if (got == 0)
        return TLS_EOF;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? blocked : TLS_CUT;
}

enum tls_result upstream_read(struct upstream *u, uint8_t *p, size_t size, size_t *n) {
    if (u->tls)
        return tls_read(u->tls, p, size, n);
    return plain_result(read(u->fd, p, size), TLS_WANT_READ, n);
}

enum tls_result upstream_write(struct upstream *u, struct view v, size_t *n) {
    enum tls_result result =
        u->tls ? tls_write(u->tls, v, n) : plain_result(write(u->fd, v.p, v.n), TLS_WANT_WRITE, n);
    if (result == TLS_WANT_WRITE)
        event_add(u->writable, NULL);
    return result;
}

void upstream_pause(struct upstream *u) {
    event_del(u->readable);
}

void upstream_resume(struct upstream *u) {
    event_add(u->readable, NULL);
}

void upstream_release(struct upstream *u, bool reusable) {
    struct lane *l = u->lane;
    u->user = NULL;
    session_keep(l, u);
    bool current = !u->recalled && l->now && u->key.generation == l->now->number && !l->stopping;
    if (!reusable || u->ended || !current || buf_len(&u->in) > 0 ||
        lane_limit(l, LIMIT_POOL_SIZE) == 0 || (u->tls && tls_pending(u->tls))) {
        upstream_free(u);
        return;
    }
    forget_answer(u);
    event_del(u->writable);
    event_add(u->readable, NULL);
    u->state = UPSTREAM_IDLE;
    u->deadline = loop_now(l->loop) + lane_limit(l, LIMIT_POOL_IDLE) * SECOND;
    link_idle(l, u);
    if (l->n_idle > lane_limit(l, LIMIT_POOL_SIZE))
        upstream_free(l->idle_oldest);
}

/* ---- time ---- */

void upstream_sweep(struct lane *l, uint64_t now) {
    for (struct upstream *u = l->idle_oldest, *newer; u && u->deadline <= now; u = newer) {
        newer = u->newer;
        upstream_free(u);
    }
    struct upstream *u = l->upstreams;
    while (u) {
        bool late = u->state == UPSTREAM_HANDSHAKE && u->deadline <= now;
        if (late)
            fail(u, REASON_UPSTREAM_TIMEOUT, VIEW("the TLS handshake took too long"));
        /* That may have changed the list anywhere: from the beginning. */
        u = late ? l->upstreams : u->next;
    }
}

void upstream_recall(struct lane *l, struct view certificate) {
    for (struct upstream *u = l->upstreams, *next; u; u = next) {
        next = u->next;
        if (!view_equal(view_str(u->key.proof.certificate), certificate))
            continue;
        u->recalled = true;
        if (u->state == UPSTREAM_IDLE)
            upstream_free(u);
    }
    for (size_t i = 0; i < SESSIONS; i++)
        if (l->sessions[i] &&
            view_equal(view_str(l->sessions[i]->key.proof.certificate), certificate))
            session_forget(&l->sessions[i]);
}

void upstream_drop_idle(struct lane *l) {
    for (struct upstream *u = l->idle_oldest, *newer; u; u = newer) {
        newer = u->newer;
        upstream_free(u);
    }
    for (size_t i = 0; i < SESSIONS; i++)
        session_forget(&l->sessions[i]);
}

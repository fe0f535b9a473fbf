#include "ca/ca.h"

#include "audit/stream.h"
#include "base/child.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rights.h"
#include "base/secret.h"
#include "ca/ca_messages.h"
#include "ca/mint.h"
#include "policy/bundle.h"
#include "policy/echo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_FILE_MAX = 12 * 1024, READ_PIECE = 4096 };

/* Policy and lanes of one generation; the bundle's views point into the text that child keeps. */
struct generation {
    uint32_t number;
    struct bundle bundle;
    struct policy *policy;
    char *file;
    struct mint *mint; /* another CA, which signs from this generation on, or NULL */
};

/* A lane stays known when its egress dies, so that a restart does not refill its allowance. */
struct ca_lane {
    struct ca *ca;
    uint32_t id;
    struct channel *channel;
    struct buf spki; /* the public key that leaves are for */
    struct mint_form *form;
    uint64_t spent_until; /* monotonic time at which the allowance will be full again */
    struct ca_lane *next;
};

struct ca {
    struct loop *loop;
    struct child *child;
    struct buf key, certificate;
    bool came;     /* files, since they were used last */
    bool previous; /* a rotation overlaps */
    struct mint *mint;
    struct generation *current, *prepared;
    struct ca_lane *lanes;
    struct audit_stream audit;
    struct record record;
    uint64_t minted, refused;
    bool failed;
};

static uint64_t now_seconds(void) {
    return clock_wall() / UINT64_C(1000000000);
}

/* ---- the key ---- */

static void key_clear(struct ca *c) {
    if (c->key.p)
        secret_clear(c->key.p, c->key.cap);
    buf_free(&c->key);
}

/* The key comes first, and certificates that came with an earlier one do not count any more. */
static struct buf *file_of(struct ca *c, struct view name) {
    if (view_equal(name, VIEW("ca-key"))) {
        c->came = true;
        c->previous = false;
        buf_reset(&c->certificate);
        return &c->key;
    }
    c->previous = c->previous || view_equal(name, VIEW("ca-previous"));
    return view_equal(name, VIEW("ca-cert")) ? &c->certificate : NULL;
}

static int on_file(void *ctx, struct view name, int fd) {
    struct buf *out = file_of(ctx, name);
    if (!out) {
        close(fd);
        return 0;
    }
    buf_reset(out);
    /* All at once: growing would leave copies of the key behind. */
    if (!buf_reserve(out, KEY_FILE_MAX)) {
        close(fd);
        return ERR_MEMORY;
    }
    /* What cannot be read is found wanting when it is to be used; the CA in use signs on. */
    int result = file_read(fd, KEY_FILE_MAX - READ_PIECE, out);
    if (result != 0) {
        log_warn("%.*s cannot be read: %s", VIEW_ARG(name), err_why(result));
        buf_reset(out);
    }
    return 0;
}

/* What keeps key and certificate from being used, or NULL. */
static const char *find_fault(int result, const struct ca *c, const struct mint *m) {
    uint64_t now = now_seconds();
    if (view_is_empty(buf_view(&c->key)) || view_is_empty(buf_view(&c->certificate)))
        return "there is no CA key or certificate: run `exeat ca init`";
    if (result == ERR_DENIED)
        return "the CA key does not belong to the CA certificate";
    if (result != 0)
        return "the CA key or certificate cannot be used: a P-256 root is needed";
    if (now < mint_facts(m)->validity.not_before)
        return "the clock is before the CA certificate's beginning: set the clock";
    if (now >= mint_facts(m)->validity.not_after)
        return "the CA certificate has expired: run `exeat ca rotate`";
    return NULL;
}

/* From the files that came; says what is wrong with them. */
static int key_load(struct ca *c, struct mint **out) {
    struct mint *m = NULL;
    int result = mint_new(buf_view(&c->key), buf_view(&c->certificate), &m);
    const char *fault = find_fault(result, c, m);
    key_clear(c);
    c->came = false;
    if (!fault) {
        *out = m;
        return 0;
    }
    if (c->mint)
        log_warn("the new CA is not used: %s", fault);
    else
        log_fatal("%s", fault);
    mint_free(m);
    return result == 0 ? ERR_DENIED : result;
}

static int key_first(struct ca *c) {
    int result = c->mint ? 0 : key_load(c, &c->mint);
    if (result == 0)
        return 0;
    c->failed = true;
    loop_stop(c->loop);
    return ERR_CRYPTO;
}

/* Files that came with a reload: *out is NULL when they are of the CA in use, or none came. */
static int key_again(struct ca *c, struct mint **out) {
    if (!c->came)
        return 0;
    int result = key_load(c, out);
    if (result == 0 &&
        memcmp(mint_facts(*out)->fingerprint, mint_facts(c->mint)->fingerprint, DIGEST_SIZE) == 0) {
        mint_free(*out);
        *out = NULL;
    }
    return result;
}

/* ---- generations ---- */

static void generation_free(struct generation *g) {
    if (!g)
        return;
    policy_free(g->policy);
    mint_free(g->mint);
    free(g->file);
    free(g);
}

static int generation_read(struct view text, struct generation *g) {
    struct policy_errors *errors = calloc(1, sizeof *errors);
    int result = errors ? bundle_read(text, &g->bundle) : ERR_MEMORY;
    if (result == 0) {
        struct view name = g->bundle.policy_file;
        g->file = calloc(1, name.n + 1);
        result = g->file ? view_cstr(name, g->file, name.n + 1) : ERR_MEMORY;
    }
    if (result == 0)
        result = policy_load(g->bundle.policy_text, g->file, &g->policy, errors);
    free(errors);
    return result;
}

static int on_generation(void *ctx, uint32_t number, struct view text) {
    struct ca *c = ctx;
    int result = key_first(c);
    if (result != 0)
        return result;
    struct generation *g = calloc(1, sizeof *g);
    if (!g)
        return ERR_MEMORY;
    g->number = number;
    result = key_again(c, &g->mint);
    if (result == 0)
        result = generation_read(text, g);
    if (result != 0) {
        generation_free(g);
        return result;
    }
    generation_free(c->prepared);
    c->prepared = g;
    return 0;
}

/* ---- judging ---- */

static bool lane_may_reach(const struct ca *c, uint32_t lane, const struct authority *a) {
    struct lane_info info;
    struct view name;
    if (bundle_find_lane(&c->current->bundle, lane, &info) != 0)
        return false;
    struct view rest = info.names;
    while (lane_sandbox(&rest, &name)) {
        if (echo_is_open(a, true))
            return true;
        struct verdict v = policy_judge_host(c->current->policy, name, true, a);
        /* Of what is spliced nobody needs a leaf. */
        if (v.allow && service_tls(v.service) != SERVICE_SPLICE)
            return true;
    }
    return false;
}

/* An allowance of `new-names` that fills up in a minute. */
static bool lane_spend(struct ca_lane *l, uint64_t per_minute, uint64_t now) {
    const uint64_t minute = UINT64_C(60000000000);
    uint64_t cost = minute / per_minute;
    uint64_t until = l->spent_until > now ? l->spent_until : now;
    if (until + cost - now > minute)
        return false;
    l->spent_until = until + cost;
    return true;
}

static int record_leaf(struct ca_lane *l, const char *event, const struct authority *a,
                       const char *detail) {
    struct ca *c = l->ca;
    struct record *r = &c->record;
    if (!audit_stream_ready(&c->audit))
        return ERR_CLOSED;
    record_begin(r, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(r, FIELD_EVENT, event);
    record_str(r, FIELD_DETAIL, detail);
    record_str(r, FIELD_HOST, a->host);
    record_number(r, FIELD_PORT, a->port);
    record_number(r, FIELD_LANE, l->id);
    if (bundle_lane_unenforced(c->current->bundle.lanes, l->id))
        record_number(r, FIELD_UNENFORCED, 1);
    record_number(r, FIELD_GENERATION, c->current->number);
    return audit_stream_write(&c->audit, r);
}

static enum reason judge(struct ca_lane *l, const struct message *m, const struct authority *a) {
    struct ca *c = l->ca;
    if (!c->current || m->generation != c->current->number)
        return REASON_NOT_READY;
    if (!lane_spend(l, c->current->bundle.limits.v[LIMIT_NEW_NAMES], loop_now(c->loop)))
        return REASON_RATE;
    if (lane_may_reach(c, l->id, a))
        return REASON_ALLOWED;
    /* Its egress judged by the same policy: to ask at all is worth a record. */
    if (record_leaf(l, "leaf_refused", a, NULL) != 0)
        log_warn("lane %u asked for a leaf for a host it may not reach", l->id);
    return REASON_HOST_NOT_ALLOWED;
}

/* ---- minting ---- */

static void refuse(struct ca_lane *l, uint32_t id, enum reason reason) {
    struct ca *c = l->ca;
    struct buf *b = channel_begin(l->channel, CA_REFUSED, id, c->current ? c->current->number : 0);
    buf_put_u16(b, (uint16_t)reason);
    channel_end(l->channel);
    c->refused++;
}

static int mint_one(struct ca_lane *l, const struct authority *a, struct buf *der, uint64_t *ends) {
    uint8_t serial[MINT_SERIAL_SIZE];
    char detail[64] = "serial ";
    uint64_t now = now_seconds();
    uint64_t days = l->ca->current->bundle.limits.v[LIMIT_LEAF_DAYS];
    struct mint_validity v = {now - MINT_BACKDATE_SECONDS, now + days * 86400};
    random_bytes(serial, sizeof serial);
    int result = mint_leaf(l->form, a, v, serial, der, ends);
    if (result == 0 && *ends <= now)
        result = ERR_DENIED; /* the CA itself has ended */
    if (result != 0) {
        log_warn("lane %u: cannot sign a leaf: %s", l->id, err_text(result));
        return result;
    }
    hex_encode(view_of(serial, sizeof serial), detail + 7);
    return record_leaf(l, "leaf_minted", a, detail);
}

static void answer(struct ca_lane *l, uint32_t id, const struct authority *a) {
    struct buf der;
    uint64_t ends = 0;
    buf_init(&der, CA_CERT_MAX);
    if (mint_one(l, a, &der, &ends) != 0) {
        refuse(l, id, REASON_CA_UNAVAILABLE);
    } else {
        struct buf *b = channel_begin(l->channel, CA_LEAF, id, l->ca->current->number);
        buf_put_block(b, buf_view(&der));
        buf_put_block(b, (struct view){NULL, 0});
        buf_put_u64(b, ends);
        channel_end(l->channel);
        l->ca->minted++;
    }
    buf_free(&der);
}

static int take_ask(void *ctx, struct channel *ch, struct message *m) {
    struct ca_lane *l = ctx;
    struct reader r = reader_of(m->body);
    struct authority a;
    (void)ch;
    struct view host = read_block(&r, CA_NAME_MAX);
    uint16_t port = read_u16(&r);
    if (!read_done(&r) || authority_read(host, port, &a) != 0)
        return ERR_BAD;
    enum reason reason = judge(l, m, &a);
    if (reason == REASON_ALLOWED)
        answer(l, m->id, &a);
    else
        refuse(l, m->id, reason);
    return 0;
}

/* ---- peers ---- */

static const struct channel_rule rules[] = {
    {CA_ASK_LEAF, 0, CA_NAME_MAX + 6, take_ask, "ask for a leaf"},
};

static void lane_close(struct ca_lane *l) {
    channel_free(l->channel);
    l->channel = NULL;
    mint_form_free(l->form);
    l->form = NULL;
}

static void on_lane_closed(void *ctx, struct channel *ch, int why) {
    struct ca_lane *l = ctx;
    (void)ch;
    lane_close(l);
    if (why == ERR_BAD || why == ERR_LIMIT) {
        log_warn("lane %u: its egress broke the contract: %s", l->id, err_text(why));
        child_bad_peer(l->ca->child, ROLE_EGRESS, l->id);
    }
}

static struct ca_lane *lane_find(struct ca *c, uint32_t id) {
    struct ca_lane *l = c->lanes;
    while (l && l->id != id)
        l = l->next;
    return l;
}

static struct ca_lane *lane_make(struct ca *c, uint32_t id) {
    struct ca_lane *l = lane_find(c, id);
    if (l) {
        lane_close(l);
        return l;
    }
    l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct ca_lane){.ca = c, .id = id, .next = c->lanes};
    buf_init(&l->spki, CHANNEL_BODY_MAX);
    c->lanes = l;
    return l;
}

static int take_egress(struct ca *c, uint32_t id, struct view spki, int fd) {
    struct ca_lane *l = lane_make(c, id);
    if (!l) {
        close(fd);
        return ERR_MEMORY;
    }
    /* The key was checked before the first generation, which may still come. */
    int result = key_first(c);
    if (result != 0) {
        close(fd);
        return result;
    }
    buf_reset(&l->spki);
    buf_put(&l->spki, spki);
    if (mint_form_new(c->mint, spki, &l->form) != 0) {
        log_warn("lane %u: its public key is no P-256 key", id);
        close(fd);
        child_bad_peer(c->child, ROLE_EGRESS, id);
        return 0;
    }
    l->channel =
        channel_new(c->loop, fd, rules, sizeof rules / sizeof *rules, 0, on_lane_closed, l);
    return l->channel ? 0 : ERR_MEMORY;
}

static int on_peer(void *ctx, enum role role, uint32_t lane, struct view name, int fd) {
    struct ca *c = ctx;
    if (role == ROLE_EGRESS)
        return take_egress(c, lane, name, fd);
    if (role == ROLE_AUDIT)
        return audit_stream_attach(&c->audit, fd);
    close(fd);
    return ERR_BAD;
}

static void on_peer_gone(void *ctx, enum role role, uint32_t lane) {
    struct ca *c = ctx;
    struct ca_lane *l = role == ROLE_EGRESS ? lane_find(c, lane) : NULL;
    if (l)
        lane_close(l);
    else if (role == ROLE_AUDIT)
        audit_stream_away(&c->audit);
}

/* ---- another generation, and perhaps another CA ---- */

static void record_change(struct ca *c) {
    struct record *r = &c->record;
    char detail[2 * DIGEST_SIZE + 8] = "sha256 ";
    hex_encode(view_of(mint_facts(c->mint)->fingerprint, DIGEST_SIZE), detail + 7);
    record_begin(r, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(r, FIELD_EVENT, "ca_changed");
    record_str(r, FIELD_DETAIL, detail);
    if (!audit_stream_ready(&c->audit) || audit_stream_write(&c->audit, r) != 0)
        log_warn("that another CA signs is not in the audit trail");
}

static void lane_change(struct ca_lane *l) {
    mint_form_free(l->form);
    l->form = NULL;
    if (mint_form_new(l->ca->mint, buf_view(&l->spki), &l->form) == 0) {
        channel_send(l->channel, CA_CHANGED, 0, 0, VIEW(""));
        return;
    }
    lane_close(l);
    child_bad_peer(l->ca->child, ROLE_EGRESS, l->id);
}

static void use_mint(struct ca *c, struct mint *m) {
    struct mint *before = c->mint;
    c->mint = m;
    for (struct ca_lane *l = c->lanes; l; l = l->next)
        if (l->channel)
            lane_change(l);
    mint_free(before);
    log_info("another CA signs: %s", mint_facts(m)->subject);
    record_change(c);
}

static void on_commit(void *ctx, uint32_t number) {
    struct ca *c = ctx;
    if (!c->prepared || c->prepared->number != number)
        return;
    generation_free(c->current);
    c->current = c->prepared;
    c->prepared = NULL;
    if (c->current->mint) {
        use_mint(c, c->current->mint);
        c->current->mint = NULL;
    }
}

static void on_status(void *ctx, struct buf *out) {
    struct ca *c = ctx;
    char hex[2 * DIGEST_SIZE + 1];
    buf_printf(out, "\"minted\":%llu,\"refused\":%llu,\"rotating\":%s",
               (unsigned long long)c->minted, (unsigned long long)c->refused,
               c->previous ? "true" : "false");
    if (!c->mint)
        return;
    const struct mint_facts *facts = mint_facts(c->mint);
    hex_encode(view_of(facts->fingerprint, sizeof facts->fingerprint), hex);
    buf_printf(out, ",\"not_after\":%llu,\"sha256\":\"%s\"",
               (unsigned long long)facts->validity.not_after, hex);
}

/* ---- the process ---- */

void ca_free(struct ca *c) {
    if (!c)
        return;
    while (c->lanes) {
        struct ca_lane *l = c->lanes;
        c->lanes = l->next;
        lane_close(l);
        buf_free(&l->spki);
        free(l);
    }
    audit_stream_close(&c->audit);
    record_free(&c->record);
    child_free(c->child);
    generation_free(c->current);
    generation_free(c->prepared);
    mint_free(c->mint);
    key_clear(c);
    buf_free(&c->certificate);
    free(c);
}

struct ca *ca_new(struct loop *loop, const struct role_args *args) {
    static const struct child_ops ops = {.on_peer = on_peer,
                                         .on_peer_gone = on_peer_gone,
                                         .on_file = on_file,
                                         .on_generation = on_generation,
                                         .on_commit = on_commit,
                                         .on_status = on_status};
    struct ca *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->loop = loop;
    audit_stream_init(&c->audit, loop, "ca", NULL, NULL);
    buf_init(&c->key, KEY_FILE_MAX);
    buf_init(&c->certificate, MINT_PEM_MAX);
    c->child = child_new(loop, args, &ops, c);
    if (c->child)
        return c;
    ca_free(c);
    return NULL;
}

int ca_serve(const struct role_args *args) {
    struct loop *loop = loop_new();
    struct ca *c = loop ? ca_new(loop, args) : NULL;
    int result = 1;
    if (c) {
        child_up(c->child, (struct view){NULL, 0});
        result = loop_run(loop) == 0 && !c->failed ? 0 : 1;
    }
    ca_free(c);
    loop_free(loop);
    return result;
}

int ca_main(const struct role_args *args) {
    log_open("ca", args->debug ? LOG_DEBUG : LOG_INFO);
    if (!mint_lock_memory())
        log_warn("memory for the CA key cannot be locked");
    if (rights_enter(args) != 0)
        return 1;
    return ca_serve(args);
}

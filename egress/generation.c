#include "egress/generation.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/secret.h"

#include <stdlib.h>
#include <string.h>

struct trust {
    unsigned references;
    uint8_t digest[DIGEST_SIZE];
    struct tls_client *client;
};

struct issued {
    struct registry_entry entry;
    bool used;
};

/* ---- trust anchors ---- */

static struct trust *trust_new(struct view anchors, unsigned max_chain,
                               const uint8_t digest[DIGEST_SIZE]) {
    struct trust *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->references = 1;
    memcpy(t->digest, digest, DIGEST_SIZE);
    t->client = tls_client_new(anchors, max_chain);
    if (!t->client) {
        log_warn("no trust anchor could be read: no upstream can be verified");
        free(t);
        return NULL;
    }
    return t;
}

static void trust_drop(struct trust *t) {
    if (!t || --t->references > 0)
        return;
    tls_client_free(t->client);
    free(t);
}

/* Among those of a generation: the compiled form of the same bytes, to be kept. NULL: there is none. */
static struct trust *trust_find(const struct generation *g, const uint8_t digest[DIGEST_SIZE],
                                bool own) {
    size_t n = own ? g->n_own : 1;
    for (size_t i = 0; i < n; i++) {
        struct trust *t = own ? g->own[i] : g->trust;
        if (!t || memcmp(t->digest, digest, DIGEST_SIZE) != 0)
            continue;
        t->references++;
        return t;
    }
    return NULL;
}

/*
 * Compiling 150 anchors costs 20 ms: the same bytes are compiled once. But not for a service and for the rest:
 * a connection of the one is told from that of the other by its anchors.
 */
static struct trust *trust_for(const struct generation *g, const struct generation *before,
                               struct view anchors, bool own) {
    uint8_t digest[DIGEST_SIZE];
    digest_sha256(anchors, digest);
    uint64_t chain = g->limits.v[LIMIT_CERTIFICATES];
    struct trust *t = own ? trust_find(g, digest, true) : NULL;
    if (!t && before && before->limits.v[LIMIT_CERTIFICATES] == chain)
        t = trust_find(before, digest, own);
    return t ? t : trust_new(anchors, (unsigned)chain, digest);
}

static struct view own_anchors(const struct bundle *b, struct view service) {
    struct view rest = b->own_anchors, name, pem;
    while (bundle_anchors(&rest, &name, &pem))
        if (view_equal(name, service))
            return pem;
    return (struct view){NULL, 0};
}

static int build_trusts(struct generation *g, const struct bundle *b,
                        const struct generation *before) {
    size_t n = policy_services(g->policy);
    g->own = calloc(n + 1, sizeof *g->own);
    if (!g->own)
        return ERR_MEMORY;
    g->n_own = n;
    for (size_t i = 0; i < n; i++) {
        const struct service *s = policy_service_at(g->policy, i);
        if (service_upstream(s)->ca.n == 0)
            continue;
        g->own[i] = trust_for(g, before, own_anchors(b, service_name(s)), true);
        if (!g->own[i])
            return ERR_BAD;
    }
    g->trust = trust_for(g, before, b->anchors, false);
    return g->trust ? 0 : ERR_BAD;
}

/* ---- what was issued ---- */

static size_t issued_place(const struct generation *g, const uint8_t *fingerprint) {
    uint64_t x;
    memcpy(&x, fingerprint, sizeof x);
    return (size_t)x & (g->n_issued - 1);
}

static void issued_put(struct generation *g, const struct registry_entry *e) {
    size_t i = issued_place(g, e->fingerprint);
    while (g->issued[i].used)
        i = (i + 1) & (g->n_issued - 1);
    g->issued[i] = (struct issued){*e, true};
}

static const struct registry_entry *
issued_find(const struct generation *g, const uint8_t *fingerprint, enum registry_kind kind) {
    for (size_t i = issued_place(g, fingerprint); g->issued[i].used;
         i = (i + 1) & (g->n_issued - 1)) {
        const struct registry_entry *e = &g->issued[i].entry;
        if (e->kind == kind && secret_equal(e->fingerprint, fingerprint, FINGERPRINT_SIZE))
            return e;
    }
    return NULL;
}

static int issued_build(struct generation *g, struct view registry) {
    struct registry_entry e = {0};
    size_t n = 0;
    g->strings = malloc(registry.n + 1);
    if (!g->strings)
        return ERR_MEMORY;
    memcpy(g->strings, registry.n ? (const void *)registry.p : "", registry.n);
    registry.p = (const uint8_t *)g->strings;
    for (struct view rest = registry; registry_next(&rest, &e);)
        n++;
    g->locked = n == 1 && e.kind == REGISTRY_LOCKED;
    g->n_issued = 16;
    while (g->n_issued < n * 2)
        g->n_issued *= 2;
    g->issued = calloc(g->n_issued, sizeof *g->issued);
    if (!g->issued)
        return ERR_MEMORY;
    struct view rest = registry;
    while (registry_next(&rest, &e))
        issued_put(g, &e);
    return rest.n == 0 ? 0 : ERR_BAD;
}

/* ---- grants ---- */

_Static_assert(sizeof *((struct generation *)0)->grants == DIGEST_SIZE, "a digest");

static int digest_grants(struct generation *g) {
    size_t n = policy_grants(g->policy);
    struct buf identity;
    int result = 0;
    g->grants = calloc(n + 1, DIGEST_SIZE);
    if (!g->grants)
        return ERR_MEMORY;
    buf_init(&identity, 2 * POLICY_TEXT_MAX);
    for (size_t i = 0; i < n && result == 0; i++) {
        const struct grant *grant = policy_grant_at(g->policy, i);
        if (!grant)
            continue;
        buf_reset(&identity);
        grant_put_identity(grant, &identity);
        digest_sha256(buf_view(&identity), g->grants[i]);
        result = buf_ok(&identity) ? 0 : ERR_MEMORY;
    }
    buf_free(&identity);
    return result;
}

const uint8_t *generation_grant(const struct generation *g, const struct grant *grant) {
    return g->grants[grant_index(grant)];
}

bool generation_grants(const struct generation *g, const uint8_t *digest) {
    for (size_t i = 0; i < policy_grants(g->policy); i++)
        if (policy_grant_at(g->policy, i) && memcmp(g->grants[i], digest, DIGEST_SIZE) == 0)
            return true;
    return false;
}

/* ---- generations ---- */

static char *copy_text(struct view v) {
    char *s = malloc(v.n + 1);
    if (s && view_cstr(v, s, v.n + 1) != 0) {
        free(s);
        return NULL;
    }
    return s;
}

static int compile(struct generation *g, const struct bundle *b, uint32_t lane,
                   const struct generation *before) {
    struct lane_info info;
    int result = bundle_find_lane(b, lane, &info);
    if (result != 0)
        return result;
    g->limits = b->limits;
    memcpy(g->synthetic, b->synthetic, sizeof g->synthetic);
    g->shared = info.shared;
    g->unenforced = info.unenforced;
    g->closed = info.closed;
    g->audit_durable = b->audit_durable;
    g->behind_proxy = !view_is_empty(b->upstream_proxy);
    g->names = copy_text(info.names);
    g->policy_file = copy_text(b->policy_file);
    if (!g->names || !g->policy_file)
        return ERR_MEMORY;
    struct policy_errors *errors = calloc(1, sizeof *errors);
    if (!errors)
        return ERR_MEMORY;
    result = policy_load(b->policy_text, g->policy_file, &g->policy, errors);
    free(errors);
    if (result != 0)
        return result;
    result = digest_grants(g);
    if (result == 0)
        result = build_trusts(g, b, before);
    if (result != 0)
        return result;
    return issued_build(g, b->registry);
}

int generation_new(uint32_t number, struct view text, uint32_t lane,
                   const struct generation *before, struct generation **out) {
    struct bundle b;
    int result = bundle_read(text, &b);
    if (result != 0)
        return result;
    struct generation *g = calloc(1, sizeof *g);
    if (!g)
        return ERR_MEMORY;
    g->references = 1;
    g->number = number;
    result = compile(g, &b, lane, before);
    if (result != 0) {
        generation_drop(g);
        return result;
    }
    *out = g;
    return 0;
}

struct generation *generation_keep(struct generation *g) {
    g->references++;
    return g;
}

void generation_drop(struct generation *g) {
    if (!g || --g->references > 0)
        return;
    policy_free(g->policy);
    trust_drop(g->trust);
    for (size_t i = 0; i < g->n_own; i++)
        trust_drop(g->own[i]);
    free(g->own);
    free(g->policy_file);
    free(g->names);
    free(g->issued);
    free(g->strings);
    free(g->grants);
    free(g);
}

struct tls_client *generation_tls(const struct generation *g) {
    return g->trust->client;
}

struct tls_client *generation_own_tls(const struct generation *g, const struct service *s) {
    struct trust *own = g->own[service_index(s)];
    return own ? own->client : NULL;
}

bool generation_has(const struct generation *g, struct view sandbox) {
    struct view rest = view_str(g->names), name;
    while (lane_sandbox(&rest, &name))
        if (view_equal(name, sandbox))
            return true;
    return false;
}

bool generation_issued(const struct generation *g, const uint8_t fingerprint[FINGERPRINT_SIZE],
                       struct view *sandbox, struct view *credential) {
    const struct registry_entry *e = issued_find(g, fingerprint, REGISTRY_PLACEHOLDER);
    if (!e)
        return false;
    *sandbox = e->sandbox;
    *credential = e->credential;
    return true;
}

const uint8_t *generation_placeholder(const struct generation *g, struct view sandbox,
                                      struct view credential) {
    for (size_t i = 0; i < g->n_issued; i++) {
        const struct registry_entry *e = &g->issued[i].entry;
        if (g->issued[i].used && e->kind == REGISTRY_PLACEHOLDER &&
            view_equal(e->sandbox, sandbox) && view_equal(e->credential, credential))
            return e->fingerprint;
    }
    return NULL;
}

bool generation_token(const struct generation *g, const uint8_t fingerprint[FINGERPRINT_SIZE],
                      struct view sandbox) {
    const struct registry_entry *e = issued_find(g, fingerprint, REGISTRY_TOKEN);
    return e && view_equal(e->sandbox, sandbox);
}

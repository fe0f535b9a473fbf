#include "policy/judge.h"

#include <stdio.h>

/* What the roles ask of a policy beside verdicts. */

/* ---- sandboxes ---- */

bool policy_has_sandbox(const struct policy *p, struct view sandbox) {
    struct who who;
    return who_find(p, sandbox, &who);
}

size_t policy_sandboxes(const struct policy *p) {
    return p->n_identities;
}

struct view policy_sandbox_at(const struct policy *p, size_t i) {
    return i < p->n_identities ? p->by_name[i].name : (struct view){NULL, 0};
}

bool policy_sandbox_block(const struct policy *p, struct view sandbox, size_t i, struct view *name,
                          struct position *at) {
    struct who who;
    if (!who_find(p, sandbox, &who))
        return false;
    const struct sandbox *const *blocks = who.blocks ? who.blocks : who.globs;
    for (size_t k = 0; k < who.n_blocks; k++) {
        if ((blocks[k]->glob && blocks[k]->labels) || i-- > 0)
            continue;
        *name = blocks[k]->name;
        *at = blocks[k]->at;
        return true;
    }
    return false;
}

/* ---- credentials ---- */

static bool holds_use(const struct who *who, const struct service *s, const struct credential *c) {
    for (const struct operation *o = s->operations; o; o = o->next)
        if (o->credential == c && who_holds(who, o))
            return true;
    return false;
}

static bool reaches_credential(const struct who *who, const struct service *s, struct view name) {
    for (const struct credential *c = s->credentials; c; c = c->next)
        if (view_equal(c->name, name) && holds_use(who, s, c))
            return true;
    return false;
}

static bool is_reached(const struct policy *p, const struct who *who, struct view name) {
    for (const struct service *s = p->services; s; s = s->next)
        if (who_reaches(who, s) && reaches_credential(who, s, name))
            return true;
    return false;
}

/* Of 64 credentials those that who reaches. Two layers may each grant a use of one, and no use in common. */
static uint64_t reached_of(const struct policy *p, const struct who *who, size_t word) {
    uint64_t all = UINT64_MAX;
    for (size_t i = 0; i < who->n_rights; i++)
        all &= who->rights[i]->credentials[word];
    for (uint64_t rest = who->n_rights > 1 ? all : 0; rest != 0; rest &= rest - 1)
        if (!is_reached(p, who, p->credentials[64 * word + (size_t)__builtin_ctzll(rest)]))
            all &= ~(rest & -rest);
    return all;
}

size_t policy_sandbox_credentials(const struct policy *p, struct view sandbox) {
    struct who who;
    size_t n = 0;
    if (!who_find(p, sandbox, &who))
        return 0;
    for (size_t w = 0; w < bit_words(p->n_credentials); w++)
        n += (size_t)__builtin_popcountll(reached_of(p, &who, w));
    return n;
}

struct view policy_sandbox_credential_at(const struct policy *p, struct view sandbox, size_t i) {
    struct who who;
    if (!who_find(p, sandbox, &who))
        return (struct view){NULL, 0};
    for (size_t w = 0; w < bit_words(p->n_credentials); w++)
        for (uint64_t rest = reached_of(p, &who, w); rest != 0; rest &= rest - 1)
            if (i-- == 0)
                return p->credentials[64 * w + (size_t)__builtin_ctzll(rest)];
    return (struct view){NULL, 0};
}

bool policy_lends(const struct policy *p, struct view sandbox, struct view credential,
                  const struct authority *a) {
    struct who who;
    if (credential.n == 0 || !who_find(p, sandbox, &who))
        return false;
    struct host_facts host = host_facts_of(a);
    if (!judge_door(p, &who, true, a, &host).allow)
        return false;
    struct host_walk walk = host_walk_of(&p->hosts, &host);
    unsigned level;
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;)
        if (service_covers_port(h->service, a->port) &&
            reaches_credential(&who, h->service, credential))
            return true;
    return false;
}

bool policy_shows(const struct policy *p, struct view sandbox, struct view name,
                  const struct authority *a) {
    struct who who;
    struct host_facts host = host_facts_of(a);
    struct host_walk walk = host_walk_of(&p->hosts, &host);
    unsigned level;
    if (name.n == 0 || !who_find(p, sandbox, &who) || !judge_door(p, &who, true, a, &host).allow)
        return false;
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;)
        if (service_covers_port(h->service, a->port) && who_reaches(&who, h->service) &&
            view_equal(h->service->upstream.client_certificate, name))
            return true;
    return false;
}

bool policy_has_certificate(const struct policy *p, struct view name) {
    const struct service *s = p->services;
    while (s && !view_equal(s->upstream.client_certificate, name))
        s = s->next;
    return s != NULL;
}

static bool has_credential(const struct service *s, struct view name) {
    const struct credential *c = s->credentials;
    while (c && !view_equal(c->name, name))
        c = c->next;
    return c != NULL;
}

bool policy_lends_at_host(const struct policy *p, struct view sandbox, struct view credential,
                          const struct authority *a, struct authority *where) {
    struct authority here = *a;
    struct host_facts host = host_facts_of(a);
    struct host_walk walk = host_walk_of(&p->hosts, &host);
    unsigned level;
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;)
        for (size_t i = 0; has_credential(h->service, credential) && i < h->service->n_ports; i++) {
            here.port = h->service->ports[i];
            if (!policy_lends(p, sandbox, credential, &here))
                continue;
            *where = here;
            return true;
        }
    return false;
}

/* A host that the pattern covers. */
static bool host_of(const struct host_pattern *p, struct authority *out) {
    *out = p->base;
    if (p->reach == REACH_EXACT)
        return true;
    return snprintf(out->host, sizeof out->host, "x.%s", p->base.host) < (int)sizeof out->host;
}

bool policy_puts(const struct policy *p, struct view credential, enum place place) {
    for (const struct service *s = p->services; s; s = s->next)
        for (const struct credential *c = s->credentials; c; c = c->next)
            if (c->place.place == place && view_equal(c->name, credential))
                return true;
    return false;
}

bool policy_lends_somewhere(const struct policy *p, struct view sandbox, struct view credential,
                            struct authority *where) {
    struct authority host;
    for (const struct service *s = p->services; s; s = s->next)
        for (const struct host_rule *h = s->hosts; h && has_credential(s, credential); h = h->next)
            if (host_of(&h->pattern, &host) &&
                policy_lends_at_host(p, sandbox, credential, &host, where))
                return true;
    return false;
}

bool policy_guards_host(const struct policy *p, struct view sandbox, const struct authority *a) {
    struct who who;
    struct host_facts host = host_facts_of(a);
    struct host_walk walk = host_walk_of(&p->hosts, &host);
    unsigned level;
    if (!who_find(p, sandbox, &who))
        return false;
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;)
        if (h->service->credentials && who_reaches(&who, h->service))
            return true;
    return false;
}

void policy_watch(const struct policy *p, const struct authority *a, struct watched *out) {
    struct host_facts host = host_facts_of(a);
    struct host_walk walk = host_walk_of(&p->hosts, &host);
    unsigned level;
    out->n = 0;
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;) {
        const struct service *s = h->service;
        if (!s->credentials || !service_covers_port(s, a->port))
            continue;
        for (const struct credential *c = s->credentials; c; c = c->next)
            out->at[out->n++] = &c->place;
        return;
    }
}

bool policy_allows_encoded_slash(const struct policy *p, const struct authority *a) {
    struct host_facts host = host_facts_of(a);
    struct host_walk walk = host_walk_of(&p->hosts, &host);
    unsigned level;
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;)
        if (h->service->encoded_slash && service_covers_port(h->service, a->port))
            return true;
    return false;
}

struct view policy_body_pointer(const struct policy *p, uint16_t index) {
    return index < p->n_pointers ? p->pointers[index] : (struct view){NULL, 0};
}

bool policy_wide_host(const struct policy *p, size_t i, struct view *text, struct position *at) {
    for (const struct service *s = p->services; s; s = s->next)
        for (const struct host_rule *h = s->hosts; h; h = h->next) {
            if (!h->wide || i-- > 0)
                continue;
            *text = h->text;
            *at = h->at;
            return true;
        }
    return false;
}

/* ---- one service ---- */

bool service_permits_address(const struct service *s, const struct address *a) {
    enum address_class class = address_classify(a);
    if (class == ADDRESS_PUBLIC)
        return true;
    if (class == ADDRESS_UNSPECIFIED || class == ADDRESS_MULTICAST || class == ADDRESS_BROADCAST)
        return false;
    for (const struct range_rule *r = s->ranges; r; r = r->next) {
        uint8_t whole = r->range.base.family == 4 ? 32 : 128;
        if ((class != ADDRESS_METADATA || r->range.bits == whole) && range_holds(&r->range, a))
            return true;
    }
    return false;
}

static bool has_address(const struct service *s, const struct address *a) {
    for (const struct host_rule *h = s->hosts; h; h = h->next) {
        const struct authority *base = &h->pattern.base;
        if (h->pattern.reach == REACH_EXACT && base->kind == HOST_ADDRESS &&
            address_reaches(a, &base->address))
            return true;
    }
    return false;
}

const struct service *policy_never_address(const struct policy *p, const struct address *a,
                                           uint16_t port) {
    for (const struct service *s = p->services; s; s = s->next)
        if (s->never_all.line != 0 && service_covers_port(s, port) && has_address(s, a))
            return s;
    return NULL;
}

bool service_asks_country(const struct service *s) {
    return s->country.given;
}

bool service_asks_asn(const struct service *s) {
    return s->asn.given;
}

static bool is_in_country(const struct location_rule *r, struct view country) {
    for (size_t i = 0; i < r->n; i++)
        if (view_equal(r->countries[i], country))
            return true;
    return false;
}

static bool is_in_system(const struct location_rule *r, uint32_t asn) {
    for (size_t i = 0; i < r->n; i++)
        if (r->systems[i] == asn)
            return true;
    return false;
}

bool service_permits_location(const struct service *s, struct view country, uint32_t asn) {
    if (s->country.given &&
        (country.n == 0 || is_in_country(&s->country, country) == s->country.not ))
        return false;
    return !s->asn.given || (asn != 0 && is_in_system(&s->asn, asn) != s->asn.not );
}

const struct service *policy_service_at(const struct policy *p, size_t i) {
    return i < p->n_services ? p->by_index[i] : NULL;
}

size_t policy_services(const struct policy *p) {
    return p->n_services;
}

size_t service_index(const struct service *s) {
    return s->index;
}

struct position service_position(const struct service *s) {
    return s->at;
}

struct view service_name(const struct service *s) {
    return s->name;
}

bool service_accepts_any(const struct service *s) {
    return s->accept_any;
}

enum service_tls service_tls(const struct service *s) {
    return s->tls;
}

uint64_t service_splice_most(const struct service *s) {
    return s->splice_most;
}

const struct upstream_terms *service_upstream(const struct service *s) {
    return &s->upstream;
}

/* ---- parts of a verdict ---- */

struct view operation_name(const struct operation *o) {
    return o->name;
}

bool operation_is_anonymous(const struct operation *o) {
    return o->anonymous;
}

struct view verdict_credential(const struct verdict *v) {
    return v->credential ? v->credential->name : (struct view){NULL, 0};
}

const struct credential_place *verdict_place(const struct verdict *v) {
    return v->credential ? &v->credential->place : NULL;
}

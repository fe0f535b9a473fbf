#include "policy/errors.h"
#include "policy/method.h"
#include "policy/rules.h"

#include <stdio.h>
#include <string.h>

/* ---- parts of the policy ---- */

const struct sandbox *policy_sandbox(const struct policy *p, struct view name) {
    size_t from = 0, to = p->n_sandboxes;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = view_compare(name, p->by_name[middle]->name);
        if (order == 0)
            return p->by_name[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

const struct host_rule *service_covering_host(const struct service *s,
                                              const struct host_facts *host) {
    const struct host_rule *h = s->hosts;
    while (h && !host_pattern_match(&h->pattern, host))
        h = h->next;
    return h;
}

bool service_covers_port(const struct service *s, uint16_t port) {
    for (size_t i = 0; i < s->n_ports; i++)
        if (s->ports[i] == port)
            return true;
    return s->every_port;
}

/* ---- the host ---- */

/* A refusal that no clause decides: the position without a file, as a hint where to look. */
static struct verdict refuse_near(enum reason reason, const struct service *s) {
    struct verdict v = {.reason = reason, .service = s, .swap = -1};
    if (s)
        v.at = (struct position){NULL, s->at.line, s->at.column};
    return v;
}

static struct verdict refuse_at(enum reason reason, const struct service *s, struct position at) {
    return (struct verdict){.reason = reason, .service = s, .at = at, .swap = -1};
}

/* The services this sandbox has a grant at get this far towards an authority. */
static enum reason door_of(const struct service *s, bool tls, uint16_t port) {
    if (!service_covers_port(s, port))
        return REASON_PORT_NOT_ALLOWED;
    return tls || s->clear ? REASON_ALLOWED : REASON_CLEAR_NOT_ALLOWED;
}

static int door_rank(enum reason r) {
    switch (r) {
    case REASON_ALLOWED:
        return 3;
    case REASON_CLEAR_NOT_ALLOWED:
        return 2;
    case REASON_PORT_NOT_ALLOWED:
        return 1;
    default:
        return 0;
    }
}

/* What is known once the host was judged. */
struct door {
    struct verdict verdict;
    uint64_t covering[SERVICES_MAX / 64]; /* bits of the services that cover host and port */
};

static void try_door(const struct service *s, const struct host_rule *h,
                     const struct rights *rights, bool tls, uint16_t port, struct verdict *best) {
    enum reason reason = door_of(s, tls, port);
    if (!bit_is_set(rights->services, s->index) || door_rank(reason) <= door_rank(best->reason))
        return;
    *best = refuse_near(reason, s);
    if (reason == REASON_ALLOWED)
        best->at = h->at;
}

static bool entry_matches(const struct host_entry *e, const struct host_facts *host) {
    if (e->reach != REACH_MANY &&
        e->mark != (e->reach == REACH_EXACT ? host->mark : host->above_mark))
        return false;
    return host_pattern_match(&e->rule->pattern, host);
}

static void judge_door(const struct policy *p, const struct rights *rights, bool tls,
                       const struct authority *a, struct door *out) {
    struct host_facts host = host_facts_of(a);
    struct verdict best = refuse_near(REASON_HOST_NOT_ALLOWED, NULL);
    const struct service *never = NULL;
    memset(out->covering, 0, bit_words(p->n_services) * sizeof out->covering[0]);
    for (const struct host_entry *e = p->entries; e < p->entries + p->n_entries; e++) {
        if (!entry_matches(e, &host))
            continue;
        const struct service *s = e->rule->service;
        if (service_covers_port(s, a->port)) {
            bit_set(out->covering, s->index);
            if (s->never_all.line != 0)
                never = s;
        }
        try_door(s, e->rule, rights, tls, a->port, &best);
    }
    best.allow = best.reason == REASON_ALLOWED;
    if (best.allow && never)
        best = refuse_at(REASON_NEVER, never, never->never_all);
    out->verdict = best;
}

struct verdict policy_judge_host(const struct policy *p, struct view sandbox, bool tls,
                                 const struct authority *a) {
    const struct sandbox *s = policy_sandbox(p, sandbox);
    if (!s)
        return refuse_near(REASON_UNKNOWN_SANDBOX, NULL);
    struct door door;
    judge_door(p, &s->rights, tls, a, &door);
    return door.verdict;
}

struct view policy_credential_field(const struct policy *p, const struct authority *a) {
    struct host_facts host = host_facts_of(a);
    for (const struct host_entry *e = p->entries; e < p->entries + p->n_entries; e++) {
        const struct service *s = e->rule->service;
        if (s->credential.n && service_covers_port(s, a->port) && entry_matches(e, &host))
            return s->place.header;
    }
    return (struct view){NULL, 0};
}

/* ---- the operation ---- */

static const struct rule *matching_rule(const struct rule *rules, uint64_t method,
                                        const struct target *t, bool never) {
    for (const struct rule *r = rules; r; r = r->next)
        if (((r->methods & method) != 0 || (never && r->any_method)) &&
            path_pattern_match(&r->path, t, never))
            return r;
    return NULL;
}

struct found {
    const struct operation *any, *granted, *anonymous;
    const struct rule *granted_rule, *anonymous_rule;
};

static void look_in_service(const struct service *s, const struct rights *rights, uint64_t method,
                            const struct target *t, struct found *out) {
    for (const struct operation *o = s->operations; o; o = o->next) {
        const struct rule *r = matching_rule(o->rules, method, t, false);
        if (!r)
            continue;
        out->any = o;
        if (!bit_is_set(rights->operations, o->index))
            continue;
        if (!out->granted) {
            out->granted = o;
            out->granted_rule = r;
        }
        if (!out->anonymous && o->anonymous) {
            out->anonymous = o;
            out->anonymous_rule = r;
        }
    }
}

/* ---- credentials ---- */

static bool is_basic(const struct credential_place *place) {
    return place->place != PLACE_HEADER;
}

bool material_stands_in(const struct material *m, const struct credential_place *place) {
    return m->place == place->place && !m->malformed && view_equal_nocase(m->name, place->header) &&
           (is_basic(place) || view_equal_nocase(m->scheme, place->scheme));
}

/* Beside a credential in one half of Basic the other half is only text. */
static bool is_other_half(const struct service *s, const struct material *m) {
    return s->credential.n != 0 && is_basic(&s->place) && m->place != s->place.place &&
           (m->place == PLACE_BASIC_USER || m->place == PLACE_BASIC_PASSWORD) &&
           view_equal_nocase(m->name, s->place.header) && m->origin == ORIGIN_FOREIGN &&
           !m->malformed;
}

static enum reason weigh_material(const struct service *s, const struct material *m) {
    switch (m->origin) {
    case ORIGIN_OTHER:
        return REASON_PLACEHOLDER_WRONG_IDENTITY;
    case ORIGIN_OURS:
        if (s->credential.n == 0 || !view_equal(m->credential, s->credential))
            return REASON_PLACEHOLDER_WRONG_DESTINATION;
        if (m->malformed)
            return REASON_FOREIGN_CREDENTIAL;
        return material_stands_in(m, &s->place) ? REASON_ALLOWED : REASON_PLACEHOLDER_WRONG_PLACE;
    case ORIGIN_FOREIGN:
        break;
    }
    if (m->place == PLACE_TARGET)
        return s->accept_destinations ? REASON_ALLOWED : REASON_SECOND_TARGET;
    if (s->accept_any || (s->accept_cookies && m->place == PLACE_COOKIE))
        return REASON_ALLOWED;
    return REASON_FOREIGN_CREDENTIAL;
}

static int gravity(enum reason r) {
    switch (r) {
    case REASON_PLACEHOLDER_WRONG_IDENTITY:
        return 5;
    case REASON_PLACEHOLDER_WRONG_DESTINATION:
        return 4;
    case REASON_PLACEHOLDER_WRONG_PLACE:
        return 3;
    case REASON_FOREIGN_CREDENTIAL:
        return 2;
    case REASON_PLACEHOLDER_REPEATED:
    case REASON_SECOND_TARGET:
        return 1;
    default:
        return 0;
    }
}

static void worsen(enum reason *worst, enum reason r) {
    if (gravity(r) > gravity(*worst))
        *worst = r;
}

/* The gravest fault of what the request carries; *swap is the material to replace, or -1. */
static enum reason judge_materials(const struct service *s, const struct request_facts *f,
                                   int *swap) {
    enum reason worst = REASON_ALLOWED;
    size_t halves = 0;
    *swap = -1;
    for (size_t i = 0; i < f->materials->n; i++) {
        const struct material *m = &f->materials->at[i];
        if (is_other_half(s, m)) {
            halves++;
            continue;
        }
        enum reason r = weigh_material(s, m);
        if (r == REASON_ALLOWED && m->origin == ORIGIN_OURS) {
            if (*swap >= 0)
                r = REASON_PLACEHOLDER_REPEATED;
            *swap = (int)i;
        }
        worsen(&worst, r);
    }
    if (f->materials->overflow || halves > 1 || (halves == 1 && *swap < 0))
        worsen(&worst, REASON_FOREIGN_CREDENTIAL);
    if (f->placeholder_elsewhere)
        worsen(&worst, s->credential.n ? REASON_PLACEHOLDER_WRONG_PLACE
                                       : REASON_PLACEHOLDER_WRONG_DESTINATION);
    return worst;
}

static struct verdict judge_credentials(const struct found *found, const struct request_facts *f) {
    const struct service *s = found->granted->service;
    struct verdict v = {.allow = true,
                        .reason = REASON_ALLOWED,
                        .service = s,
                        .operation = found->granted,
                        .at = found->granted_rule->at};
    v.reason = judge_materials(s, f, &v.swap);
    if (v.reason == REASON_ALLOWED && s->credential.n != 0 && v.swap < 0) {
        if (found->anonymous) {
            v.service = found->anonymous->service;
            v.operation = found->anonymous;
            v.at = found->anonymous_rule->at;
        } else {
            v.reason = REASON_CREDENTIAL_MISSING;
        }
    }
    if (v.reason != REASON_ALLOWED) {
        v.allow = false;
        v.swap = -1;
        v.at = s->credential.n ? s->credential_at : s->at;
    }
    return v;
}

/* ---- the request ---- */

static bool is_override(struct view name) {
    if (view_find(name, '%') == name.n && view_find(name, '+') == name.n)
        return method_is_override_name(name);
    struct buf decoded;
    buf_init(&decoded, name.n);
    bool is =
        percent_decode(name, true, &decoded) != 0 || method_is_override_name(buf_view(&decoded));
    buf_free(&decoded);
    return is;
}

/*
 * Some frameworks take the method from the query: what was judged would not be what is done
 * (PN-09). Some split it at ';' as well.
 */
static bool overrides_method(const struct target *t) {
    struct view rest = t->has_query ? t->query : (struct view){NULL, 0};
    while (rest.n > 0) {
        struct view pair = view_cut(&rest, '&');
        while (pair.n > 0) {
            struct view piece = view_cut(&pair, ';');
            if (is_override(view_cut(&piece, '=')))
                return true;
        }
    }
    return false;
}

/* Looks through the services that cover the authority: a never line that matches ends it. */
static const struct rule *look_for(const struct policy *p, const struct rights *rights,
                                   const struct request_facts *f, const struct door *door,
                                   struct found *out, const struct service **by) {
    uint64_t method = method_bit(f->method);
    for (size_t i = 0; i < bit_words(p->n_services); i++)
        for (uint64_t bits = door->covering[i]; bits != 0; bits &= bits - 1) {
            *by = p->by_index[i * 64 + (size_t)__builtin_ctzll(bits)];
            const struct rule *never = matching_rule((*by)->nevers, method, f->target, true);
            if (never)
                return never;
            if (f->tls || (*by)->clear)
                look_in_service(*by, rights, method, f->target, out);
        }
    return NULL;
}

struct verdict judge_rights(const struct policy *p, const struct rights *rights,
                            const struct request_facts *f) {
    struct door door;
    judge_door(p, rights, f->tls, f->authority, &door);
    if (!door.verdict.allow)
        return door.verdict;
    if (method_is_refused(f->method))
        return refuse_near(REASON_METHOD_REFUSED, door.verdict.service);
    if (overrides_method(f->target))
        return refuse_near(REASON_METHOD_OVERRIDE, door.verdict.service);
    struct found found = {0};
    const struct service *by;
    const struct rule *never = look_for(p, rights, f, &door, &found, &by);
    if (never)
        return refuse_at(REASON_NEVER, by, never->at);
    if (found.granted)
        return judge_credentials(&found, f);
    if (!found.any)
        return refuse_near(REASON_OPERATION_NOT_ALLOWED, door.verdict.service);
    struct verdict v = refuse_near(REASON_OPERATION_NOT_GRANTED, found.any->service);
    v.operation = found.any;
    return v;
}

struct verdict policy_judge(const struct policy *p, const struct request_facts *f) {
    const struct sandbox *s = policy_sandbox(p, f->sandbox);
    if (!s)
        return refuse_near(REASON_UNKNOWN_SANDBOX, NULL);
    return judge_rights(p, &s->rights, f);
}

/* ---- what else the roles ask ---- */

bool policy_has_sandbox(const struct policy *p, struct view sandbox) {
    return policy_sandbox(p, sandbox) != NULL;
}

size_t policy_sandboxes(const struct policy *p) {
    return p->n_sandboxes;
}

struct view policy_sandbox_at(const struct policy *p, size_t i) {
    return i < p->n_sandboxes ? p->by_name[i]->name : (struct view){NULL, 0};
}

size_t policy_sandbox_credentials(const struct policy *p, struct view sandbox) {
    const struct sandbox *s = policy_sandbox(p, sandbox);
    return s ? s->n_credentials : 0;
}

struct view policy_sandbox_credential_at(const struct policy *p, struct view sandbox, size_t i) {
    const struct sandbox *s = policy_sandbox(p, sandbox);
    return s && i < s->n_credentials ? s->credentials[i] : (struct view){NULL, 0};
}

bool policy_lends(const struct policy *p, struct view sandbox, struct view credential,
                  const struct authority *a) {
    const struct sandbox *who = policy_sandbox(p, sandbox);
    struct door door;
    if (!who || credential.n == 0)
        return false;
    judge_door(p, &who->rights, true, a, &door);
    if (!door.verdict.allow)
        return false;
    for (const struct service *s = p->services; s; s = s->next)
        if (bit_is_set(door.covering, s->index) && bit_is_set(who->rights.services, s->index) &&
            view_equal(s->credential, credential))
            return true;
    return false;
}

bool policy_lends_at_host(const struct policy *p, struct view sandbox, struct view credential,
                          const struct authority *a, struct authority *where) {
    struct host_facts host = host_facts_of(a);
    for (const struct service *s = p->services; s; s = s->next) {
        if (!view_equal(s->credential, credential) || !service_covering_host(s, &host))
            continue;
        *where = *a;
        for (size_t i = 0; i < s->n_ports; i++) {
            where->port = s->ports[i];
            if (policy_lends(p, sandbox, credential, where))
                return true;
        }
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

bool policy_lends_somewhere(const struct policy *p, struct view sandbox, struct view credential,
                            struct authority *where) {
    for (const struct service *s = p->services; s; s = s->next)
        for (const struct host_rule *h = s->hosts; h && view_equal(s->credential, credential);
             h = h->next)
            if (host_of(&h->pattern, where) &&
                policy_lends_at_host(p, sandbox, credential, where, where))
                return true;
    return false;
}

bool policy_guards_host(const struct policy *p, struct view sandbox, const struct authority *a) {
    const struct sandbox *who = policy_sandbox(p, sandbox);
    struct host_facts host = host_facts_of(a);
    for (const struct service *s = who ? p->services : NULL; s; s = s->next)
        if (s->credential.n && bit_is_set(who->rights.services, s->index) &&
            service_covering_host(s, &host))
            return true;
    return false;
}

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

struct view service_name(const struct service *s) {
    return s->name;
}

struct view service_credential(const struct service *s) {
    return s->credential;
}

const struct credential_place *service_place(const struct service *s) {
    return &s->place;
}

bool service_accepts_any(const struct service *s) {
    return s->accept_any;
}

struct view operation_name(const struct operation *o) {
    return o->name;
}

bool operation_is_anonymous(const struct operation *o) {
    return o->anonymous;
}

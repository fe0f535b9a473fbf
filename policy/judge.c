#include "policy/judge.h"

#include "policy/dns_message.h"
#include "policy/echo.h"
#include "policy/judge_grants.h"
#include "policy/judge_material.h"
#include "policy/method.h"

#include <string.h>

/* ---- refusals ---- */

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

/* ---- the host ---- */

/* The services that who has a grant at get this far towards an authority. */
static enum reason door_of(const struct service *s, bool tls, uint16_t port) {
    if (!service_covers_port(s, port))
        return REASON_PORT_NOT_ALLOWED;
    if (!tls && s->tls != SERVICE_CLEAR)
        return REASON_CLEAR_NOT_ALLOWED;
    return REASON_ALLOWED;
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

static void try_door(const struct host_rule *h, const struct who *who, bool tls, uint16_t port,
                     struct verdict *best) {
    const struct service *s = h->service;
    enum reason reason = door_of(s, tls, port);
    if (door_rank(reason) < door_rank(best->reason) || !who_reaches(who, s))
        return;
    bool earlier = best->service && s->index < best->service->index;
    if (door_rank(reason) == door_rank(best->reason) && !earlier)
        return;
    *best = refuse_near(reason, s);
    if (reason == REASON_ALLOWED)
        best->at = h->at;
}

struct verdict judge_door(const struct policy *p, const struct who *who, bool tls,
                          const struct authority *a, const struct host_facts *host) {
    struct verdict best = refuse_near(REASON_HOST_NOT_ALLOWED, NULL);
    const struct service *never = NULL;
    if (echo_is_host(a))
        return best;
    struct host_walk walk = host_walk_of(&p->hosts, host);
    unsigned level;
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;) {
        const struct service *s = h->service;
        if (s->never_all.line != 0 && service_covers_port(s, a->port) &&
            (!never || s->index < never->index))
            never = s;
        try_door(h, who, tls, a->port, &best);
    }
    best.allow = best.reason == REASON_ALLOWED;
    if (best.allow && never)
        best = refuse_at(REASON_NEVER, never, never->never_all);
    return best;
}

/* ---- lines ---- */

static bool precedes(struct position a, struct position b) {
    return a.line != b.line ? a.line < b.line : a.column < b.column;
}

/* The first condition of a line that does not hold, or NULL; *unsure: they all would if what the body says is right. */
static const struct condition *find_unmet(struct search *search, const struct rule *r, bool widely,
                                          bool *unsure) {
    *unsure = false;
    for (const struct condition *c = r->conditions; c; c = c->next) {
        if (search->needs && condition_wants_body(c, search->facts))
            search->favoured = *unsure = true;
        else if (!condition_holds(c, r->conditions, search->facts, widely))
            return c;
    }
    return NULL;
}

static void note_size(struct search *search, uint64_t size) {
    if (size > search->sizes)
        search->sizes = size;
}

static void ask_for_pointer(struct body_needs *needs, uint16_t pointer) {
    for (size_t i = 0; i < needs->n_pointers; i++)
        if (needs->pointers[i] == pointer)
            return;
    if (needs->n_pointers == BODY_POINTERS_MAX)
        needs->too_many = true;
    else
        needs->pointers[needs->n_pointers++] = pointer;
}

static void ask_for(struct search *search, const struct condition *c) {
    struct body_needs *needs = search->needs;
    switch (c->kind) {
    case CONDITION_SIZE:
        note_size(search, c->limit);
        return;
    case CONDITION_GRAPHQL:
        needs->graphql = true;
        return;
    case CONDITION_RPC:
    case CONDITION_MCP:
        needs->rpc = true;
        return;
    default:
        ask_for_pointer(needs, c->pointer);
    }
}

static void note_needs(struct search *search, const struct rule *r) {
    for (const struct condition *c = r->conditions; c; c = c->next)
        if (condition_wants_body(c, search->facts))
            ask_for(search, c);
    search->unsure = true;
}

/* Within one level of hosts. */
static bool is_better(const struct rule *r, const struct rule *than) {
    if (!than || r->rank != than->rank)
        return !than || r->rank > than->rank;
    if (r->service != than->service)
        return r->service->index < than->service->index;
    return precedes(r->at, than->at);
}

static void keep_better(struct choice *best, const struct rule *r, unsigned level) {
    if (best->rule && (level > best->level || (level == best->level && !is_better(r, best->rule))))
        return;
    best->rule = r;
    best->level = level;
}

/* A granted line is nearer than another one, then the more specific one. */
static void keep_unmet(struct search *search, const struct rule *r, const struct condition *c) {
    struct unmet *best = &search->unmet;
    bool granted = who_holds(search->who, r->operation);
    if (best->rule && (best->granted > granted ||
                       (best->granted == granted &&
                        (best->level < search->level ||
                         (best->level == search->level && !is_better(r, best->rule))))))
        return;
    *best = (struct unmet){r, c, search->level, granted};
}

static bool on_operations(void *ctx, const struct rule *rules) {
    struct search *search = ctx;
    bool unsure;
    for (const struct rule *r = rules; r; r = r->same) {
        if ((r->methods & search->method) == 0 || r->websocket != search->facts->websocket ||
            !path_pattern_ends(&r->path, search->facts->target, false))
            continue;
        const struct condition *unmet = find_unmet(search, r, false, &unsure);
        if (unmet) {
            keep_unmet(search, r, unmet);
            continue;
        }
        keep_better(&search->any, r, search->level);
        if (!who_holds(search->who, r->operation))
            continue;
        if (search->is_dns && !dns_message_is_named(r->conditions)) {
            search->no_dns = r;
            continue;
        }
        if (unsure)
            note_needs(search, r);
        keep_better(&search->granted, r, search->level);
        if (r->operation->anonymous)
            keep_better(&search->anonymous, r, search->level);
    }
    return true;
}

static bool on_nevers(void *ctx, const struct rule *rules) {
    struct search *search = ctx;
    bool unsure;
    for (const struct rule *r = rules; r; r = r->same) {
        if (((r->methods & search->method) == 0 && !r->any_method) ||
            (r->websocket && !search->facts->websocket) || find_unmet(search, r, true, &unsure))
            continue;
        if (unsure)
            note_needs(search, r);
        else if (!search->never || r->service->index < search->never->service->index ||
                 (r->service == search->never->service && precedes(r->at, search->never->at)))
            search->never = r;
    }
    return true;
}

bool service_takes(const struct service *s, const struct request_facts *f) {
    return (f->tls || s->tls == SERVICE_CLEAR) && service_allows_path(s, f->target);
}

static void search_service(const struct policy *p, const struct service *s, struct search *search) {
    const struct request_facts *f = search->facts;
    if (s->nevers)
        path_trie_walk(&p->paths, s->never_root, f->target, true, false, on_nevers, search);
    if (s->nevers && f->target->encoded_slash)
        path_trie_walk(&p->paths, s->never_root, f->target, true, true, on_nevers, search);
    if (service_takes(s, f))
        path_trie_walk(&p->paths, s->allow_root, f->target, false, false, on_operations, search);
}

/* Through the services that cover the authority, those of the most specific hosts first. */
static void search_services(const struct policy *p, const struct host_facts *host,
                            struct search *search) {
    uint64_t seen[SERVICES_MAX / 64];
    struct host_walk walk = host_walk_of(&p->hosts, host);
    memset(seen, 0, bit_words(p->n_services) * sizeof seen[0]);
    search->method = method_bit(search->facts->method);
    for (const struct host_rule *h; (h = host_walk_next(&walk, &search->level)) != NULL;) {
        const struct service *s = h->service;
        if (bit_is_set(seen, s->index) || !service_covers_port(s, search->facts->authority->port))
            continue;
        bit_set(seen, s->index);
        search_service(p, s, search);
    }
}

/* ---- the host alone ---- */

struct verdict policy_judge_host(const struct policy *p, struct view sandbox, bool tls,
                                 const struct authority *a) {
    struct who who;
    if (!who_find(p, sandbox, &who))
        return refuse_near(REASON_UNKNOWN_SANDBOX, NULL);
    struct host_facts host = host_facts_of(a);
    struct verdict v = judge_door(p, &who, tls, a, &host);
    if (v.allow && v.service->tls == SERVICE_SPLICE) {
        v.operation = v.service->operations;
        (void)judge_grants(&who, 0, &v);
    }
    return v;
}

const struct service *policy_service_of(const struct policy *p, bool tls,
                                        const struct authority *a) {
    struct host_facts host = host_facts_of(a);
    struct host_walk walk = host_walk_of(&p->hosts, &host);
    unsigned level;
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;) {
        const struct service *s = h->service;
        if (s->operations && s->tls != SERVICE_SPLICE && door_of(s, tls, a->port) == REASON_ALLOWED)
            return s;
    }
    return NULL;
}

/* ---- the verdict ---- */

/* A body of which the size is not known is too large, unless it can still be asked for. */
static bool is_too_large(struct search *search, const struct service *s) {
    const struct request_facts *f = search->facts;
    if (s->body_limit == UINT64_MAX)
        return false;
    if (f->length_known)
        return f->length > s->body_limit;
    if (f->body)
        return f->body->unclear || f->body->size > s->body_limit;
    if (!search->needs)
        return true;
    note_size(search, s->body_limit);
    search->favoured = search->unsure = true;
    return false;
}

/* The credential of an operation, or of a request that is observed: judged alike. */
static struct verdict judge_credentials(const struct search *search, const struct service *s,
                                        const struct operation *o, const struct credential *c) {
    struct verdict v = {.allow = true,
                        .reason = REASON_ALLOWED,
                        .service = s,
                        .operation = o,
                        .credential = c,
                        .swap = -1};
    v.reason = judge_materials(s, c, search->facts, &v.swaps);
    if (v.reason == REASON_ALLOWED && c && v.swaps == 0 && !(o && o->anonymous))
        v.reason = REASON_CREDENTIAL_MISSING;
    v.allow = v.reason == REASON_ALLOWED;
    if (!v.allow) {
        v.at = c ? c->at : s->at;
        v.swaps = 0;
    }
    if (v.swaps != 0)
        v.swap = __builtin_ctz(v.swaps);
    return v;
}

static void refuse_allowed(struct verdict *v, enum reason reason) {
    v->allow = false;
    v->reason = reason;
    v->swap = -1;
    v->swaps = 0;
}

static void limit_body(struct search *search, struct verdict *v) {
    if (v->allow && is_too_large(search, v->service))
        refuse_allowed(v, REASON_BODY_TOO_LARGE);
}

static struct verdict allow(struct search *search, const struct rule *r) {
    const struct operation *o = r->operation;
    struct verdict v = judge_credentials(search, o->service, o, o->credential);
    const struct rule *anonymous = search->anonymous.rule;
    if (v.reason == REASON_CREDENTIAL_MISSING && anonymous) {
        v.allow = true;
        v.reason = REASON_ALLOWED;
        v.operation = anonymous->operation;
        v.service = v.operation->service;
        r = anonymous;
    }
    if (v.allow)
        v.at = r->at;
    limit_body(search, &v);
    if (v.allow && !judge_grants(search->who, search->facts->now, &v))
        refuse_allowed(&v, v.reason);
    return v;
}

/* What no operation allows, where somebody only watches for the time being. */
static struct verdict refuse_or_observe(const struct policy *p, const struct host_facts *host,
                                        struct search *search, struct verdict refused) {
    struct observed o;
    if (!judge_observed(p, host, search, &o))
        return refused;
    struct verdict v = judge_credentials(search, o.service, o.operation, o.credential);
    if (v.allow)
        v.at = o.at;
    limit_body(search, &v);
    if (v.allow) {
        judge_observing_grants(search->who, search->facts->now, &v);
        v.observed = refused.reason;
        v.unmet = refused.unmet;
        v.condition = refused.condition;
    }
    return v;
}

/* What no operation is for, or none whose conditions hold. */
static struct verdict refuse_unmatched(const struct service *door, const struct unmet *unmet) {
    if (!unmet->rule)
        return refuse_near(REASON_OPERATION_NOT_ALLOWED, door);
    struct verdict v =
        refuse_at(REASON_OPERATION_NOT_ALLOWED, unmet->rule->service, unmet->condition->at);
    v.unmet = unmet->rule;
    v.condition = unmet->condition;
    return v;
}

static struct verdict judge(const struct policy *p, struct search *search) {
    const struct request_facts *f = search->facts;
    struct host_facts host = host_facts_of(f->authority);
    struct verdict door = judge_door(p, search->who, f->tls, f->authority, &host);
    if (!door.allow)
        return door;
    if (method_is_refused(f->method))
        return refuse_near(REASON_METHOD_REFUSED, door.service);
    if (method_is_overridden(f->target))
        return refuse_near(REASON_METHOD_OVERRIDE, door.service);
    search->is_dns = dns_message_is_in(f);
    search_services(p, &host, search);
    if (search->never)
        return refuse_at(REASON_NEVER, search->never->service, search->never->at);
    if (search->granted.rule)
        return allow(search, search->granted.rule);
    struct verdict v = refuse_unmatched(door.service, &search->unmet);
    if (search->no_dns) {
        v = refuse_at(REASON_DNS_MESSAGE, search->no_dns->service, search->no_dns->at);
    } else if (search->any.rule) {
        v = refuse_near(REASON_OPERATION_NOT_GRANTED, search->any.rule->service);
        v.operation = search->any.rule->operation;
    }
    return refuse_or_observe(p, &host, search, v);
}

struct verdict judge_who(const struct policy *p, const struct who *who,
                         const struct request_facts *f) {
    struct search search = {.who = who, .facts = f};
    return judge(p, &search);
}

struct verdict policy_judge(const struct policy *p, const struct request_facts *f) {
    struct who who;
    if (!who_find(p, f->sandbox, &who))
        return refuse_near(REASON_UNKNOWN_SANDBOX, NULL);
    return judge_who(p, &who, f);
}

/* ---- what must be known of the body ---- */

/* Whether an operation that the body rules out could leave one with another credential. */
static bool is_about_credentials(const struct verdict *v) {
    return v->credential && v->service->credentials->next;
}

/* Whether a credential may stand in the body: that of the operation, or of one that is in question. */
static bool may_hold_credential(const struct verdict *v, const struct request_facts *f,
                                bool unsure) {
    bool empty = f->length_known && f->length == 0;
    bool open = v->allow || v->reason == REASON_CREDENTIAL_MISSING;
    if (empty)
        return false;
    if (open && v->credential && place_is_in_body(v->credential->place.place))
        return true;
    const struct credential *c = unsure ? v->service->credentials : NULL;
    while (c && !place_is_in_body(c->place.place))
        c = c->next;
    return c != NULL;
}

/* As body_needs_who; *v is the verdict in favour. */
static bool needs_of(const struct policy *p, struct search *search, struct verdict *v) {
    struct body_needs *needs = search->needs;
    *needs = (struct body_needs){0};
    *v = judge(p, search);
    bool unsure = search->unsure && (v->allow || is_about_credentials(v));
    bool holds = v->service && may_hold_credential(v, search->facts, unsure);
    for (const struct credential *c = holds ? v->service->credentials : NULL; c; c = c->next)
        if (place_is_in_body(c->place.place))
            ask_for_pointer(needs, c->place.pointer);
    needs->credential = holds;
    bool content = needs->n_pointers > 0 || needs->graphql || needs->rpc;
    needs->limit = content ? UINT64_MAX : search->sizes;
    return unsure || holds;
}

bool body_needs_who(const struct policy *p, const struct who *who, const struct request_facts *f,
                    struct body_needs *needs) {
    struct search search = {.who = who, .facts = f, .needs = needs};
    struct verdict v;
    return needs_of(p, &search, &v);
}

bool policy_body_needs(const struct policy *p, const struct request_facts *f,
                       struct body_needs *needs) {
    struct who who;
    return who_find(p, f->sandbox, &who) && body_needs_who(p, &who, f, needs);
}

bool policy_judge_head(const struct policy *p, const struct request_facts *f, struct verdict *out,
                       struct body_needs *needs) {
    struct who who;
    *out = refuse_near(REASON_UNKNOWN_SANDBOX, NULL);
    if (!who_find(p, f->sandbox, &who))
        return true;
    struct search search = {.who = &who, .facts = f, .needs = needs};
    if (needs_of(p, &search, out))
        return false;
    if (search.favoured)
        *out = judge_who(p, &who, f);
    return true;
}

#include "policy/errors.h"
#include "policy/rules.h"
#include "policy/suffix.h"

#include <stdlib.h>

struct checker {
    struct policy *p;
    struct policy_errors *errors;
};

/* ---- one service ---- */

static bool covers_rules(const struct rule *a, const struct rule *b) {
    return (a->methods & b->methods) != 0 && view_equal(a->path.text, b->path.text);
}

static void check_rules(struct checker *c, const struct rule *rules) {
    for (const struct rule *r = rules; r; r = r->next)
        for (const struct rule *q = rules; q != r; q = q->next)
            if (covers_rules(q, r)) {
                errors_add(c->errors, r->at, "the same method and path as in line %u", q->at.line);
                break;
            }
}

static void check_operations(struct checker *c, const struct service *s) {
    for (const struct operation *o = s->operations; o; o = o->next) {
        for (const struct operation *q = s->operations; q != o; q = q->next)
            if (view_equal_nocase(q->name, o->name)) {
                errors_add(c->errors, o->at, "a second operation '%.*s', the first is in line %u",
                           VIEW_ARG(o->name), q->at.line);
                break;
            }
        if (view_equal(o->name, VIEW("all")))
            errors_add(c->errors, o->at, "'all' means every operation and cannot be one's name");
        if (o->anonymous && s->credential.n == 0 && !s->broken)
            errors_add(c->errors, o->at,
                       "'anonymous' is for services with a credential, this one has none");
        check_rules(c, o->rules);
    }
}

/* A service that only takes away may take away from anybody. */
static void check_star(struct checker *c, const struct service *s, struct host_rule *h) {
    bool deep = h->pattern.reach == REACH_MANY;
    struct view base = view_of(h->pattern.base.host, h->pattern.base_n);
    if (h->pattern.reach == REACH_EXACT)
        return;
    bool shared = s->operations && suffix_is_shared(base, deep);
    if (shared && !h->wide)
        errors_add(c->errors, h->at,
                   "'%.*s' covers hosts of strangers, %.*s is open to anybody; where that is "
                   "meant, the line ends in 'wide'",
                   WORD_ARG(h->text), WORD_ARG(base));
    h->wide = shared;
}

/* An address that is not public can be reached only through a range. */
static void check_hosts(struct checker *c, const struct service *s) {
    for (struct host_rule *h = s->hosts; h; h = h->next) {
        const struct authority *a = &h->pattern.base;
        check_star(c, s, h);
        for (const struct host_rule *q = s->hosts; q != h; q = q->next)
            if (q->pattern.reach == h->pattern.reach && authority_same_host(&q->pattern.base, a)) {
                errors_add(c->errors, h->at, "the host '%.*s' twice", WORD_ARG(h->text));
                break;
            }
        if (h->pattern.reach == REACH_EXACT && a->kind == HOST_ADDRESS && s->operations &&
            !service_permits_address(s, &a->address))
            errors_add(c->errors, h->at,
                       "nothing can reach '%.*s', a %s address: the service has no range for it",
                       WORD_ARG(h->text), address_class_name(address_classify(&a->address)));
    }
}

static void check_contradictions(struct checker *c, const struct service *s) {
    if (s->credential.n == 0)
        return;
    if (s->place.header.n && !s->broken && !trial_place_is_seen(&s->place))
        errors_add(c->errors, s->credential_at,
                   "this scheme signs requests, no credential stands behind it");
    if (s->accept_any)
        errors_add(c->errors, s->credential_at,
                   "a service with a credential cannot 'accept any credential'");
    if (s->clear)
        errors_add(c->errors, s->credential_at,
                   "a service with a credential cannot be 'clear': it would be sent in plain text");
}

static void set_ports(struct service *s) {
    s->every_port = s->n_ports == 0 && !s->operations;
    if (s->n_ports == 0)
        s->ports[s->n_ports++] = s->clear ? 80 : 443;
}

static void check_service(struct checker *c, struct service *s) {
    bool nevers = s->nevers || s->never_all.line != 0;
    if (!s->hosts && !s->broken)
        errors_add(c->errors, s->at, "the service '%.*s' has no host", VIEW_ARG(s->name));
    if (!s->operations && !s->broken && (!nevers || s->credential.n != 0))
        errors_add(c->errors, s->at, "the service '%.*s' has no operation", VIEW_ARG(s->name));
    check_contradictions(c, s);
    check_hosts(c, s);
    check_operations(c, s);
    check_rules(c, s->nevers);
    set_ports(s);
}

/* ---- services with each other ---- */

static const struct host_rule *shared_host(const struct service *a, const struct service *b) {
    for (const struct host_rule *h = a->hosts; h; h = h->next)
        for (const struct host_rule *q = b->hosts; q; q = q->next)
            if (host_patterns_overlap(&h->pattern, &q->pattern))
                return h;
    return NULL;
}

static bool shared_port(const struct service *a, const struct service *b) {
    for (size_t i = 0; i < a->n_ports; i++)
        if (service_covers_port(b, a->ports[i]))
            return true;
    return false;
}

static bool same_place(const struct credential_place *a, const struct credential_place *b) {
    return a->place == b->place && view_equal(a->header, b->header) &&
           view_equal(a->scheme, b->scheme);
}

static bool holds_ranges(const struct service *a, const struct service *b) {
    for (const struct range_rule *r = b->ranges; r; r = r->next) {
        const struct range_rule *q = a->ranges;
        while (q &&
               (q->range.bits != r->range.bits || !address_equal(&q->range.base, &r->range.base)))
            q = q->next;
        if (!q)
            return false;
    }
    return true;
}

/* What two services that cover the same host and port disagree about, or NULL. */
static const char *disagreement(const struct service *a, const struct service *b) {
    if (!view_equal(a->credential, b->credential))
        return "with different credentials";
    if (a->credential.n != 0 && !same_place(&a->place, &b->place))
        return "with the credential in different places";
    if (a->accept_any != b->accept_any || a->accept_cookies != b->accept_cookies ||
        a->accept_destinations != b->accept_destinations)
        return "and accept different things";
    if (!holds_ranges(a, b) || !holds_ranges(b, a))
        return "with different ranges";
    return NULL;
}

static void check_pair(struct checker *c, const struct service *a, const struct service *b) {
    if (view_equal_nocase(a->name, b->name))
        errors_add(c->errors, b->at, "a second service '%.*s', the first is in line %u",
                   VIEW_ARG(b->name), a->at.line);
    if (a->credential.n && view_equal_nocase(a->credential, b->credential) &&
        !view_equal(a->credential, b->credential))
        errors_add(c->errors, b->credential_at,
                   "the credential '%.*s' differs only in case from the one in line %u",
                   VIEW_ARG(b->credential), a->credential_at.line);
    if (!a->operations || !b->operations || a->broken || b->broken)
        return;
    const char *what = disagreement(a, b);
    if (!what || !shared_port(a, b))
        return;
    const struct host_rule *h = shared_host(b, a);
    if (h)
        errors_add(c->errors, h->at, "services '%.*s' and '%.*s' (line %u) share this host %s",
                   VIEW_ARG(b->name), VIEW_ARG(a->name), a->at.line, what);
}

/* ---- sandboxes ---- */

static struct rights rights_new(struct policy *p) {
    return (struct rights){
        .operations = arena_array(&p->arena, bit_words(p->n_operations), sizeof(uint64_t)),
        .services = arena_array(&p->arena, bit_words(p->n_services), sizeof(uint64_t))};
}

static bool rights_exist(const struct rights *r) {
    return r->operations && r->services;
}

static void rights_add(struct rights *r, const struct operation *o) {
    bit_set(r->operations, o->index);
    bit_set(r->services, o->service->index);
}

static const struct service *granted_service(struct checker *c, const struct grant *g) {
    struct guess guess = guess_of(g->service);
    for (const struct service *s = c->p->services; s; s = s->next) {
        if (view_equal(s->name, g->service))
            return s;
        guess_offer(&guess, s->name);
    }
    errors_add(c->errors, g->service_at, "there is no service '%.*s'%s", WORD_ARG(g->service),
               guess_text(&guess));
    return NULL;
}

static void grant_operation(struct checker *c, struct rights *r, const struct service *s,
                            const struct grant *g) {
    struct guess guess = guess_of(g->operation);
    for (const struct operation *o = s->operations; o; o = o->next) {
        if (view_equal(o->name, g->operation)) {
            if (bit_is_set(r->operations, o->index))
                errors_add(c->errors, g->operation_at, "'%.*s' granted twice",
                           VIEW_ARG(g->operation));
            rights_add(r, o);
            return;
        }
        guess_offer(&guess, o->name);
    }
    if (!s->broken)
        errors_add(c->errors, g->operation_at, "the service '%.*s' has no operation '%.*s'%s",
                   VIEW_ARG(s->name), WORD_ARG(g->operation), guess_text(&guess));
}

static void grant_all(struct checker *c, struct rights *r, const struct service *s,
                      const struct grant *g) {
    if (!s->operations && !s->broken)
        errors_add(c->errors, g->service_at, "the service '%.*s' has no operation to grant",
                   VIEW_ARG(s->name));
    for (const struct operation *o = s->operations; o; o = o->next)
        rights_add(r, o);
}

/* One line of grants is one grant in the list for each operation: the same service_at. */
static bool same_line(const struct grant *a, const struct grant *b) {
    return a->service_at.line == b->service_at.line && a->service_at.column == b->service_at.column;
}

static void check_grants(struct checker *c, struct sandbox *sandbox) {
    struct rights *r = &sandbox->rights;
    const struct grant *last = NULL;
    uint64_t *seen = arena_array(&c->p->arena, bit_words(c->p->n_services), sizeof *seen);
    const struct service *s = NULL;
    for (const struct grant *g = sandbox->grants; g && seen; last = g, g = g->next) {
        if (!last || !same_line(last, g)) {
            s = granted_service(c, g);
            if (s && bit_is_set(seen, s->index)) {
                errors_add(c->errors, g->service_at, "a second grant of '%.*s' in a sandbox",
                           VIEW_ARG(s->name));
                s = NULL;
            }
            if (s)
                bit_set(seen, s->index);
        }
        if (s && g->operation.n == 0)
            grant_all(c, r, s, g);
        else if (s)
            grant_operation(c, r, s, g);
    }
}

static bool has_credential(const struct sandbox *sandbox, struct view name) {
    for (size_t i = 0; i < sandbox->n_credentials; i++)
        if (view_equal(sandbox->credentials[i], name))
            return true;
    return false;
}

static int gather_credentials(struct policy *p, struct sandbox *sandbox) {
    size_t n = 0;
    for (const struct service *s = p->services; s; s = s->next)
        n += bit_is_set(sandbox->rights.services, s->index);
    sandbox->credentials = arena_array(&p->arena, n, sizeof *sandbox->credentials);
    if (!sandbox->credentials)
        return ERR_MEMORY;
    for (const struct service *s = p->services; s; s = s->next)
        if (s->credential.n && bit_is_set(sandbox->rights.services, s->index) &&
            !has_credential(sandbox, s->credential))
            sandbox->credentials[sandbox->n_credentials++] = s->credential;
    return 0;
}

static int compare_sandboxes(const void *left, const void *right) {
    const struct sandbox *a = *(struct sandbox *const *)left, *b = *(struct sandbox *const *)right;
    return view_compare(a->name, b->name);
}

/* The arrays that the judge walks. */
static int index_services(struct policy *p) {
    p->by_index = arena_array(&p->arena, p->n_services, sizeof *p->by_index);
    p->entries = arena_array(&p->arena, p->n_entries, sizeof *p->entries);
    if (!p->by_index || !p->entries)
        return ERR_MEMORY;
    struct host_entry *e = p->entries;
    for (struct service *s = p->services; s; s = s->next) {
        p->by_index[s->index] = s;
        for (const struct host_rule *h = s->hosts; h; h = h->next)
            *e++ = (struct host_entry){h->pattern.reach, h->pattern.mark, h};
    }
    return 0;
}

static int sort_sandboxes(struct policy *p) {
    p->by_name = arena_array(&p->arena, p->n_sandboxes, sizeof *p->by_name);
    if (!p->by_name)
        return ERR_MEMORY;
    size_t n = 0;
    for (struct sandbox *s = p->sandboxes; s; s = s->next)
        p->by_name[n++] = s;
    qsort(p->by_name, n, sizeof *p->by_name, compare_sandboxes);
    return 0;
}

static int check_sandbox(struct checker *c, struct sandbox *sandbox) {
    for (const struct sandbox *q = c->p->sandboxes; q != sandbox; q = q->next)
        if (view_equal_nocase(q->name, sandbox->name)) {
            errors_add(c->errors, sandbox->at, "a second sandbox '%.*s', the first is in line %u",
                       VIEW_ARG(sandbox->name), q->at.line);
            break;
        }
    sandbox->rights = rights_new(c->p);
    if (!rights_exist(&sandbox->rights))
        return ERR_MEMORY;
    check_grants(c, sandbox);
    return gather_credentials(c->p, sandbox);
}

/* ---- expectations ---- */

static void check_expectation(struct checker *c, const struct expectation *e) {
    if (e->sandbox.n == 0)
        return;
    struct guess guess = guess_of(e->sandbox);
    for (const struct sandbox *s = c->p->sandboxes; s; s = s->next) {
        if (view_equal(s->name, e->sandbox))
            return;
        guess_offer(&guess, s->name);
    }
    errors_add(c->errors, e->sandbox_at, "there is no sandbox '%.*s'%s", WORD_ARG(e->sandbox),
               guess_text(&guess));
}

int policy_check(struct policy *p, struct policy_errors *errors) {
    struct checker c = {p, errors};
    for (struct service *s = p->services; s; s = s->next) {
        check_service(&c, s);
        s->everything = rights_new(p);
        if (!rights_exist(&s->everything))
            return ERR_MEMORY;
        for (const struct operation *o = s->operations; o; o = o->next)
            rights_add(&s->everything, o);
        for (const struct service *before = p->services; before != s; before = before->next)
            check_pair(&c, before, s);
    }
    for (struct sandbox *s = p->sandboxes; s; s = s->next) {
        int err = check_sandbox(&c, s);
        if (err != 0)
            return err;
    }
    for (const struct expectation *e = p->expectations; e; e = e->next)
        check_expectation(&c, e);
    int err = index_services(p);
    return err != 0 ? err : sort_sandboxes(p);
}

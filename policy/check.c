#include "policy/echo.h"
#include "policy/errors.h"
#include "policy/method.h"
#include "policy/rules.h"
#include "policy/sort.h"
#include "policy/suffix.h"

struct checker {
    struct policy *p;
    struct policy_errors *errors;
};

/* ---- rights ---- */

int rights_new(struct policy *p, struct rights *out) {
    *out = (struct rights){
        .operations = arena_array(&p->arena, bit_words(p->n_operations), sizeof(uint64_t)),
        .services = arena_array(&p->arena, bit_words(p->n_services), sizeof(uint64_t))};
    return out->operations && out->services ? 0 : ERR_MEMORY;
}

void rights_add(struct rights *r, const struct operation *o) {
    bit_set(r->operations, o->index);
    bit_set(r->services, o->service->index);
}

/* ---- operations by name ---- */

static int compare_nocase(struct view a, struct view b) {
    for (size_t i = 0; i < a.n && i < b.n; i++) {
        int order = to_lower(a.p[i]) - to_lower(b.p[i]);
        if (order != 0)
            return order;
    }
    return (a.n > b.n) - (a.n < b.n);
}

static int compare_operations(const void *left, const void *right, const void *ctx) {
    (void)ctx;
    const struct operation *a = *(struct operation *const *)left;
    const struct operation *b = *(struct operation *const *)right;
    int order = compare_nocase(a->name, b->name);
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

static int sort_operations(struct policy *p, struct service *s) {
    size_t n = 0;
    s->names = arena_array(&p->arena, s->n_operations, sizeof(struct operation *));
    if (!s->names)
        return ERR_MEMORY;
    for (struct operation *o = s->operations; o; o = o->next)
        s->names[n++] = o;
    sort_items(s->names, n, sizeof(struct operation *), compare_operations, NULL);
    return 0;
}

struct operation *service_operation(const struct service *s, struct view name) {
    size_t from = 0, to = s->n_operations;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare_nocase(name, s->names[middle]->name);
        if (order == 0)
            return view_equal(s->names[middle]->name, name) ? s->names[middle] : NULL;
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

static void unknown_operation(struct checker *c, const struct service *s, struct view name,
                              struct position at) {
    struct guess guess = guess_of(name);
    for (const struct operation *o = s->operations; o; o = o->next)
        guess_offer(&guess, o->name);
    if (!s->broken)
        errors_add(c->errors, at, "the service '%.*s' has no operation '%.*s'%s", VIEW_ARG(s->name),
                   WORD_ARG(name), guess_text(&guess));
}

/* ---- one service ---- */

static bool covers_rules(const struct rule *a, const struct rule *b) {
    return (a->methods & b->methods) != 0 && !a->conditions && !b->conditions &&
           view_equal(a->path.text, b->path.text);
}

static void check_rules(struct checker *c, const struct rule *rules) {
    for (const struct rule *r = rules; r; r = r->next)
        for (const struct rule *q = rules; q != r; q = q->next)
            if (covers_rules(q, r)) {
                errors_add(c->errors, r->at, "the same method and path as in %s",
                           PLACE_TEXT(q->at, r->at));
                break;
            }
}

/* What only reads can be granted as `read`, unless the policy says otherwise. */
static enum preset usual_preset(const struct operation *o) {
    static const char *const reading[] = {"GET", "HEAD"};
    uint64_t reads = 0;
    for (size_t i = 0; i < 2; i++)
        reads |= method_bit(view_str(reading[i]));
    for (const struct rule *r = o->rules; r; r = r->next)
        if ((r->methods & ~reads) != 0 && !r->fetches)
            return PRESET_WRITE;
    return PRESET_READ;
}

static void check_names(struct checker *c, const struct service *s) {
    for (size_t i = 1; i < s->n_operations; i++)
        if (view_equal_nocase(s->names[i]->name, s->names[i - 1]->name))
            errors_add(c->errors, s->names[i]->at,
                       "a second operation '%.*s', the first is in line %u",
                       VIEW_ARG(s->names[i]->name), s->names[i - 1]->at.line);
}

static const char *needed_word(const struct service *s, const struct path_pattern *path) {
    if (path->encoded_slash && !s->encoded_slash)
        return "encoded-slash";
    return path->parameters && !s->parameters ? "parameters" : NULL;
}

static void check_paths(struct checker *c, const struct operation *o) {
    for (const struct rule *r = o->rules; r; r = r->next) {
        const char *word = needed_word(o->service, &r->path);
        if (word)
            errors_add(c->errors, r->at, "this path is for services with a line 'path allow %s'",
                       word);
    }
}

static void check_operations(struct checker *c, struct service *s) {
    check_names(c, s);
    for (struct operation *o = s->operations; o; o = o->next) {
        if (view_equal(o->name, VIEW("all")))
            errors_add(c->errors, o->at, "'all' means every operation and cannot be one's name");
        if (o->anonymous && !s->credentials && !s->broken)
            errors_add(c->errors, o->at,
                       "'anonymous' is for services with a credential, this one has none");
        if (o->preset == PRESET_NONE)
            o->preset = usual_preset(o);
        o->anonymous = o->anonymous || s->accept_none;
        check_rules(c, o->rules);
        check_paths(c, o);
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
        if (h->pattern.reach == REACH_EXACT && echo_is_host(a))
            errors_add(
                c->errors, h->at,
                "'%.*s' is the host that exeat itself answers, for every sandbox: no rule is "
                "needed for it, and none can be made",
                WORD_ARG(h->text));
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

/* ---- its credentials ---- */

static void check_credential(struct checker *c, const struct service *s,
                             const struct credential *k) {
    if (k->place.place == PLACE_HEADER && !s->broken && !trial_place_is_seen(&k->place))
        errors_add(c->errors, k->at, "this scheme signs requests, no credential stands behind it");
    if (s->accept_any)
        errors_add(c->errors, k->at, "a service with a credential cannot 'accept any credential'");
    if (s->tls == SERVICE_CLEAR)
        errors_add(c->errors, k->at,
                   "a service with a credential cannot be 'clear': it would be sent in plain text");
    if (s->tls == SERVICE_SPLICE)
        errors_add(c->errors, k->at,
                   "a service with a credential cannot be spliced: nobody could put it in");
    if (place_is_in_body(k->place.place) && k->at_most > 1)
        errors_add(c->errors, k->at, "a body holds a credential once");
    for (const struct credential *q = s->credentials; q != k; q = q->next)
        if (view_equal_nocase(q->name, k->name))
            errors_add(c->errors, k->at, "a second credential '%.*s', the first is in %s",
                       VIEW_ARG(k->name), PLACE_TEXT(q->at, k->at));
}

static void assign_to(struct checker *c, const struct service *s, const struct credential *k) {
    for (const struct mention *m = k->operations; m; m = m->next) {
        struct operation *o = service_operation(s, m->name);
        if (!o)
            unknown_operation(c, s, m->name, m->at);
        else if (o->credential)
            errors_add(c->errors, m->at, "'%.*s' has the credential '%.*s' already, in line %u",
                       VIEW_ARG(m->name), VIEW_ARG(o->credential->name), o->credential->at.line);
        else
            o->credential = k;
    }
}

/* Those with `for` first; one without takes what is left. */
static void assign_credentials(struct checker *c, const struct service *s) {
    const struct credential *rest = NULL;
    for (const struct credential *k = s->credentials; k; k = k->next) {
        check_credential(c, s, k);
        if (k->operations)
            assign_to(c, s, k);
        else if (!rest)
            rest = k;
        else
            errors_add(
                c->errors, k->at,
                "a second credential without 'for', the first is in line %u: which one would "
                "an operation use?",
                rest->at.line);
    }
    for (struct operation *o = s->operations; o && rest; o = o->next)
        if (!o->credential)
            o->credential = rest;
}

/* ---- guards ---- */

static const struct guard *find_guard(struct checker *c, const struct mention *m) {
    struct guess guess = guess_of(m->name);
    for (const struct guard *g = c->p->guards; g; g = g->next) {
        if (view_equal(g->name, m->name))
            return g;
        guess_offer(&guess, g->name);
    }
    errors_add(c->errors, m->at, "there is no guard '%.*s'%s", WORD_ARG(m->name),
               guess_text(&guess));
    return NULL;
}

/* Its lines become never lines of the service. */
static int copy_guard(struct checker *c, struct service *s, const struct guard *g) {
    struct rule **end = &s->nevers;
    while (*end)
        end = &(*end)->next;
    for (const struct rule *r = g->rules; r; r = r->next) {
        struct rule *copy = arena_alloc(&c->p->arena, sizeof *copy);
        if (!copy)
            return ERR_MEMORY;
        *copy = *r;
        copy->next = NULL;
        *end = copy;
        end = &copy->next;
        c->p->n_rules++;
    }
    return 0;
}

static int use_guards(struct checker *c, struct service *s) {
    for (const struct mention *m = s->guards; m; m = m->next) {
        for (const struct mention *q = s->guards; q != m; q = q->next)
            if (view_equal(q->name, m->name))
                errors_add(c->errors, m->at, "the guard '%.*s' twice", WORD_ARG(m->name));
        const struct guard *g = find_guard(c, m);
        if (g && copy_guard(c, s, g) != 0)
            return ERR_MEMORY;
    }
    return 0;
}

static void check_guards(struct checker *c) {
    for (const struct guard *g = c->p->guards; g; g = g->next) {
        for (const struct guard *q = c->p->guards; q != g; q = q->next)
            if (view_equal_nocase(q->name, g->name)) {
                errors_add(c->errors, g->at, "a second guard '%.*s', the first is in %s",
                           VIEW_ARG(g->name), PLACE_TEXT(q->at, g->at));
                break;
            }
        check_rules(c, g->rules);
    }
}

/* ---- the whole service ---- */

static void set_ports(struct service *s) {
    s->every_port = s->n_ports == 0 && !s->operations;
    if (s->n_ports == 0)
        s->ports[s->n_ports++] = s->tls == SERVICE_CLEAR ? 80 : 443;
}

static void check_accept(struct checker *c, const struct service *s) {
    if (s->accept_at.line != 0 && !s->credentials && !s->broken)
        errors_add(c->errors, s->accept_at,
                   "'accept ours' is for services with a credential, this one has none");
}

/* Words on a certificate that nobody would hold the upstream against. */
static void check_upstream(struct checker *c, const struct service *s) {
    if (s->upstream.at.line == 0 || s->broken || s->tls == SERVICE_INTERCEPT)
        return;
    errors_add(c->errors, s->upstream.at, "%s cannot have a word on the upstream: %s",
               s->tls == SERVICE_CLEAR ? "a 'clear' service" : "a spliced service",
               s->tls == SERVICE_CLEAR ? "plain HTTP shows no certificate"
                                       : "only the client sees its certificate");
}

/* What would have to be seen in requests. */
static const char *unseen_word(const struct service *s) {
    if (s->operations)
        return "operations";
    if (s->nevers || s->guards)
        return "never lines, but for 'never all'";
    if (s->accept_any || s->accept_cookies || s->accept_destinations || s->accept_at.line != 0)
        return "'accept'";
    if (s->encoded_slash || s->parameters)
        return "'path allow'";
    return s->body_limit != UINT64_MAX ? "'limit body'" : NULL;
}

static int add_anything(struct policy *p, struct operation *o, struct view path) {
    const char *why;
    struct rule *r = arena_alloc(&p->arena, sizeof *r);
    if (!r)
        return ERR_MEMORY;
    *r = (struct rule){.methods = methods_grantable(),
                       .operation = o,
                       .service = o->service,
                       .at = o->at,
                       .next = o->rules};
    o->rules = r;
    p->n_rules++;
    return path_pattern_parse(path, false, &r->path, &why);
}

/* What can be granted of a service whose requests nobody sees: all there may be in them. */
static int add_splice(struct checker *c, struct service *s) {
    if (s->tls != SERVICE_SPLICE)
        return 0;
    const char *unseen = unseen_word(s);
    if (unseen)
        errors_add(c->errors, s->tls_at,
                   "nobody sees the requests of a spliced service, it cannot have %s", unseen);
    if (s->operations)
        return 0;
    struct operation *o = arena_alloc(&c->p->arena, sizeof *o);
    if (!o)
        return ERR_MEMORY;
    *o = (struct operation){.name = VIEW("splice"),
                            .preset = PRESET_WRITE,
                            .index = c->p->n_operations++,
                            .service = s,
                            .at = s->tls_at};
    s->operations = o;
    s->n_operations++;
    s->accept_any = s->accept_cookies = s->accept_destinations = !s->credentials;
    int err = add_anything(c->p, o, VIEW("/"));
    return err != 0 ? err : add_anything(c->p, o, VIEW("/**"));
}

static int check_service(struct checker *c, struct service *s) {
    bool nevers = s->nevers || s->guards || s->never_all.line != 0;
    if (sort_operations(c->p, s) != 0)
        return ERR_MEMORY;
    if (!s->hosts && !s->broken)
        errors_add(c->errors, s->at, "the service '%.*s' has no host", VIEW_ARG(s->name));
    if (!s->operations && !s->broken && (!nevers || s->credentials))
        errors_add(c->errors, s->at, "the service '%.*s' has no operation", VIEW_ARG(s->name));
    assign_credentials(c, s);
    check_accept(c, s);
    check_upstream(c, s);
    check_hosts(c, s);
    check_operations(c, s);
    check_rules(c, s->nevers);
    set_ports(s);
    return use_guards(c, s);
}

/* ---- services with each other ---- */

bool service_covers_port(const struct service *s, uint16_t port) {
    for (size_t i = 0; i < s->n_ports; i++)
        if (s->ports[i] == port)
            return true;
    return s->every_port;
}

const struct host_rule *services_share_host(const struct service *a, const struct service *b) {
    for (const struct host_rule *h = a->hosts; h; h = h->next)
        for (const struct host_rule *q = b->hosts; q; q = q->next)
            if (host_patterns_overlap(&h->pattern, &q->pattern))
                return h;
    return NULL;
}

bool service_allows_path(const struct service *s, const struct target *t) {
    return (!t->encoded_slash || s->encoded_slash) && (!t->parameters || s->parameters);
}

bool services_share_port(const struct service *a, const struct service *b) {
    for (size_t i = 0; i < a->n_ports; i++)
        if (service_covers_port(b, a->ports[i]))
            return true;
    return false;
}

static bool same_place(const struct credential_place *a, const struct credential_place *b) {
    return a->place == b->place && a->segment == b->segment && view_equal(a->name, b->name) &&
           view_equal(a->scheme, b->scheme);
}

static const struct credential *find_credential(const struct service *s, struct view name) {
    const struct credential *k = s->credentials;
    while (k && !view_equal(k->name, name))
        k = k->next;
    return k;
}

static bool holds_credentials(const struct service *a, const struct service *b, bool places) {
    for (const struct credential *k = b->credentials; k; k = k->next) {
        const struct credential *same = find_credential(a, k->name);
        if (!same || (places && !same_place(&same->place, &k->place)))
            return false;
    }
    return true;
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

static bool same_location(const struct location_rule *a, const struct location_rule *b) {
    if (a->given != b->given || a->not != b->not || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->countries ? !view_equal(a->countries[i], b->countries[i])
                         : a->systems[i] != b->systems[i])
            return false;
    return true;
}

static bool same_upstream(const struct upstream_terms *a, const struct upstream_terms *b) {
    return view_equal(a->ca, b->ca) && view_equal(a->client_certificate, b->client_certificate) &&
           (a->pin == NULL) == (b->pin == NULL) && (!a->pin || memcmp(a->pin, b->pin, 32) == 0);
}

/* What two services that cover the same host and port disagree about, or NULL. */
static const char *disagreement(const struct service *a, const struct service *b) {
    if ((a->tls == SERVICE_SPLICE) != (b->tls == SERVICE_SPLICE))
        return "and only one is spliced";
    if (!holds_credentials(a, b, false) || !holds_credentials(b, a, false))
        return "with different credentials";
    if (!holds_credentials(a, b, true))
        return "with the credential in different places";
    if (a->accept_any != b->accept_any || a->accept_cookies != b->accept_cookies ||
        a->accept_destinations != b->accept_destinations)
        return "and accept different things";
    if (!holds_ranges(a, b) || !holds_ranges(b, a))
        return "with different ranges";
    if (a->splice_most != b->splice_most)
        return "with different budgets";
    if (!same_location(&a->country, &b->country) || !same_location(&a->asn, &b->asn))
        return "with different countries or networks";
    if (!same_upstream(&a->upstream, &b->upstream))
        return "with different words on the upstream";
    return NULL;
}

/* A never line about requests is of no use where nobody sees them. */
static void check_unseen(struct checker *c, const struct service *s,
                         const struct service *spliced) {
    if (spliced->tls != SERVICE_SPLICE || s->tls == SERVICE_SPLICE || (!s->nevers && !s->guards) ||
        !services_share_port(spliced, s))
        return;
    const struct host_rule *h = services_share_host(spliced, s);
    if (h)
        errors_add(c->errors, h->at,
                   "this host is spliced, so that nobody sees its requests, and has never lines by "
                   "service '%.*s' (%s)",
                   VIEW_ARG(s->name), PLACE_TEXT(s->at, h->at));
}

static void check_credential_case(struct checker *c, const struct service *a,
                                  const struct service *b) {
    for (const struct credential *k = b->credentials; k; k = k->next)
        for (const struct credential *q = a->credentials; q; q = q->next)
            if (view_equal_nocase(q->name, k->name) && !view_equal(q->name, k->name))
                errors_add(c->errors, k->at,
                           "the credential '%.*s' differs only in case from the one in %s",
                           VIEW_ARG(k->name), PLACE_TEXT(q->at, k->at));
}

static void check_pair(struct checker *c, const struct service *a, const struct service *b) {
    if (view_equal_nocase(a->name, b->name))
        errors_add(c->errors, b->at, "a second service '%.*s', the first is in %s",
                   VIEW_ARG(b->name), PLACE_TEXT(a->at, b->at));
    check_credential_case(c, a, b);
    check_unseen(c, a, b);
    check_unseen(c, b, a);
    if (!a->operations || !b->operations || a->broken || b->broken)
        return;
    const char *what = disagreement(a, b);
    if (!what || !services_share_port(a, b))
        return;
    const struct host_rule *h = services_share_host(b, a);
    if (h)
        errors_add(c->errors, h->at, "services '%.*s' and '%.*s' (%s) share this host %s",
                   VIEW_ARG(b->name), VIEW_ARG(a->name), PLACE_TEXT(a->at, h->at), what);
}

/* ---- expectations ---- */

void policy_check_expectation(const struct policy *p, const struct expectation *e,
                              struct policy_errors *errors) {
    struct who who;
    if (e->sandbox.n == 0 || who_find(p, e->sandbox, &who))
        return;
    struct guess guess = guess_of(e->sandbox);
    for (size_t i = 0; i < p->n_identities; i++)
        guess_offer(&guess, p->by_name[i].name);
    errors_add(errors, e->sandbox_at, "there is no sandbox '%.*s'%s", WORD_ARG(e->sandbox),
               guess_text(&guess));
}

/* ---- all of it ---- */

static int index_services(struct policy *p) {
    p->by_index = arena_array(&p->arena, p->n_services, sizeof(struct service *));
    if (!p->by_index)
        return ERR_MEMORY;
    for (struct service *s = p->services; s; s = s->next)
        p->by_index[s->index] = s;
    return 0;
}

static int grant_everything(struct policy *p) {
    for (struct service *s = p->services; s; s = s->next) {
        if (rights_new(p, &s->everything) != 0)
            return ERR_MEMORY;
        for (const struct operation *o = s->operations; o; o = o->next)
            rights_add(&s->everything, o);
    }
    return 0;
}

int policy_check(struct policy *p, struct policy_errors *errors) {
    struct checker c = {p, errors};
    int err = index_services(p);
    check_guards(&c);
    for (struct service *s = p->services; s && err == 0; s = s->next)
        err = add_splice(&c, s);
    for (struct service *s = p->services; s && err == 0; s = s->next) {
        err = check_service(&c, s);
        for (const struct service *before = p->services; before != s; before = before->next)
            check_pair(&c, before, s);
    }
    if (err == 0)
        err = grant_everything(p);
    if (err == 0)
        err = policy_check_sandboxes(p, errors);
    for (const struct expectation *e = p->expectations; e && err == 0; e = e->next)
        policy_check_expectation(p, e, errors);
    return err;
}

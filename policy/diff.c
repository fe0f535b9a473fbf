#include "policy/diff.h"

#include "policy/diff_places.h"
#include "policy/method.h"
#include "policy/path_classes.h"
#include "policy/samples.h"

#include <stdlib.h>

/* What is put into the request as its credential, and what else is refused unless a service accepts it. */
static const struct mode {
    enum with with;
    struct field more;
    const char *text;
} modes[] = {
    {WITH_OURS, {{NULL, 0}, {NULL, 0}}, ""},
    {WITH_NONE, {{NULL, 0}, {NULL, 0}}, ", without a credential"},
    {WITH_FOREIGN, {{NULL, 0}, {NULL, 0}}, ", with a foreign credential"},
    {WITH_OURS,
     {{(const uint8_t *)"cookie", 6}, {(const uint8_t *)"zq9=zq9", 7}},
     ", with a cookie"},
    {WITH_OURS,
     {{(const uint8_t *)"x-amz-copy-source", 17}, {(const uint8_t *)"/zq9/zq9", 8}},
     ", with a second target"},
};

enum { MODES = sizeof modes / sizeof modes[0], METHOD_CLASSES_MAX = 64 };

/* What makes two differences one. */
struct key {
    size_t sandbox, mode;
    enum diff_kind kind;
    enum reason reasons[2];
    struct position at[2];
};

struct diff {
    const struct policy *p[2];
    void (*found)(void *ctx, const struct diff_found *f);
    void *ctx;
    struct diff_result *result;
    struct arena arena;
    struct diff_hosts hosts;
    struct diff_sandboxes sandboxes;
    struct key *keys;
    size_t n_keys;
    bool observes, failed;
    struct samples samples;
    struct sample_request requests[2];
    /* the place in hand */
    struct authority authority;
    bool clear;
    struct class_rule *rules;
    size_t n_rules, n_allowing;
    uint64_t methods[METHOD_CLASSES_MAX];
    size_t n_methods;
};

static void not_whole(struct diff *d, const char *why) {
    if (d->result->whole)
        d->result->why = why;
    d->result->whole = false;
}

/* ---- one request ---- */

struct asked {
    struct trial trial;
    size_t sandbox, mode;
    struct verdict verdicts[2];
};

static struct trial trial_for(const struct diff *d, const struct asked *a, int which,
                              struct field *fields) {
    const struct sample_request *r = &d->requests[which];
    struct trial t = a->trial;
    for (size_t i = 0; i < r->n_fields; i++)
        fields[t.n_fields++] = r->fields[i];
    if (modes[a->mode].more.name.n > 0)
        fields[t.n_fields++] = modes[a->mode].more;
    t.fields = fields;
    t.type = r->type;
    t.length = r->length;
    t.facts = r->has_facts ? &r->facts : NULL;
    t.websocket = r->websocket;
    t.with = modes[a->mode].with;
    return t;
}

static bool ask(struct diff *d, struct asked *a, int which) {
    struct field fields[SAMPLE_FIELDS + 1];
    struct trial t = trial_for(d, a, which, fields);
    const char *why;
    int err = trial_run(d->p[which], &t, &a->verdicts[which], &why);
    if (err == ERR_BAD && t.with == WITH_OURS) {
        t.with = WITH_NONE;
        err = trial_run(d->p[which], &t, &a->verdicts[which], &why);
    }
    d->failed = d->failed || err == ERR_MEMORY;
    if (err == ERR_BAD)
        not_whole(d, why);
    return err == 0;
}

/* ---- two verdicts ---- */

static bool is_wider(uint64_t before, uint64_t after) {
    return before != 0 && (after == 0 || after > before);
}

/* In the long run, or at once. */
static bool is_faster(const struct grant_limits *a, const struct grant_limits *b) {
    return a->rate != 0 && (b->rate == 0 || b->rate > a->rate ||
                            b->rate * a->rate_seconds > a->rate * b->rate_seconds);
}

static bool limits_laxer(const struct grant_limits *a, const struct grant_limits *b) {
    return is_faster(a, b) || is_wider(a->until, b->until) || is_wider(a->uses, b->uses) ||
           is_wider(a->bytes_out, b->bytes_out) || is_wider(a->concurrent, b->concurrent);
}

/* Operations that share a count need more of it than those that are counted apart. */
static bool shares_as_much(const struct grant *before, const struct grant *after) {
    for (size_t i = 0; i < before->of->n_operations; i++) {
        const struct operation *o = before->of->names[i];
        const struct operation *now =
            bit_is_set(before->operations, o->index) ? service_operation(after->of, o->name) : NULL;
        if (now && !bit_is_set(after->operations, now->index))
            return false;
    }
    return true;
}

/* What is counted over all time goes on only where the grant is the same. */
static bool counts_on(const struct grant *before, const struct grant *after) {
    struct buf x, y;
    if (before->limits.uses == 0 && before->limits.bytes_out == 0)
        return true;
    buf_init(&x, 2 * POLICY_TEXT_MAX);
    buf_init(&y, 2 * POLICY_TEXT_MAX);
    grant_put_identity(before, &x);
    grant_put_identity(after, &y);
    bool same = buf_ok(&x) && buf_ok(&y) && view_equal(buf_view(&x), buf_view(&y));
    buf_free(&x);
    buf_free(&y);
    return same;
}

static bool is_no_laxer(const struct grant *before, const struct grant *after) {
    return !limits_laxer(&before->limits, &after->limits) && shares_as_much(before, after) &&
           counts_on(before, after);
}

static bool same_limits(const struct grant *a, const struct grant *b) {
    return is_no_laxer(a, b) && is_no_laxer(b, a);
}

/* The grants of a verdict that are of one layer. */
struct part {
    const struct grant *const *at;
    size_t n;
};

static struct part part_of(const struct verdict *v, unsigned layer) {
    size_t from = 0, n = 0;
    while (from < v->n_grants && grant_layer(v->grants[from]) < layer)
        from++;
    while (from + n < v->n_grants && grant_layer(v->grants[from + n]) == layer)
        n++;
    return (struct part){v->grants + from, n};
}

/* Whether each of b has one of a of its own that it goes with. What nothing limits is the laxest. */
static bool pairs(struct part a, struct part b,
                  bool (*goes)(const struct grant *before, const struct grant *after)) {
    bool used[GRANTS_A_LAYER] = {false};
    for (size_t i = 0; i < b.n; i++) {
        size_t k = 0;
        while (k < a.n && (used[k] || !goes(a.at[k], b.at[i])))
            k++;
        if (k == a.n)
            return false;
        used[k] = true;
    }
    return true;
}

/* Whether the limits differ, and how. */
static bool limits_differ(const struct verdict v[2], enum diff_kind *kind) {
    bool differ = false, laxer = false;
    for (unsigned layer = 0; layer < LAYERS_MAX; layer++) {
        struct part a = part_of(&v[0], layer), b = part_of(&v[1], layer);
        differ = differ || a.n != b.n || !pairs(a, b, same_limits);
        laxer = laxer || (a.n > 0 && (b.n == 0 || !pairs(a, b, is_no_laxer)));
    }
    *kind = laxer ? DIFF_LAXER : DIFF_STRICTER;
    return differ;
}

static bool is_spliced(const struct verdict *v) {
    return service_tls(v->service) == SERVICE_SPLICE;
}

static bool splices_differ(const struct verdict v[2], enum diff_kind *kind) {
    if (is_spliced(&v[0]) != is_spliced(&v[1])) {
        *kind = is_spliced(&v[1]) ? DIFF_UNREAD : DIFF_READ;
        return true;
    }
    uint64_t before = service_splice_most(v[0].service), after = service_splice_most(v[1].service);
    *kind = after > before ? DIFF_LAXER : DIFF_STRICTER;
    return before != after;
}

static bool differs(const struct verdict v[2], enum diff_kind *kind) {
    if (v[0].allow != v[1].allow) {
        *kind = v[1].allow ? DIFF_ALLOWED : DIFF_DENIED;
        return true;
    }
    if (!v[0].allow)
        return false;
    *kind = DIFF_CREDENTIAL;
    if (!view_equal(verdict_credential(&v[0]), verdict_credential(&v[1])) &&
        (v[0].swap >= 0 || v[1].swap >= 0))
        return true;
    return splices_differ(v, kind) || limits_differ(v, kind);
}

static bool same_place(struct position a, struct position b) {
    return a.file == b.file && a.line == b.line && a.column == b.column;
}

/* Remembers the difference; false when one like it was told. */
static bool is_new(struct diff *d, const struct asked *a, enum diff_kind kind) {
    struct key new = {.sandbox = a->sandbox, .mode = a->mode, .kind = kind};
    for (int i = 0; i < 2; i++) {
        new.reasons[i] = a->verdicts[i].reason;
        new.at[i] = a->verdicts[i].at;
    }
    for (size_t i = 0; i < d->n_keys; i++) {
        const struct key *k = &d->keys[i];
        if (k->sandbox == new.sandbox && k->mode == new.mode && k->kind == kind &&
            k->reasons[0] == new.reasons[0] && k->reasons[1] == new.reasons[1] &&
            same_place(k->at[0], new.at[0]) && same_place(k->at[1], new.at[1]))
            return false;
    }
    if (d->n_keys == DIFFERENCES_MAX) {
        not_whole(d, "there are more differences than are told");
        return false;
    }
    d->keys[d->n_keys++] = new;
    return true;
}

static void tell(struct diff *d, const struct asked *a, enum diff_kind kind) {
    struct buf url, more;
    if (!is_new(d, a, kind))
        return;
    buf_init(&url, 1 << 16);
    buf_init(&more, 1 << 16);
    buf_put_str(&url, a->trial.tls ? "https://" : "http://");
    authority_write(&d->authority, a->trial.tls ? 443 : 80, &url);
    buf_put(&url, a->trial.target);
    buf_put_str(&more, modes[a->mode].text);
    samples_write(&d->samples, &more);
    struct diff_found f = {.kind = kind,
                           .sandbox = a->trial.sandbox,
                           .method = a->trial.method,
                           .url = buf_view(&url),
                           .more = view_skip(buf_view(&more), 2),
                           .before = a->verdicts[0],
                           .after = a->verdicts[1]};
    d->result->found[kind]++;
    d->found(d->ctx, &f);
    buf_free(&url);
    buf_free(&more);
}

/* ---- all requests of a class ---- */

static void compare_sandbox(struct diff *d, struct asked *a) {
    enum diff_kind kind;
    a->trial.sandbox = d->sandboxes.at[a->sandbox];
    for (a->mode = 0; a->mode < MODES && !d->failed; a->mode++) {
        if (!ask(d, a, 0) || !ask(d, a, 1))
            continue;
        d->result->requests++;
        if (!differs(a->verdicts, &kind))
            continue;
        tell(d, a, kind);
        if (a->mode == 0)
            return; /* the same with other credentials is no news */
    }
}

static void compare_target(struct diff *d, struct asked *a, struct view path, bool slash) {
    struct buf target;
    buf_init(&target, 1 << 16);
    buf_put(&target, path);
    if (slash)
        buf_put_u8(&target, '/');
    if (buf_len(&d->requests[0].query) > 0)
        buf_put_u8(&target, '?');
    buf_put(&target, buf_view(&d->requests[0].query));
    a->trial.target = buf_view(&target);
    for (int tls = 1; tls >= 0; tls--) {
        a->trial.tls = tls == 1;
        for (a->sandbox = 0; a->sandbox < d->sandboxes.n && (tls || d->clear); a->sandbox++)
            compare_sandbox(d, a);
    }
    d->failed = d->failed || !buf_ok(&target);
    buf_free(&target);
}

static bool concerns(const struct class_rule *r, uint64_t method) {
    return (r->rule->methods & method) != 0 || r->rule->any_method;
}

/* False where neither policy could allow anything. */
static bool sample(struct diff *d, const struct path_class *c, uint64_t method) {
    bool allowed = d->observes;
    samples_init(&d->samples);
    for (size_t i = 0; i < c->n_rules; i++) {
        const struct class_rule *r = c->rules[i];
        if (!concerns(r, method))
            continue;
        allowed = allowed || !r->widely;
        samples_add(&d->samples, r->rule);
        if (!r->widely && r->rule->service->body_limit != UINT64_MAX)
            samples_add_size(&d->samples, r->rule->service->body_limit);
    }
    return allowed;
}

static void compare_class(struct diff *d, const struct path_class *c, uint64_t methods) {
    struct asked a = {.trial = {.authority = d->authority}};
    for (size_t i = 0; a.trial.method.n == 0; i++)
        if ((method_bit(method_at(i)) & methods) != 0)
            a.trial.method = method_at(i);
    bool allowed = sample(d, c, method_bit(a.trial.method)), root = c->path.n == 1;
    for (size_t round = 0; allowed && !d->failed && samples_next(&d->samples, &round);) {
        if (!samples_request(&d->samples, d->p[0], &d->requests[0]) ||
            !samples_request(&d->samples, d->p[1], &d->requests[1]))
            continue;
        for (int slash = 0; slash <= !root; slash++)
            compare_target(d, &a, c->path, slash == 1);
    }
    if (!d->samples.whole)
        not_whole(d, "lines have more conditions than can be combined");
    d->failed = d->failed || d->samples.failed;
    samples_free(&d->samples);
}

/* ---- all classes of a place ---- */

static void add_rules(struct diff *d, const struct rule *r, bool widely, bool newer) {
    for (; r; r = r->next) {
        d->rules[d->n_rules++] = (struct class_rule){r, widely, newer};
        d->n_allowing += !widely;
    }
}

static bool covers(const struct service *s, const struct authority *a) {
    struct host_facts host = host_facts_of(a);
    const struct host_rule *h = s->hosts;
    while (h && !host_pattern_match(&h->pattern, &host))
        h = h->next;
    return h && (a->port == 0 || service_covers_port(s, a->port));
}

static void gather_rules(struct diff *d) {
    d->n_rules = d->n_allowing = 0;
    d->clear = false;
    for (int i = 0; i < 2; i++)
        for (const struct service *s = d->p[i]->services; s; s = s->next) {
            if (!covers(s, &d->authority))
                continue;
            d->clear = d->clear || s->tls == SERVICE_CLEAR;
            if (s->encoded_slash)
                not_whole(d, "paths with encoded slashes are not compared");
            if (s->parameters)
                not_whole(d, "paths with parameters are not compared");
            add_rules(d, s->nevers, true, i == 1);
            for (const struct operation *o = s->operations; o; o = o->next)
                add_rules(d, o->rules, false, i == 1);
        }
}

/* Methods that no rule tells apart are one class. */
static void part_methods(struct diff *d) {
    d->methods[0] = methods_grantable();
    d->n_methods = 1;
    for (size_t i = 0; i < d->n_rules; i++) {
        uint64_t mask = d->rules[i].rule->methods;
        for (size_t k = 0, n = d->n_methods; k < n; k++)
            if ((d->methods[k] & mask) != 0 && (d->methods[k] & ~mask) != 0) {
                d->methods[d->n_methods++] = d->methods[k] & ~mask;
                d->methods[k] &= mask;
            }
    }
}

static void compare_place(struct diff *d) {
    struct path_classes classes;
    gather_rules(d);
    if (d->n_allowing == 0 && !d->observes)
        return;
    part_methods(d);
    if (path_classes_find(d->rules, d->n_rules, &classes) != 0)
        d->failed = true;
    if (!classes.whole)
        not_whole(d, "there are more classes of paths than are compared");
    for (size_t i = 0; i < classes.n && !d->failed; i++)
        for (size_t k = 0; k < d->n_methods; k++)
            compare_class(d, &classes.at[i], d->methods[k]);
    path_classes_free(&classes);
}

/* The ports of services with operations at this host. */
static void compare_host(struct diff *d, const struct authority *host) {
    uint16_t done[2 * PORTS_MAX * 16];
    struct authority any = *host;
    size_t n = 0;
    any.port = 0;
    d->authority = *host;
    for (int i = 0; i < 2; i++)
        for (const struct service *s = d->p[i]->services; s; s = s->next) {
            for (size_t k = 0; s->operations && covers(s, &any) && k < s->n_ports; k++) {
                size_t seen = 0;
                while (seen < n && done[seen] != s->ports[k])
                    seen++;
                if (seen < n)
                    continue;
                if (n == sizeof done / sizeof done[0]) {
                    not_whole(d, "a host has more ports than are compared");
                    return;
                }
                done[n++] = d->authority.port = s->ports[k];
                compare_place(d);
            }
        }
}

/* ---- all of it ---- */

/* What stands for "anything else" must not be what somebody wrote. */
static bool is_stranger(struct view v) {
    return view_search(v, VIEW("zq9")) < v.n || view_search(v, VIEW("ZQ9")) < v.n ||
           view_search(v, VIEW("70007")) < v.n;
}

static bool rules_name_strangers(const struct rule *r) {
    bool found = false;
    for (; r && !found; r = r->next) {
        found = is_stranger(r->path.text);
        for (const struct condition *c = r->conditions; c; c = c->next) {
            found = found || is_stranger(c->name) || is_stranger(c->test.glob);
            for (size_t i = 0; i < c->test.n_values; i++)
                found = found || is_stranger(c->test.values[i].text);
            for (size_t i = 0; i < c->n_names; i++)
                found = found || is_stranger(c->names[i]);
        }
    }
    return found;
}

static bool service_names_strangers(const struct service *s) {
    bool found = rules_name_strangers(s->nevers);
    for (const struct host_rule *h = s->hosts; h; h = h->next)
        found = found || is_stranger(h->text);
    for (const struct operation *o = s->operations; o; o = o->next)
        found = found || rules_name_strangers(o->rules);
    return found;
}

static void look_for_strangers(struct diff *d, const struct policy *p) {
    bool found = false;
    for (const struct sandbox *s = p->sandboxes; s; s = s->next)
        found = found || is_stranger(s->name);
    for (const struct service *s = p->services; s; s = s->next)
        found = found || service_names_strangers(s);
    if (found)
        not_whole(d, "a policy has the text zq9 or 70007, which stands for anything else here");
}

/* What is asked of an address is no part of a verdict. */
static bool reaches_more(const struct policy *before, const struct policy *after) {
    for (const struct service *s = after->services; s; s = s->next)
        for (const struct service *o = before->services; s->operations && o; o = o->next)
            if (o->operations && services_share_port(s, o) && services_share_host(s, o) &&
                !service_reaches_no_more(s, o))
                return true;
    return false;
}

static void look_for_limits(struct diff *d) {
    struct view names[2];
    struct position at;
    for (int i = 0; i < 2; i++) {
        look_for_strangers(d, d->p[i]);
        d->observes = d->observes || policy_observes(d->p[i], 0, &names[0], &names[1], &at);
        for (const struct service *s = d->p[i]->services; s; s = s->next)
            for (const struct credential *c = s->credentials; c; c = c->next)
                if (c->place.place == PLACE_JSON || c->place.place == PLACE_FORM)
                    not_whole(d, "credentials in bodies are not compared");
    }
    if (reaches_more(d->p[0], d->p[1]))
        not_whole(d, "a service has further ranges, or other words on addresses or its upstream");
    if (!d->sandboxes.whole)
        not_whole(d, "names of sandboxes with several stars overlap");
}

static int begin(struct diff *d) {
    size_t rules = d->p[0]->n_rules + d->p[1]->n_rules;
    d->rules = arena_array(&d->arena, rules + 1, sizeof *d->rules);
    d->keys = arena_array(&d->arena, DIFFERENCES_MAX, sizeof *d->keys);
    if (!d->rules || !d->keys || diff_hosts_find(d->p, &d->arena, &d->hosts) != 0 ||
        diff_sandboxes_find(d->p, &d->arena, &d->sandboxes) != 0)
        return ERR_MEMORY;
    for (int i = 0; i < 2; i++)
        buf_init(&d->requests[i].query, 1 << 15);
    look_for_limits(d);
    return 0;
}

int policy_diff(const struct policy *before, const struct policy *after,
                void (*found)(void *ctx, const struct diff_found *f), void *ctx,
                struct diff_result *result) {
    struct diff *d = calloc(1, sizeof *d);
    *result = (struct diff_result){.whole = true};
    if (!d)
        return ERR_MEMORY;
    d->p[0] = before;
    d->p[1] = after;
    d->found = found;
    d->ctx = ctx;
    d->result = result;
    d->failed = begin(d) != 0;
    for (size_t i = 0; i < d->hosts.n && !d->failed; i++)
        compare_host(d, &d->hosts.at[i]);
    int err = d->failed ? ERR_MEMORY : 0;
    for (int i = 0; i < 2; i++)
        buf_free(&d->requests[i].query);
    arena_free(&d->arena);
    free(d);
    return err;
}

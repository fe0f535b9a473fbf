#include "policy/diff.h"

#include "policy/diff_reach.h"
#include "policy/diff_same.h"
#include "policy/diff_state.h"
#include "policy/diff_verdict.h"
#include "policy/judge_grants.h"
#include "policy/method.h"

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

enum { MODES = sizeof modes / sizeof modes[0], RULES_A_LINE = 8 };

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

/* An encoded slash that no service asked for is not even parsed. */
static bool is_malformed(const struct policy *p, const struct trial *t) {
    return view_search(t->target, VIEW("%2F")) < view_find(t->target, '?') &&
           !policy_allows_encoded_slash(p, &t->authority);
}

static bool ask(struct diff *d, struct asked *a, int which) {
    struct field fields[SAMPLE_FIELDS + 1];
    struct trial t = trial_for(d, a, which, fields);
    const char *why;
    if (is_malformed(d->p[which], &t)) {
        a->verdicts[which] = (struct verdict){.reason = REASON_MALFORMED_TARGET, .swap = -1};
        return true;
    }
    int err = trial_run(d->p[which], &t, &a->verdicts[which], &why);
    if (err == ERR_BAD && t.with == WITH_OURS) {
        t.with = WITH_NONE;
        err = trial_run(d->p[which], &t, &a->verdicts[which], &why);
    }
    d->failed = d->failed || err == ERR_MEMORY;
    if (err == ERR_BAD)
        diff_not_whole(d, why);
    return err == 0;
}

/* ---- what is told ---- */

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
        diff_not_whole(d, "there are more differences than are told");
        return false;
    }
    d->keys[d->n_keys++] = new;
    return true;
}

static void tell(struct diff *d, const struct asked *a, enum diff_kind kind, struct view more) {
    struct buf url;
    if (!is_new(d, a, kind))
        return;
    buf_init(&url, 1 << 16);
    buf_put_str(&url, a->trial.tls ? "https://" : "http://");
    authority_write(&d->authority, a->trial.tls ? 443 : 80, &url);
    buf_put(&url, a->trial.target);
    struct diff_found f = {.kind = kind,
                           .sandbox = a->trial.sandbox,
                           .method = a->trial.method,
                           .url = buf_view(&url),
                           .more = more,
                           .before = a->verdicts[0],
                           .after = a->verdicts[1]};
    d->result->found[kind]++;
    d->found(d->ctx, &f);
    buf_free(&url);
}

static void tell_request(struct diff *d, const struct asked *a, enum diff_kind kind) {
    struct buf more;
    buf_init(&more, 1 << 16);
    buf_put_str(&more, modes[a->mode].text);
    samples_write(&d->samples, &more);
    tell(d, a, kind, view_skip(buf_view(&more), 2));
    buf_free(&more);
}

/* ---- addresses and upstreams ---- */

static void tell_reach(struct diff *d, enum diff_kind kind, struct view example) {
    struct asked a = {.trial = {.authority = d->authority, .method = VIEW("CONNECT"), .tls = true}};
    for (; a.sandbox < d->sandboxes.n; a.sandbox++) {
        a.trial.sandbox = d->sandboxes.at[a.sandbox];
        for (int i = 0; i < 2; i++)
            a.verdicts[i] = policy_judge_host(d->p[i], a.trial.sandbox, true, &d->authority);
        if (a.verdicts[0].allow && a.verdicts[1].allow)
            tell(d, &a, kind, example);
    }
}

/* Of those who may connect in both policies. */
static void compare_reach(struct diff *d) {
    struct reach r[2];
    for (int i = 0; i < 2; i++)
        r[i] = (struct reach){d->p[i], diff_speaker(&d->sides[i]), d->authority.port};
    for (int newer = 1; newer >= 0 && r[0].service && r[1].service; newer--) {
        struct buf example;
        buf_init(&example, 1 << 12);
        if (reach_is_wider(&r[!newer], &r[newer], &example))
            tell_reach(d, newer ? DIFF_FURTHER : DIFF_NEARER, buf_view(&example));
        buf_free(&example);
    }
}

/* ---- what is the same in both ---- */

/*
 * A verdict at a place hangs on nothing but the services that cover it, how specific their hosts are there and which
 * comes first (both of which break ties), and what blocks grant of their operations. So where all that is the
 * same, so is each verdict (tests/unit/diff.c tries it by chance), and nobody needs to be asked.
 */
static void find_side(struct diff *d, int which) {
    const struct policy *p = d->p[which];
    struct side *side = &d->sides[which];
    struct host_facts host = host_facts_of(&d->authority);
    struct host_walk walk = host_walk_of(&p->hosts, &host);
    unsigned level, levels[SERVICES_MAX];
    bool covers[SERVICES_MAX] = {false};
    for (const struct host_rule *h; (h = host_walk_next(&walk, &level)) != NULL;) {
        size_t i = h->service->index;
        if (!covers[i] && service_covers_port(h->service, d->authority.port)) {
            covers[i] = true;
            levels[i] = level;
        }
    }
    side->n = 0;
    for (const struct service *s = p->services; s; s = s->next)
        if (covers[s->index]) {
            side->level[side->n] = levels[s->index];
            side->at[side->n++] = s;
        }
}

static bool sides_same(const struct diff *d,
                       bool (*same)(const struct service *a, const struct service *b)) {
    const struct side *a = &d->sides[0], *b = &d->sides[1];
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->level[i] != b->level[i] || !same(a->at[i], b->at[i]))
            return false;
    return true;
}

/* Whether both hold the operation, or neither does, and by the same limits. */
static bool grants_same(const struct somebody *who, const struct operation *a,
                        const struct operation *b) {
    struct verdict v[2] = {{.operation = a}, {.operation = b}};
    enum diff_kind kind;
    bool holds[2];
    for (int i = 0; i < 2; i++) {
        holds[i] = who->known[i] && who_holds(&who->who[i], v[i].operation);
        if (holds[i])
            (void)judge_grants(&who->who[i], 0, &v[i]);
    }
    return holds[0] == holds[1] && (!holds[0] || !verdict_limits_differ(v, &kind));
}

static bool fares_alike(const struct diff *d, const struct somebody *who) {
    for (size_t i = 0; i < d->sides[0].n; i++) {
        const struct operation *a = d->sides[0].at[i]->operations,
                               *b = d->sides[1].at[i]->operations;
        for (; a && b; a = a->next, b = b->next)
            if (!grants_same(who, a, b))
                return false;
    }
    return true;
}

static bool observes(const struct diff *d) {
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < d->p[i]->n_grants; k++) {
            const struct grant *g = policy_grant_at(d->p[i], k);
            for (size_t n = 0; g && g->observe && n < d->sides[i].n; n++)
                if (g->of == d->sides[i].at[n])
                    return true;
        }
    return false;
}

/* False: the place is the same for everybody. */
static bool part_sandboxes(struct diff *d) {
    bool same = sides_same(d, service_same), alike = true;
    if (same && d->same_blocks)
        return false;
    if (!d->sandboxes.whole)
        diff_not_whole(d, "names of sandboxes with several stars overlap");
    for (size_t i = 0; i < d->sandboxes.n; i++) {
        struct somebody *who = &d->who[i];
        who->fares_alike = same && !d->observes && fares_alike(d, who);
        alike = alike && who->fares_alike;
    }
    return !alike;
}

/* ---- all requests of a class ---- */

static void compare_sandbox(struct diff *d, struct asked *a) {
    enum diff_kind kind;
    a->trial.sandbox = d->sandboxes.at[a->sandbox];
    for (a->mode = 0; a->mode < MODES && !d->failed; a->mode++) {
        if (!ask(d, a, 0) || !ask(d, a, 1))
            continue;
        d->result->requests++;
        if (!verdicts_differ(a->verdicts, &kind))
            continue;
        tell_request(d, a, kind);
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
            if (!d->who[a->sandbox].fares_alike_in_class)
                compare_sandbox(d, a);
    }
    d->failed = d->failed || !buf_ok(&target);
    buf_free(&target);
}

static bool concerns(const struct class_rule *r, uint64_t method) {
    return (r->rule->methods & method) != 0 || r->rule->any_method;
}

/* From the i-th on, of one policy. */
static size_t next_rule(const struct path_class *c, size_t i, bool newer, uint64_t method) {
    while (i < c->n_rules &&
           (c->rules[i]->mark || c->rules[i]->newer != newer || !concerns(c->rules[i], method)))
        i++;
    return i;
}

static size_t place_of(const struct side *side, const struct service *s) {
    size_t i = 0;
    while (side->at[i] != s)
        i++;
    return i;
}

static bool lines_same(const struct diff *d, const struct class_rule *a,
                       const struct class_rule *b) {
    return a->widely == b->widely && a->decoded == b->decoded && rule_same(a->rule, b->rule) &&
           place_of(&d->sides[0], a->rule->service) == place_of(&d->sides[1], b->rule->service) &&
           (a->widely || operation_same(a->rule->operation, b->rule->operation));
}

/* The same lines take these paths: who holds none of their operations is refused in both. For all, or for one. */
static bool class_same(const struct diff *d, const struct path_class *c, uint64_t method,
                       const struct somebody *who) {
    size_t a = next_rule(c, 0, false, method), b = next_rule(c, 0, true, method);
    while (a < c->n_rules && b < c->n_rules) {
        const struct class_rule *old = c->rules[a], *new = c->rules[b];
        if (who ? !old->widely && !grants_same(who, old->rule->operation, new->rule->operation)
                : !lines_same(d, old, new))
            return false;
        a = next_rule(c, a + 1, false, method);
        b = next_rule(c, b + 1, true, method);
    }
    return a == c->n_rules && b == c->n_rules;
}

/* False: the class is the same for everybody. */
static bool part_sandboxes_in_class(struct diff *d, const struct path_class *c, uint64_t method) {
    bool same = d->same_heads && !d->observes && class_same(d, c, method, NULL), alike = true;
    for (size_t i = 0; i < d->sandboxes.n; i++) {
        struct somebody *who = &d->who[i];
        who->fares_alike_in_class = who->fares_alike || (same && class_same(d, c, method, who));
        alike = alike && who->fares_alike_in_class;
    }
    return !alike;
}

/* False where neither policy could allow anything. */
static bool sample(struct diff *d, const struct path_class *c, uint64_t method) {
    bool allowed = d->observes;
    samples_init(&d->samples);
    for (size_t i = 0; i < c->n_rules; i++) {
        const struct class_rule *r = c->rules[i];
        if (r->mark || !concerns(r, method))
            continue;
        allowed = allowed || !r->widely;
        samples_add(&d->samples, r->rule);
        if (!r->widely && r->rule->service->body_limit != UINT64_MAX)
            samples_add_size(&d->samples, r->rule->service->body_limit);
    }
    if (d->bodies)
        samples_add_credential(&d->samples);
    return allowed;
}

static void compare_class(struct diff *d, const struct path_class *c, uint64_t methods) {
    struct asked a = {.trial = {.authority = d->authority}};
    for (size_t i = 0; a.trial.method.n == 0; i++)
        if ((method_bit(method_at(i)) & methods) != 0)
            a.trial.method = method_at(i);
    if (!part_sandboxes_in_class(d, c, method_bit(a.trial.method)))
        return;
    bool allowed = sample(d, c, method_bit(a.trial.method)), root = c->path.n == 1;
    samples_reduce(&d->samples, d->watched);
    for (size_t round = 0; allowed && !d->failed && samples_next(&d->samples, &round);) {
        samples_request(&d->samples, d->p[0], &d->requests[0]);
        samples_request(&d->samples, d->p[1], &d->requests[1]);
        for (int slash = 0; slash <= !root; slash++)
            compare_target(d, &a, c->path, slash == 1);
    }
    if (!d->samples.whole)
        diff_not_whole(d, "lines have more conditions than can be combined");
    d->failed = d->failed || d->samples.failed;
    samples_free(&d->samples);
}

/* ---- all classes of a place ---- */

static void compare_place(struct diff *d) {
    struct path_classes classes;
    for (int i = 0; i < 2; i++)
        find_side(d, i);
    for (int i = 0; i < 2; i++)
        policy_watch(d->p[i], &d->authority, &d->watched[i]);
    compare_reach(d);
    d->observes = observes(d);
    d->same_heads = sides_same(d, service_head_same);
    if (!part_sandboxes(d))
        return;
    diff_gather(d);
    if (d->n_allowing == 0 && !d->observes)
        return;
    if (path_classes_find(d->rules, d->n_rules, d->words, &classes) != 0)
        d->failed = true;
    if (!classes.whole)
        diff_not_whole(d, "there are more classes of paths than are compared");
    for (size_t i = 0; i < classes.n && !d->failed; i++)
        for (size_t k = 0; k < d->n_methods; k++)
            compare_class(d, &classes.at[i], d->methods[k]);
    path_classes_free(&classes);
}

static bool covers(const struct service *s, const struct host_facts *host) {
    const struct host_rule *h = s->hosts;
    while (h && !host_pattern_match(&h->pattern, host))
        h = h->next;
    return h != NULL;
}

/* The ports of services with operations at this host. */
static void compare_host(struct diff *d, const struct authority *host) {
    uint16_t done[2 * PORTS_MAX * 16];
    struct host_facts facts = host_facts_of(host);
    size_t n = 0;
    d->authority = *host;
    for (int i = 0; i < 2; i++)
        for (const struct service *s = d->p[i]->services; s; s = s->next) {
            for (size_t k = 0; s->operations && covers(s, &facts) && k < s->n_ports; k++) {
                size_t seen = 0;
                while (seen < n && done[seen] != s->ports[k])
                    seen++;
                if (seen < n)
                    continue;
                if (n == sizeof done / sizeof done[0]) {
                    diff_not_whole(d, "a host has more ports than are compared");
                    return;
                }
                done[n++] = d->authority.port = s->ports[k];
                compare_place(d);
            }
        }
}

/* ---- all of it ---- */

static int find_somebodies(struct diff *d) {
    d->who = arena_array(&d->arena, d->sandboxes.n + 1, sizeof *d->who);
    for (size_t k = 0; d->who && k < d->sandboxes.n; k++)
        for (int i = 0; i < 2; i++)
            d->who[k].known[i] = who_find(d->p[i], d->sandboxes.at[k], &d->who[k].who[i]);
    return d->who ? 0 : ERR_MEMORY;
}

static int begin(struct diff *d) {
    d->max_rules = RULES_A_LINE * (d->p[0]->n_rules + d->p[1]->n_rules) + 1;
    d->rules = arena_array(&d->arena, d->max_rules, sizeof *d->rules);
    d->keys = arena_array(&d->arena, DIFFERENCES_MAX, sizeof *d->keys);
    if (!d->rules || !d->keys || diff_hosts_find(d->p, &d->arena, &d->hosts) != 0 ||
        diff_sandboxes_find(d->p, &d->arena, &d->sandboxes) != 0)
        return ERR_MEMORY;
    for (int i = 0; i < 2; i++) {
        buf_init(&d->requests[i].query, 1 << 15);
        diff_look_for_names(d, d->p[i]);
    }
    d->same_blocks = blocks_same(d->p[0], d->p[1]);
    return find_somebodies(d);
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

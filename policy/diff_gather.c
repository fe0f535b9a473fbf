#include "policy/diff_state.h"
#include "policy/method.h"

void diff_not_whole(struct diff *d, const char *why) {
    if (d->result->whole)
        d->result->why = why;
    d->result->whole = false;
}

const struct service *diff_speaker(const struct side *side) {
    for (size_t i = 0; i < side->n; i++)
        if (side->at[i]->operations)
            return side->at[i];
    return NULL;
}

static void add_rules(struct diff *d, const struct rule *r, struct class_rule how) {
    for (; r; r = r->next) {
        how.rule = r;
        d->rules[d->n_rules++] = how;
        d->n_allowing += !how.widely;
    }
}

/* What stands for "anything else" must not be what somebody wrote. */
static const char stranger_text[] =
    "a policy has the text zq9 or 70007, which stands for anything else here";

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

static void look_for_strangers(struct diff *d, const struct service *s) {
    bool found = rules_name_strangers(s->nevers);
    for (const struct operation *o = s->operations; o; o = o->next)
        found = found || rules_name_strangers(o->rules);
    if (found)
        diff_not_whole(d, stranger_text);
}

/* The value of a credential is not sampled as something else, too. */
static bool asks_for(const struct rule *r, struct view pointer) {
    for (; r; r = r->next)
        for (const struct condition *c = r->conditions; c; c = c->next)
            if (c->kind == CONDITION_BODY && view_equal(c->name, pointer))
                return true;
    return false;
}

static void look_for_bodies(struct diff *d, const struct service *s) {
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < d->watched[i].n; k++) {
            const struct credential_place *place = d->watched[i].at[k];
            if (!place_is_in_body(place->place))
                continue;
            d->bodies = true;
            bool asked = asks_for(s->nevers, place->name);
            for (const struct operation *o = s->operations; o; o = o->next)
                asked = asked || asks_for(o->rules, place->name);
            if (asked)
                diff_not_whole(d, "a condition is on a credential in the body");
        }
}

/* No request is tried with the same credential twice. */
static void look_for_repeats(struct diff *d) {
    const struct service *s[2] = {diff_speaker(&d->sides[0]), diff_speaker(&d->sides[1])};
    for (const struct credential *c = s[0] ? s[0]->credentials : NULL; c && s[1]; c = c->next)
        for (const struct credential *k = s[1]->credentials; k; k = k->next)
            if (view_equal(c->name, k->name) && c->at_most != k->at_most)
                diff_not_whole(d, "a credential may stand in a request more or less often");
}

/* `grpc` is judged by the path. */
static void mark_path(struct diff *d, const struct rule *r, struct view path) {
    struct rule *mark = arena_alloc(&d->arena, sizeof *mark);
    struct view text = arena_copy(&d->arena, path);
    const char *why;
    d->failed = d->failed || !mark || !text.p;
    if (d->failed)
        return;
    *mark = (struct rule){.methods = r->methods, .any_method = r->any_method};
    if (path_pattern_parse(text, false, &mark->path, &why) != 0)
        diff_not_whole(d, "a gRPC method is no path");
    else if (d->n_rules == d->max_rules)
        diff_not_whole(d, "there are more gRPC lines than are compared");
    else
        d->rules[d->n_rules++] = (struct class_rule){.rule = mark, .mark = true};
}

static void mark_grpc(struct diff *d, const struct rule *r) {
    for (const struct condition *c = r->conditions; c; c = c->next) {
        struct buf all;
        if (c->kind != CONDITION_GRPC)
            continue;
        buf_init(&all, c->name.n + 2);
        buf_put(&all, c->name);
        if (view_ends(c->name, VIEW("/"))) {
            mark_path(d, r, view_head(c->name, c->name.n - 1));
            buf_put_str(&all, "**");
        }
        mark_path(d, r, buf_view(&all));
        buf_free(&all);
    }
}

static void gather_words(struct diff *d) {
    d->clear = d->bodies = false;
    d->words = (struct path_words){false, false};
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < d->sides[i].n; k++) {
            const struct service *s = d->sides[i].at[k];
            d->clear = d->clear || s->tls == SERVICE_CLEAR;
            d->words.encoded_slash = d->words.encoded_slash || s->encoded_slash;
            d->words.parameters = d->words.parameters || s->parameters;
            look_for_strangers(d, s);
            look_for_bodies(d, s);
        }
}

static void gather_rules(struct diff *d) {
    struct class_rule line = {.widely = false};
    d->n_rules = d->n_allowing = 0;
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < d->sides[i].n; k++) {
            const struct service *s = d->sides[i].at[k];
            line.newer = i == 1;
            line.widely = true;
            add_rules(d, s->nevers, line);
            line.decoded = true;
            if (d->words.encoded_slash)
                add_rules(d, s->nevers, line);
            line.widely = line.decoded = false;
            for (const struct operation *o = s->operations; o; o = o->next)
                add_rules(d, o->rules, line);
        }
    for (size_t i = 0, n = d->n_rules; i < n; i++)
        mark_grpc(d, d->rules[i].rule);
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

void diff_gather(struct diff *d) {
    gather_words(d);
    look_for_repeats(d);
    gather_rules(d);
    part_methods(d);
}

void diff_look_for_names(struct diff *d, const struct policy *p) {
    bool found = false;
    for (const struct sandbox *s = p->sandboxes; s; s = s->next)
        found = found || is_stranger(s->name);
    for (const struct service *s = p->services; s; s = s->next)
        for (const struct host_rule *h = s->hosts; h; h = h->next)
            found = found || is_stranger(h->text);
    if (found)
        diff_not_whole(d, stranger_text);
}

#include "policy/rules.h"
#include "policy/sort.h"

#include <stdlib.h>

/* ---- how specific a rule is ---- */

enum { FINAL_SLASH = 1, KEY_SIZE = PATH_PARTS_MAX + 1 };

struct ranked {
    struct rule *rule;
    uint8_t key[KEY_SIZE]; /* of each part its kind, greater the less it matches */
    uint8_t n_key;
    size_t weight; /* of its conditions */
};

/* Naming fields or tools is a condition more than naming none. */
static size_t weight_of(const struct rule *r) {
    size_t n = r->n_conditions;
    for (const struct condition *c = r->conditions; c; c = c->next)
        n += (c->kind == CONDITION_GRAPHQL || c->kind == CONDITION_MCP) && c->n_names > 0;
    return n;
}

static void fill(struct ranked *out, struct rule *r) {
    struct view rest = r->path.text, part;
    enum part_kind kind;
    *out = (struct ranked){.rule = r, .weight = weight_of(r)};
    while (path_pattern_part(&r->path, &rest, &part, &kind))
        out->key[out->n_key++] = (uint8_t)kind;
    if (r->path.final_slash)
        out->key[out->n_key++] = FINAL_SLASH;
}

static int compare_ranks(const void *left, const void *right, const void *ctx) {
    (void)ctx;
    const struct ranked *a = left, *b = right;
    int order = view_compare(view_of(a->key, a->n_key), view_of(b->key, b->n_key));
    return order != 0 ? order : (a->weight > b->weight) - (a->weight < b->weight);
}

/* A list of all rules of operations; the caller frees it. NULL: no memory. */
static struct ranked *gather(const struct policy *p, size_t *n) {
    struct ranked *all = calloc(p->n_rules + 1, sizeof *all);
    *n = 0;
    for (const struct service *s = p->services; s && all; s = s->next)
        for (const struct operation *o = s->operations; o; o = o->next)
            for (struct rule *r = o->rules; r; r = r->next)
                fill(&all[(*n)++], r);
    return all;
}

static int rank_rules(const struct policy *p) {
    size_t n;
    struct ranked *all = gather(p, &n);
    if (!all)
        return ERR_MEMORY;
    sort_items(all, n, sizeof *all, compare_ranks, NULL);
    for (size_t i = 0, rank = 0; i < n; i++) {
        rank += i > 0 && compare_ranks(&all[i - 1], &all[i], NULL) != 0;
        all[i].rule->rank = (uint32_t)rank;
    }
    free(all);
    return 0;
}

/* ---- tables ---- */

static size_t parts_of(const struct rule *r) {
    size_t n = 0;
    for (; r; r = r->next) {
        struct view rest = r->path.text, part;
        enum part_kind kind;
        while (path_pattern_part(&r->path, &rest, &part, &kind))
            n++;
    }
    return n;
}

static size_t all_parts(const struct policy *p) {
    size_t n = 0;
    for (const struct service *s = p->services; s; s = s->next) {
        n += parts_of(s->nevers);
        for (const struct operation *o = s->operations; o; o = o->next)
            n += parts_of(o->rules);
    }
    return n;
}

static void add_service(struct policy *p, struct service *s) {
    for (struct host_rule *h = s->hosts; h; h = h->next)
        host_table_add(&p->hosts, h);
    s->allow_root = path_trie_root(&p->paths);
    s->never_root = path_trie_root(&p->paths);
    for (struct operation *o = s->operations; o; o = o->next)
        for (struct rule *r = o->rules; r; r = r->next) {
            r->operation = o;
            r->service = s;
            path_trie_add(&p->paths, s->allow_root, r, false);
        }
    for (struct rule *r = s->nevers; r; r = r->next) {
        r->service = s;
        path_trie_add(&p->paths, s->never_root, r, true);
    }
}

/* ---- credentials ---- */

static size_t index_of(struct policy *p, struct view name) {
    size_t i = 0;
    while (i < p->n_credentials && !view_equal(p->credentials[i], name))
        i++;
    if (i == p->n_credentials)
        p->credentials[p->n_credentials++] = name;
    return i;
}

static int index_credentials(struct policy *p) {
    size_t n = 0;
    for (const struct service *s = p->services; s; s = s->next)
        for (const struct credential *c = s->credentials; c; c = c->next)
            n++;
    p->credentials = arena_array(&p->arena, n, sizeof(struct view));
    if (!p->credentials)
        return ERR_MEMORY;
    for (struct service *s = p->services; s; s = s->next)
        for (struct credential *c = s->credentials; c; c = c->next)
            c->index = index_of(p, c->name);
    return 0;
}

static int list_credentials(struct policy *p, struct rights *r) {
    r->credentials = arena_array(&p->arena, bit_words(p->n_credentials), sizeof(uint64_t));
    if (!r->credentials)
        return ERR_MEMORY;
    for (const struct service *s = p->services; s; s = s->next)
        for (const struct operation *o = s->credentials ? s->operations : NULL; o; o = o->next)
            if (o->credential && bit_is_set(r->operations, o->index))
                bit_set(r->credentials, o->credential->index);
    return 0;
}

static int arrange_credentials(struct policy *p) {
    int err = index_credentials(p);
    for (size_t i = 0; i < p->n_identities && err == 0; i++)
        err = list_credentials(p, &p->by_name[i].rights);
    for (size_t i = 0; i < p->n_globs && err == 0; i++)
        err = list_credentials(p, &p->globs[i]->rights);
    return err;
}

int policy_compile(struct policy *p) {
    if (host_table_init(&p->hosts, &p->arena, p->n_hosts) != 0 ||
        path_trie_init(&p->paths, &p->arena, all_parts(p), 2 * p->n_services) != 0)
        return ERR_MEMORY;
    for (struct service *s = p->services; s; s = s->next)
        add_service(p, s);
    int err = arrange_credentials(p);
    return err != 0 ? err : rank_rules(p);
}

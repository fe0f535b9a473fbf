#include "policy/diff_places.h"

#include "policy/lexer.h"

/* ---- hosts ---- */

static void add_host(struct diff_hosts *out, const struct authority *host) {
    for (size_t i = 0; i < out->n; i++)
        if (authority_same_host(&out->at[i], host))
            return;
    out->at[out->n++] = *host;
}

/* Below the base of a star; a name that would be too long is left out, as it is by everybody. */
static void add_below(struct diff_hosts *out, const struct host_pattern *h, const char *labels) {
    struct authority host;
    struct buf name;
    buf_init(&name, 2 * HOST_SIZE);
    buf_printf(&name, "%s.%s", labels, h->base.host);
    if (authority_parse_host(buf_view(&name), 443, &host, NULL) == 0)
        add_host(out, &host);
    buf_free(&name);
}

int diff_hosts_find(const struct policy *const p[2], struct arena *a, struct diff_hosts *out) {
    out->n = 0;
    out->at = arena_array(a, 2 * (p[0]->n_hosts + p[1]->n_hosts) + 1, sizeof *out->at);
    if (!out->at)
        return ERR_MEMORY;
    for (int i = 0; i < 2; i++)
        for (const struct service *s = p[i]->services; s; s = s->next)
            for (const struct host_rule *h = s->hosts; h; h = h->next) {
                if (h->pattern.reach == REACH_EXACT) {
                    add_host(out, &h->pattern.base);
                    continue;
                }
                add_below(out, &h->pattern, "zq9");
                if (h->pattern.reach == REACH_MANY)
                    add_below(out, &h->pattern, "zq9.zq9");
            }
    return 0;
}

/* ---- sandboxes ---- */

struct gatherer {
    const struct policy *const *p;
    struct arena *arena;
    struct diff_sandboxes *out;
    uint64_t **
        rights; /* of each in out, of both policies; NULL: they have terms, and stand for themselves */
    bool failed;
};

static bool has_terms(const struct who *w) {
    for (size_t i = 0; i < w->n_blocks; i++) {
        const struct sandbox *b = w->blocks ? w->blocks[i] : w->globs[i];
        if (b->unlimited)
            return true;
    }
    return false;
}

/* The bits of both; NULL when the sandbox stands for itself. */
static uint64_t *rights_of(struct gatherer *g, struct view name) {
    size_t n[2] = {bit_words(g->p[0]->n_operations), bit_words(g->p[1]->n_operations)};
    uint64_t *all = arena_array(g->arena, n[0] + n[1] + 2, sizeof *all);
    g->failed = g->failed || !all;
    for (int i = 0; i < 2 && all; i++) {
        struct who w;
        uint64_t *bits = all + (i ? n[0] : 0);
        bool known = who_find(g->p[i], name, &w);
        all[n[0] + n[1] + (size_t)i] = known;
        if (known && has_terms(&w))
            return NULL;
        for (size_t k = 0; known && k < n[i]; k++) {
            bits[k] = UINT64_MAX;
            for (size_t r = 0; r < w.n_rights; r++)
                bits[k] &= w.rights[r]->operations[k];
        }
    }
    return all;
}

static void add_sandbox(struct gatherer *g, struct view name) {
    size_t n = bit_words(g->p[0]->n_operations) + bit_words(g->p[1]->n_operations) + 2;
    uint64_t *rights = name_is_good(name) ? rights_of(g, name) : NULL;
    if (g->failed || !name_is_good(name))
        return;
    for (size_t i = 0; i < g->out->n; i++)
        if (view_equal(g->out->at[i], name) ||
            (rights && g->rights[i] && memcmp(rights, g->rights[i], n * sizeof *rights) == 0))
            return;
    g->rights[g->out->n] = rights;
    g->out->at[g->out->n++] = name;
}

static size_t stars(struct view v) {
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++)
        n += v.p[i] == '*';
    return n;
}

static struct view before_star(struct view v) {
    return view_head(v, view_find(v, '*'));
}

static struct view behind_star(struct view v) {
    size_t n = v.n;
    while (n > 0 && v.p[n - 1] != '*')
        n--;
    return view_skip(v, n);
}

/* A name that both match, for globs of one star each. */
static void add_meeting(struct gatherer *g, struct view a, struct view b) {
    struct view start = before_star(a), end = behind_star(a), name;
    struct buf out;
    if (before_star(b).n > start.n)
        start = before_star(b);
    if (behind_star(b).n > end.n)
        end = behind_star(b);
    buf_init(&out, 3 * POLICY_NAME_MAX);
    buf_put(&out, start);
    buf_put_str(&out, "zq9");
    buf_put(&out, end);
    name = arena_copy(g->arena, buf_view(&out));
    g->failed = g->failed || !name.p;
    buf_free(&out);
    if (name.p && glob_match(a, name) && glob_match(b, name))
        add_sandbox(g, name);
}

static void add_globs(struct gatherer *g, const struct sandbox *const *globs, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++) {
            bool same = view_equal(globs[i]->name, globs[k]->name);
            if (!same && (stars(globs[i]->name) > 1 || stars(globs[k]->name) > 1))
                g->out->whole = false;
            add_meeting(g, globs[i]->name, globs[k]->name);
        }
}

int diff_sandboxes_find(const struct policy *const p[2], struct arena *a,
                        struct diff_sandboxes *out) {
    struct gatherer g = {.p = p, .arena = a, .out = out};
    size_t globs = p[0]->n_globs + p[1]->n_globs;
    size_t n = p[0]->n_identities + p[1]->n_identities + globs * (globs + 1) / 2 + 1;
    const struct sandbox **all = arena_array(a, globs + 1, sizeof *all);
    *out = (struct diff_sandboxes){.at = arena_array(a, n, sizeof *out->at), .whole = true};
    g.rights = arena_array(a, n, sizeof *g.rights);
    if (!out->at || !g.rights || !all)
        return ERR_MEMORY;
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < p[i]->n_identities; k++)
            add_sandbox(&g, p[i]->by_name[k].name);
        for (size_t k = 0; k < p[i]->n_globs; k++)
            all[(i ? p[0]->n_globs : 0) + k] = p[i]->globs[k];
    }
    add_globs(&g, all, globs);
    return g.failed ? ERR_MEMORY : 0;
}

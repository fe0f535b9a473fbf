#include "egress/guard_set.h"

#include "base/secret.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HOLD_MIN = 1024 };

static_assert(GUARD_SECRET_MAX * SPELLING_GROWTH <= GUARD_PATTERN_MAX, "offsets have 16 bits");

static bool are_limits(size_t max, size_t run) {
    return run >= GUARD_SECRET_MIN && run <= GUARD_RUN_MAX && max > 0 &&
           max <= GUARD_PATTERNS_MAX / (2 * SPELLINGS);
}

struct guard_set *guard_set_new(size_t max, size_t run, uint64_t random) {
    assert(are_limits(max, run));
    struct guard_set *set = calloc(1, sizeof *set);
    struct lent **lent = calloc(max, sizeof(struct lent *));
    if (!set || !lent) {
        free(set);
        free(lent);
        return NULL;
    }
    *set = (struct guard_set){.references = 1,
                              .max = max,
                              .run = run,
                              .random = random,
                              .lent = lent,
                              .hold = HOLD_MIN,
                              .most_fragments = SIZE_MAX};
    guard_bench_open();
    return set;
}

struct guard_set *guard_set_ref(struct guard_set *set) {
    set->references++;
    return set;
}

void guard_set_free(struct guard_set *set) {
    if (!set || --set->references > 0)
        return;
    guard_index_free(&set->index);
    for (size_t i = 0; i < set->n; i++)
        secret_free(set->lent[i]);
    free(set->lent);
    free(set);
    guard_bench_close();
}

size_t guard_set_count(const struct guard_set *set) {
    return set->n;
}

size_t guard_set_hold(const struct guard_set *set) {
    return set->hold;
}

static bool is_new(const struct lent *l, const uint8_t *text, size_t n) {
    for (size_t i = 0; i < l->n_patterns; i++)
        if (l->patterns[i].n == n && memcmp(l->patterns[i].text, text, n) == 0)
            return false;
    return true;
}

static struct guard_pattern pattern_of(size_t kind, struct view value, size_t head, size_t run) {
    struct guard_pattern p = {.n = spelling_offset(kind, value, value.n),
                              .head = spelling_offset(kind, value, head),
                              .need = spelling_run(kind, value, run),
                              .leans_before = spelling_leans_before(kind),
                              .leans_after = spelling_leans_after(kind, value),
                              .kind = kind};
    if (p.need > p.n - p.head)
        p.need = p.n - p.head;
    return p;
}

static size_t spelled_size(struct view value) {
    size_t size = 0;
    for (size_t kind = 0; kind < SPELLINGS; kind++)
        size += spelling_offset(kind, value, value.n);
    return size;
}

/* Adds the spellings of the value, written to `at`; returns what is behind them. */
static uint8_t *spell(struct lent *l, struct view value, bool small, size_t head, size_t run,
                      uint8_t *at) {
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        struct guard_pattern p = pattern_of(kind, value, head, run);
        spelling_write(kind, value, at);
        if (!is_new(l, at, p.n))
            continue;
        p.text = at;
        p.secret = l;
        p.small = small;
        l->patterns[l->n_patterns++] = p;
        at += p.n;
    }
    return at;
}

static bool has_capitals(struct view value) {
    for (size_t i = 0; i < value.n; i++)
        if (to_lower(value.p[i]) != value.p[i])
            return true;
    return false;
}

static struct lent *lent_new(struct view value, struct view name, size_t prefix, size_t run,
                             uint64_t until) {
    size_t head = spelling_public_head(value, prefix, run);
    /* What percent-encoding and the like make of small letters is no longer than of capital ones. */
    size_t values = has_capitals(value) ? 2 : 1;
    struct lent *l = secret_alloc(sizeof *l + value.n + values * spelled_size(value));
    if (!l)
        return NULL;
    l->until = until;
    l->prefix = prefix;
    view_copy(name, l->name); /* zeroed, and longer than a name */
    l->n = value.n;
    l->small = l->text;
    for (size_t i = 0; i < value.n; i++)
        l->text[i] = to_lower(value.p[i]);
    uint8_t *at = spell(l, value, false, head, run, l->text + value.n);
    if (values == 2)
        spell(l, view_of(l->small, l->n), true, head, run, at);
    return l;
}

/* Compiles the n secrets; on failure the old index stays. */
static int compile(struct guard_set *set, struct lent *const *lent, size_t n) {
    struct guard_index index = {0};
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += lent[i]->n_patterns;
    if (n > 0) {
        struct guard_pattern *all = secret_alloc(total * sizeof *all);
        if (!all)
            return ERR_MEMORY;
        total = 0;
        for (size_t i = 0; i < n; i++) {
            memcpy(all + total, lent[i]->patterns, lent[i]->n_patterns * sizeof *all);
            total += lent[i]->n_patterns;
        }
        int result = guard_index_build(&index, all, total, set->random);
        if (result != 0) {
            secret_free(all);
            return result;
        }
    }
    guard_index_free(&set->index);
    set->index = index;
    return 0;
}

/* At least twice the longest spelling. */
static size_t hold_for(const struct lent *l, size_t hold) {
    for (size_t k = 0; k < l->n_patterns; k++)
        while (hold <= 2 * l->patterns[k].n)
            hold *= 2;
    return hold;
}

/* What is held back, by the values that are in the set now. */
static void measure(struct guard_set *set) {
    set->hold = HOLD_MIN;
    for (size_t c = 0; c < 256; c++)
        set->token[c] = c == 0 || (c >= 0x21 && c <= 0x7e);
    for (size_t i = 0; i < set->n; i++) {
        const struct lent *l = set->lent[i];
        for (size_t k = 0; k < l->n; k++) {
            uint8_t c = l->patterns[0].text[k];
            if (c >= 0x80)
                memset(set->token + 0x80, true, 0x80);
            set->token[' '] = set->token[' '] || c == ' ';
        }
        set->hold = hold_for(l, set->hold);
    }
}

/* Its place, or set->n. */
static size_t find(const struct guard_set *set, struct view value) {
    size_t i = 0;
    while (i < set->n && (set->lent[i]->n != value.n ||
                          !secret_equal(set->lent[i]->patterns[0].text, value.p, value.n)))
        i++;
    return i;
}

int guard_set_add(struct guard_set *set, struct view value, struct view name, size_t prefix,
                  uint64_t until) {
    if (value.n < GUARD_SECRET_MIN || value.n > GUARD_SECRET_MAX || name.n > GUARD_NAME_MAX)
        return ERR_BAD;
    size_t head = spelling_public_head(value, prefix, set->run), at = find(set, value);
    struct lent *old = at < set->n ? set->lent[at] : NULL;
    if (old && old->until < until)
        old->until = until;
    if (old && old->prefix < prefix && head <= old->patterns[0].head)
        old->prefix = prefix;
    if (old && head <= old->patterns[0].head)
        return 0;
    if (!old && at >= set->max)
        return ERR_LIMIT;
    struct lent *l = lent_new(value, name, prefix, set->run, old ? old->until : until);
    if (!l || !guard_bench_fits(GUARD_CONTEXT + hold_for(l, set->hold) + GUARD_PIECE_MAX)) {
        secret_free(l);
        return ERR_MEMORY;
    }
    if (old)
        l->fragments = old->fragments;
    set->lent[at] = l;
    int result = compile(set, set->lent, old ? set->n : set->n + 1);
    if (result != 0) {
        set->lent[at] = old;
        secret_free(l);
        return result;
    }
    secret_free(old);
    set->n += old == NULL;
    measure(set);
    return 0;
}

/* Its texts are the same for any run: only what counts of them is not. */
static void count_run(struct lent *l, size_t run) {
    struct view value = view_of(l->patterns[0].text, l->n);
    size_t head = spelling_public_head(value, l->prefix, run);
    for (size_t i = 0; i < l->n_patterns; i++) {
        struct guard_pattern *p = &l->patterns[i];
        struct view of = p->small ? view_of(l->small, l->n) : value;
        struct guard_pattern counted = pattern_of(p->kind, of, head, run);
        p->head = counted.head;
        p->need = counted.need;
    }
}

static int change_run(struct guard_set *set, size_t run) {
    for (size_t i = 0; i < set->n; i++)
        count_run(set->lent[i], run);
    int result = compile(set, set->lent, set->n);
    for (size_t i = 0; result != 0 && i < set->n; i++)
        count_run(set->lent[i], set->run);
    if (result == 0)
        set->run = run;
    return result;
}

/* Those that are in the set stay, however many. */
static int change_max(struct guard_set *set, size_t max) {
    size_t room = max > set->n ? max : set->n;
    struct lent **lent = realloc(set->lent, room * sizeof(struct lent *));
    if (!lent)
        return ERR_MEMORY;
    set->lent = lent;
    set->max = max;
    return 0;
}

int guard_set_limit(struct guard_set *set, size_t max, size_t run) {
    assert(are_limits(max, run));
    int result = max == set->max ? 0 : change_max(set, max);
    return result == 0 && run != set->run ? change_run(set, run) : result;
}

/* ---- the count of fragments: one for all values of a credential ---- */

static bool has_too_many(const struct guard_set *set, const struct lent *l) {
    size_t n = l->fragments.n;
    for (size_t i = 0; n > 0 && i < set->n; i++)
        if (set->lent[i] != l && strcmp(set->lent[i]->name, l->name) == 0)
            n += set->lent[i]->fragments.n;
    return n > set->most_fragments;
}

void guard_set_judge(struct guard_set *set) {
    size_t i = 0;
    while (i < set->n && !has_too_many(set, set->lent[i]))
        i++;
    if (i == set->n) {
        set->exceeded[0] = '\0';
    } else if (!guard_set_exceeded(set)) {
        memcpy(set->exceeded, set->lent[i]->name, sizeof set->exceeded);
        set->exceeded_until = 0;
    }
}

const char *guard_set_exceeded(const struct guard_set *set) {
    return set->exceeded[0] ? set->exceeded : NULL;
}

void guard_set_count_fragments(struct guard_set *set, size_t most, uint64_t time) {
    assert(most <= FRAGMENTS_MAX);
    set->most_fragments = most;
    set->fragments_time = time;
    guard_set_judge(set);
}

/* A secret is kept as long as its fragments count, and these as long as they exceed the set. */
static void keep_for_fragments(const struct guard_set *set, struct lent *l) {
    uint64_t last = fragments_last(&l->fragments);
    if (l->fragments.n > 0 && guard_set_exceeded(set))
        last = set->exceeded_until;
    if (l->until < last)
        l->until = last;
}

static void forget_fragments(struct guard_set *set, uint64_t now) {
    if (guard_set_exceeded(set) && set->exceeded_until == 0)
        set->exceeded_until = now + set->fragments_time;
    bool over = guard_set_exceeded(set) && set->exceeded_until <= now;
    if (over)
        set->exceeded[0] = '\0';
    for (size_t i = 0; i < set->n; i++) {
        struct fragments *f = &set->lent[i]->fragments;
        fragments_date(f, now + set->fragments_time);
        if (over)
            *f = (struct fragments){.n = 0};
        else if (!guard_set_exceeded(set))
            fragments_forget(f, now);
        keep_for_fragments(set, set->lent[i]);
    }
}

/* ---- the end of membership ---- */

void guard_set_expire(struct guard_set *set, uint64_t now) {
    size_t kept = 0;
    forget_fragments(set, now);
    /* Those to keep come first: order does not matter otherwise. */
    for (size_t i = 0; i < set->n; i++) {
        if (set->lent[i]->until <= now)
            continue;
        struct lent *l = set->lent[i];
        set->lent[i] = set->lent[kept];
        set->lent[kept++] = l;
    }
    if (kept == set->n || compile(set, set->lent, kept) != 0)
        return;
    while (set->n > kept)
        secret_free(set->lent[--set->n]);
    measure(set);
}

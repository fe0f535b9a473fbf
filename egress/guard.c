#include "egress/guard.h"

#include "base/secret.h"
#include "egress/guard_index.h"
#include "egress/spelling.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Released bytes that are kept: the longest run's spelling. */
    CONTEXT = GUARD_RUN_MAX * SPELLING_GROWTH,
    HOLD_MIN = 1024,
};

static_assert(GUARD_SECRET_MAX * SPELLING_GROWTH <= GUARD_PATTERN_MAX, "offsets have 16 bits");

/* A secret with its spellings, all of it in the arena. */
struct lent {
    uint64_t until;
    size_t n; /* of the value, which is patterns[0].text */
    size_t n_patterns;
    struct guard_pattern patterns[SPELLINGS];
    uint8_t text[];
};

struct guard_set {
    unsigned references;
    size_t max, run;
    uint64_t random;
    struct lent **lent;
    size_t n;
    struct guard_index index;
    size_t hold;
    bool token[256];
    /* Where context, held bytes and a piece stand side by side (arena), and which are to be masked. */
    uint8_t *window;
    bool *marks;
    size_t window_size;
};

/* ---- membership ---- */

struct guard_set *guard_set_new(size_t max, size_t run, uint64_t random) {
    assert(run >= GUARD_SECRET_MIN && run <= GUARD_RUN_MAX &&
           max <= GUARD_PATTERNS_MAX / SPELLINGS);
    struct guard_set *set = calloc(1, sizeof *set);
    struct lent **lent = calloc(max, sizeof(struct lent *));
    if (!set || !lent) {
        free(set);
        free(lent);
        return NULL;
    }
    *set = (struct guard_set){
        .references = 1, .max = max, .run = run, .random = random, .lent = lent, .hold = HOLD_MIN};
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
    secret_free(set->window);
    free(set->marks);
    free(set->lent);
    free(set);
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
                              .leans_after = spelling_leans_after(kind, value)};
    if (p.need > p.n - p.head)
        p.need = p.n - p.head;
    return p;
}

static struct lent *lent_new(struct view value, size_t head, size_t run, uint64_t until) {
    size_t size = 0;
    for (size_t kind = 0; kind < SPELLINGS; kind++)
        size += spelling_offset(kind, value, value.n);
    struct lent *l = secret_alloc(sizeof *l + size);
    if (!l)
        return NULL;
    l->until = until;
    l->n = value.n;
    uint8_t *at = l->text;
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        struct guard_pattern p = pattern_of(kind, value, head, run);
        spelling_write(kind, value, at);
        if (!is_new(l, at, p.n))
            continue;
        p.text = at;
        l->patterns[l->n_patterns++] = p;
        at += p.n;
    }
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
        for (size_t k = 0; k < l->n_patterns; k++)
            while (set->hold <= l->patterns[k].n)
                set->hold *= 2;
    }
}

static struct lent *find(const struct guard_set *set, struct view value) {
    for (size_t i = 0; i < set->n; i++) {
        struct lent *l = set->lent[i];
        if (l->n == value.n && secret_equal(l->patterns[0].text, value.p, value.n))
            return l;
    }
    return NULL;
}

int guard_set_add(struct guard_set *set, struct view value, size_t prefix, uint64_t until) {
    if (value.n < GUARD_SECRET_MIN || value.n > GUARD_SECRET_MAX)
        return ERR_BAD;
    struct lent *l = find(set, value);
    if (l) {
        l->until = l->until > until ? l->until : until;
        return 0;
    }
    if (set->n == set->max)
        return ERR_LIMIT;
    l = lent_new(value, spelling_public_head(value, prefix, set->run), set->run, until);
    if (!l)
        return ERR_MEMORY;
    set->lent[set->n] = l;
    int result = compile(set, set->lent, set->n + 1);
    if (result != 0) {
        secret_free(l);
        return result;
    }
    set->n++;
    measure(set);
    return 0;
}

void guard_set_expire(struct guard_set *set, uint64_t now) {
    size_t kept = 0;
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

/* ---- masking ---- */

/* marks are made when the first run is found: plain text does not pay for them. */
struct marking {
    bool *marks;
    size_t n;
    bool any;
};

static void mark(void *ctx, size_t from, size_t to) {
    struct marking *m = ctx;
    if (!m->any)
        memset(m->marks, false, m->n);
    m->any = true;
    memset(m->marks + from, true, to - from);
}

size_t guard_mask(const struct guard_set *set, uint8_t *p, size_t n) {
    size_t runs = 0;
    if (set->n == 0 || n < GUARD_SECRET_MIN)
        return 0;
    struct marking m = {malloc(n), n, false};
    if (!m.marks) {
        memset(p, '*', n); /* out of memory must not show a secret */
        return 1;
    }
    guard_index_scan(&set->index, view_of(p, n), mark, &m);
    for (size_t i = 0; m.any && i < n; i++) {
        if (!m.marks[i])
            continue;
        runs += i == 0 || !m.marks[i - 1];
        p[i] = '*';
    }
    free(m.marks);
    return runs;
}

/* ---- streams ---- */

void guard_stream_init(struct guard_stream *s, struct guard_set *set) {
    *s = (struct guard_stream){.set = guard_set_ref(set)};
    buf_init_secret(&s->kept, CONTEXT + (size_t)2 * GUARD_PATTERN_MAX);
}

void guard_stream_free(struct guard_stream *s) {
    buf_free(&s->kept);
    guard_set_free(s->set);
    s->set = NULL;
}

size_t guard_stream_held(const struct guard_stream *s) {
    return buf_len(&s->kept) - s->released;
}

bool guard_stream_idle(const struct guard_stream *s) {
    return s->set->n == 0 && guard_stream_held(s) == 0;
}

static bool window_fits(struct guard_set *set, size_t n) {
    if (n <= set->window_size)
        return true;
    size_t size = n > 2 * GUARD_PIECE_MAX ? n : 2 * GUARD_PIECE_MAX;
    uint8_t *window = secret_alloc(size);
    bool *marks = malloc(size);
    if (!window || !marks) {
        secret_free(window);
        free(marks);
        return false;
    }
    secret_free(set->window);
    free(set->marks);
    set->window = window;
    set->marks = marks;
    set->window_size = size;
    return true;
}

static size_t trailing_token(const struct guard_set *set, struct view v) {
    size_t most = v.n < set->hold ? v.n : set->hold, n = 0;
    while (n < most && set->token[v.p[v.n - 1 - n]])
        n++;
    return n;
}

/* Appends v, with '*' for what is marked; unmasked secrets never touch out's memory. */
static void put_masked(struct guard_stream *s, struct view v, const bool *marks, struct buf *out) {
    uint8_t *to = buf_reserve(out, v.n);
    if (!to || v.n == 0)
        return;
    if (!marks) {
        memcpy(to, v.p, v.n);
        s->ends_in_mask = false;
    }
    for (size_t i = 0; marks && i < v.n; i++) {
        s->masked += marks[i] && !s->ends_in_mask;
        s->ends_in_mask = marks[i];
        to[i] = marks[i] ? '*' : v.p[i];
    }
    buf_commit(out, v.n);
}

/* Looks at what is kept and one more piece together; releases all of it but what is to be held. */
static int pass(struct guard_stream *s, struct view piece, bool hold, struct buf *out) {
    struct guard_set *set = s->set;
    struct view kept = buf_view(&s->kept);
    size_t n = kept.n + piece.n;
    if (!window_fits(set, n))
        return ERR_MEMORY;
    view_copy(kept, set->window);
    view_copy(piece, set->window + kept.n);
    struct view text = view_of(set->window, n);
    struct marking m = {set->marks, n, false};
    guard_index_scan(&set->index, text, mark, &m);

    struct view fresh = view_skip(text, s->released);
    size_t end = n - (hold ? trailing_token(set, fresh) : 0);
    put_masked(s, view_head(fresh, end - s->released), m.any ? m.marks + s->released : NULL, out);
    if (!buf_ok(out))
        return ERR_LIMIT;
    size_t context = end < CONTEXT ? end : CONTEXT;
    buf_reset(&s->kept);
    buf_put(&s->kept, view_skip(text, end - context));
    s->released = context;
    return buf_ok(&s->kept) ? 0 : ERR_MEMORY;
}

int guard_stream_feed(struct guard_stream *s, struct view piece, struct buf *out) {
    if (guard_stream_idle(s)) {
        buf_reset(&s->kept); /* context of secrets that are not looked for any more */
        s->released = 0;
        s->ends_in_mask = false;
        buf_put(out, piece);
        return buf_ok(out) ? 0 : ERR_LIMIT;
    }
    while (piece.n > 0) {
        int result = pass(s, view_head(piece, GUARD_PIECE_MAX), s->set->n > 0, out);
        if (result != 0)
            return result;
        piece = view_skip(piece, GUARD_PIECE_MAX);
    }
    return 0;
}

int guard_stream_release(struct guard_stream *s, struct buf *out) {
    return guard_stream_held(s) == 0 ? 0 : pass(s, (struct view){NULL, 0}, false, out);
}

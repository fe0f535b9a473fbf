#include "egress/guard_index.h"

#include "base/eight.h"
#include "base/secret.h"

#include <assert.h>
#include <string.h>

/* A secret that repeats itself would fill the table with one gram; a few places in it are enough. */
enum { SAME_GRAM_MAX = 4, TABLE_BITS_MIN = 8, BITMAP_BITS_MIN = 12, BITMAP_BITS_MAX = 20 };

static unsigned bits_for(size_t n, unsigned least, unsigned most) {
    unsigned bits = least;
    while (bits < most && ((size_t)1 << bits) < n)
        bits++;
    return bits;
}

/* ---- building ---- */

/*
 * Text is looked at every `step` bytes. Of a pattern whose runs are long
 * enough to be hit m times, only every m-th stretch of `step` grams is needed.
 */
static bool gram_is_needed(const struct guard_pattern *p, size_t offset, size_t step) {
    size_t hits = (p->need - GUARD_GRAM + 1) / step;
    return (offset - p->head) / step % hits == 0;
}

static size_t count_grams(const struct guard_index *x) {
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        const struct guard_pattern *p = &x->patterns[i];
        for (size_t o = p->head; o + GUARD_GRAM <= p->n; o++)
            n += gram_is_needed(p, o, x->step);
    }
    return n;
}

static void insert_gram(struct guard_index *x, size_t pattern, size_t offset) {
    const uint8_t *p = x->patterns[pattern].text + offset;
    uint64_t gram = eight_at(p), hash = gram * x->factor;
    size_t mask = ((size_t)1 << (64 - x->table_shift)) - 1;
    size_t at = hash >> x->table_shift, same = 0;
    for (; x->table[at]; at = (at + 1) & mask) {
        size_t other = (x->table[at] >> 16) - 1;
        if (other != pattern || eight_at(x->patterns[other].text + (x->table[at] & 0xffff)) != gram)
            continue;
        if (++same == SAME_GRAM_MAX)
            return;
    }
    x->table[at] = (uint32_t)((pattern + 1) << 16 | offset);
    uint64_t bit = hash >> x->bits_shift;
    x->bits[bit / 8] |= (uint8_t)(1u << bit % 8);
}

static size_t least_step(const struct guard_pattern *patterns, size_t n) {
    size_t step = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        const struct guard_pattern *p = &patterns[i];
        assert(p->need >= GUARD_GRAM && p->head + p->need <= p->n);
        if (p->need - GUARD_GRAM + 1 < step)
            step = p->need - GUARD_GRAM + 1;
    }
    return step;
}

static size_t reach_of(const struct guard_pattern *patterns, size_t n) {
    size_t reach = 0;
    for (size_t i = 0; i < n; i++)
        if (patterns[i].head + patterns[i].need > reach)
            reach = patterns[i].head + patterns[i].need;
    return reach;
}

int guard_index_build(struct guard_index *x, struct guard_pattern *patterns, size_t n,
                      uint64_t factor) {
    if (n > GUARD_PATTERNS_MAX)
        return ERR_LIMIT;
    struct guard_index new = {.patterns = patterns, .n = n, .factor = factor | 1};
    new.step = least_step(patterns, n);
    new.reach = reach_of(patterns, n);
    size_t grams = count_grams(&new);
    unsigned table_bits = bits_for(grams * 2, TABLE_BITS_MIN, 31);
    unsigned bitmap_bits = bits_for(grams * 32, BITMAP_BITS_MIN, BITMAP_BITS_MAX);
    new.table_shift = 64 - table_bits;
    new.bits_shift = 64 - bitmap_bits;
    new.table = secret_alloc(sizeof *new.table << table_bits);
    new.bits = secret_alloc((size_t)1 << (bitmap_bits - 3));
    if (!new.table || !new.bits) {
        secret_free(new.table);
        secret_free(new.bits);
        return ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t o = patterns[i].head; o + GUARD_GRAM <= patterns[i].n; o++)
            if (gram_is_needed(&patterns[i], o, new.step))
                insert_gram(&new, i, o);
    *x = new;
    return 0;
}

void guard_index_free(struct guard_index *x) {
    secret_free(x->patterns);
    secret_free(x->table);
    secret_free(x->bits);
    *x = (struct guard_index){0};
}

/* ---- scanning ---- */

/* The run that was found last: further grams of it need no look. */
struct last {
    size_t pattern, delta, to;
};

static bool is_base64(uint8_t c) {
    return is_alnum(c) || c == '+' || c == '/' || c == '-' || c == '_';
}

/* How many bytes from a and b on are the same, of n. */
static size_t same_after(const uint8_t *a, const uint8_t *b, size_t n) {
    size_t i = 0;
    while (i + GUARD_GRAM <= n && eight_at(a + i) == eight_at(b + i))
        i += GUARD_GRAM;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* How many bytes before a and b are the same, of n. */
static size_t same_before(const uint8_t *a, const uint8_t *b, size_t n) {
    size_t i = 0;
    while (i + GUARD_GRAM <= n && eight_at(a - i - GUARD_GRAM) == eight_at(b - i - GUARD_GRAM))
        i += GUARD_GRAM;
    while (i < n && a[-1 - (ptrdiff_t)i] == b[-1 - (ptrdiff_t)i])
        i++;
    return i;
}

static size_t lesser(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Text at `at` equals the pattern at `offset` for a gram: the longest run around it, if it counts. */
static bool extend(const struct guard_pattern *p, struct view text, size_t at, size_t offset,
                   struct guard_run *run) {
    const uint8_t *here = text.p + at, *there = p->text + offset;
    size_t left = same_before(here, there, lesser(at, offset));
    size_t right = same_after(here, there, lesser(text.n - at, p->n - offset));
    size_t begin = offset - left, end = offset + right;
    if (end < (begin > p->head ? begin : p->head) + p->need)
        return false;
    *run = (struct guard_run){.pattern = p,
                              .from = at - left,
                              .to = at + right,
                              .begin = begin,
                              .end = end,
                              .whole = begin == 0 && end == p->n};
    run->leans_before =
        p->leans_before && begin == 0 && run->from > 0 && is_base64(text.p[run->from - 1]);
    run->leans_after =
        p->leans_after && end == p->n && run->to < text.n && is_base64(text.p[run->to]);
    return true;
}

/* Seldom, and kept out of the way of the grams that are not in the table. */
__attribute__((noinline)) static void look_up(const struct guard_index *x, struct view text,
                                              size_t at, struct last *last, guard_found *found,
                                              void *ctx) {
    uint64_t gram = eight_at(text.p + at);
    size_t mask = ((size_t)1 << (64 - x->table_shift)) - 1;
    for (size_t i = gram * x->factor >> x->table_shift; x->table[i]; i = (i + 1) & mask) {
        struct guard_run run;
        size_t pattern = (x->table[i] >> 16) - 1, offset = x->table[i] & 0xffff;
        if (eight_at(x->patterns[pattern].text + offset) != gram)
            continue;
        if (last->pattern == pattern && last->delta == at - offset && at < last->to)
            continue;
        if (!extend(&x->patterns[pattern], text, at, offset, &run))
            continue;
        *last = (struct last){pattern, at - offset, run.to};
        found(ctx, &run);
    }
}

/* Of grams that begin in [from, to). */
static void scan(const struct guard_index *x, struct view text, size_t from, size_t to,
                 guard_found *found, void *ctx) {
    /* Copies: what is found could change anything that is pointed to. */
    const uint8_t *bits = x->bits;
    uint64_t factor = x->factor;
    unsigned shift = x->bits_shift;
    size_t step = x->step;
    struct last last = {SIZE_MAX, 0, 0};
    if (x->n == 0)
        return;
    for (size_t at = from; at < to && at + GUARD_GRAM <= text.n; at += step) {
        uint64_t bit = eight_at(text.p + at) * factor >> shift;
        if (bits[bit / 8] >> bit % 8 & 1)
            look_up(x, text, at, &last, found, ctx);
    }
}

void guard_index_scan(const struct guard_index *x, struct view text, guard_found *found,
                      void *ctx) {
    scan(x, text, 0, text.n, found, ctx);
}

void guard_index_scan_at(const struct guard_index *x, struct view text, size_t from, size_t to,
                         guard_found *found, void *ctx) {
    scan(x, text, from > x->reach ? from - x->reach : 0, to + x->reach, found, ctx);
}

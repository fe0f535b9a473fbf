#include "egress/guard.h"

#include "base/secret.h"
#include "egress/fold.h"
#include "egress/guard_set.h"

#include <stdlib.h>
#include <string.h>

enum mark { MARK_NONE, MARK_FRAGMENT, MARK_WHOLE };

/*
 * Where context, held bytes and a piece stand side by side, as they are and without folds (arena),
 * and what is to be masked of either. Used within one call only, and so one for all sets.
 */
static struct bench {
    unsigned sets;
    size_t size;
    uint8_t *window, *folded;
    bool *gone; /* bytes of window that folded lacks */
    uint8_t *marks, *folded_marks;
} bench;

static void bench_clear(void) {
    secret_free(bench.window);
    secret_free(bench.folded);
    free(bench.gone);
    free(bench.marks);
    free(bench.folded_marks);
    bench = (struct bench){.sets = bench.sets};
}

void guard_bench_open(void) {
    bench.sets++;
}

void guard_bench_close(void) {
    if (--bench.sets == 0)
        bench_clear();
}

bool guard_bench_fits(size_t n) {
    if (n <= bench.size)
        return true;
    bench_clear();
    size_t size = n > 2 * GUARD_PIECE_MAX ? n : 2 * GUARD_PIECE_MAX;
    bench.window = secret_alloc(size);
    bench.folded = secret_alloc(size);
    bench.gone = malloc(size);
    bench.marks = malloc(size);
    bench.folded_marks = malloc(size);
    if (bench.window && bench.folded && bench.gone && bench.marks && bench.folded_marks)
        bench.size = size;
    else
        bench_clear();
    return bench.size > 0;
}

/* ---- masking ---- */

enum { SEEN = 64 };

/* A text being looked at, as it is or without its folds. */
struct look {
    struct guard_set *set;
    struct view text;
    uint8_t *marks; /* made when the first run is found: plain text does not pay for them */
    bool any, fragments;
    size_t shown, end, whole;    /* of struct window */
    struct guard_run seen[SEEN]; /* some of those that were noted: copies are cheap */
};

/*
 * What is looked at: the n bytes in the bench's window. Those before `shown` were released before, those
 * from `end` on are held back. The first `whole` belong to a whole spelling that began before them.
 */
struct window {
    size_t n, shown, end, whole;
    bool any;   /* bench.marks holds what is to be masked */
    bool folds; /* bench.gone holds which bytes are folds */
};

/* Without `seen`, which few looks need. */
static void begin_look(struct look *look, struct guard_set *set, struct view text, uint8_t *marks) {
    look->set = set;
    look->text = text;
    look->marks = marks;
    look->any = look->fragments = false;
    look->shown = look->end = look->whole = 0;
}

static void mark(void *ctx, const struct guard_run *run) {
    struct look *look = ctx;
    if (!look->any)
        memset(look->marks, MARK_NONE, look->text.n);
    look->any = true;
    look->fragments = look->fragments || !run->whole;
    size_t from = run->from - run->leans_before, to = run->to + run->leans_after;
    if (run->whole)
        memset(look->marks + from, MARK_WHOLE, to - from);
    for (size_t i = from; i < to && !run->whole; i++)
        if (look->marks[i] == MARK_NONE)
            look->marks[i] = MARK_FRAGMENT;
}

/* What either look found holds for both. */
static void share_marks(struct look *plain, struct look *folded) {
    struct look *other = plain->any ? folded : plain;
    if (!plain->any || !folded->any)
        memset(other->marks, MARK_NONE, other->text.n);
    for (size_t i = 0, j = 0; i < plain->text.n; i++) {
        if (bench.gone[i])
            continue;
        uint8_t *a = &plain->marks[i], *b = &folded->marks[j++];
        *a = *b = *a > *b ? *a : *b;
    }
    plain->any = folded->any = true;
}

static bool is_in_a_whole(const struct look *look, const struct guard_run *run) {
    for (size_t i = run->from; i < run->to; i++)
        if (i >= look->whole && look->marks[i] != MARK_WHOLE)
            return false;
    return true;
}

/* How many bytes of the secret are spelled within the first `offset` of a spelling. */
static size_t bytes_before(size_t kind, struct view secret, size_t offset) {
    size_t low = 0, high = secret.n + 1;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (spelling_offset(kind, secret, middle) <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void note(const struct guard_set *set, const struct guard_run *run) {
    struct lent *l = run->pattern->secret;
    struct view secret = view_of(run->pattern->small ? l->small : l->patterns[0].text, l->n);
    size_t kind = run->pattern->kind, from = bytes_before(kind, secret, run->begin);
    from += spelling_offset(kind, secret, from) < run->begin;
    fragments_note(&l->fragments, set->look, from, bytes_before(kind, secret, run->end));
}

static bool is_same(const struct guard_run *a, const struct guard_run *b) {
    return a->pattern == b->pattern && a->begin == b->begin && a->end == b->end;
}

/* Counts a run as soon as any of it is released: before, it may still become a whole one. */
static void count(void *ctx, const struct guard_run *run) {
    struct look *look = ctx;
    if (run->whole || run->to <= look->shown || run->from >= look->end || is_in_a_whole(look, run))
        return;
    struct guard_run *seen =
        &look->seen[((uintptr_t)run->pattern / sizeof *run->pattern + run->begin + 8 * run->end) %
                    SEEN];
    if (is_same(seen, run))
        return;
    *seen = *run;
    note(look->set, run);
}

static void count_all(struct look *look) {
    memset(look->seen, 0, sizeof look->seen);
    guard_index_scan(&look->set->index, look->text, count, look);
}

static size_t without_folds(size_t end) {
    size_t n = 0;
    for (size_t i = 0; i < end; i++)
        n += !bench.gone[i];
    return n;
}

/* Finds what is to be masked, and counts fragments: of either look, since what one takes for a fold may be of a secret. */
static void look_at(struct guard_set *set, struct window *w) {
    struct view text = view_of(bench.window, w->n);
    struct look plain, folded;
    begin_look(&plain, set, text, bench.marks);
    plain.shown = w->shown;
    plain.end = w->end;
    plain.whole = w->whole;
    guard_index_scan(&set->index, text, mark, &plain);
    struct view without = view_of(bench.folded, fold_remove(text, bench.folded, bench.gone));
    begin_look(&folded, set, without, bench.folded_marks);
    w->folds = without.n < w->n;
    if (w->folds)
        guard_index_scan(&set->index, without, mark, &folded);
    w->any = plain.any || folded.any;
    if (w->folds && w->any) {
        share_marks(&plain, &folded);
        folded.shown = without_folds(w->shown);
        folded.end = without_folds(w->end);
        folded.whole = without_folds(w->whole);
    }
    if (!plain.fragments && !folded.fragments)
        return;
    count_all(&plain);
    if (w->folds)
        count_all(&folded);
    guard_set_judge(set);
}

size_t guard_mask_more(struct guard_set *set, uint8_t *p, size_t n) {
    struct window w = {.n = n, .end = n};
    size_t runs = 0;
    if (set->n == 0 || n < GUARD_SECRET_MIN)
        return 0;
    if (!guard_bench_fits(n)) {
        memset(p, '*', n); /* out of memory must not show a secret */
        return 1;
    }
    memcpy(bench.window, p, n);
    look_at(set, &w);
    for (size_t i = 0; w.any && i < n; i++) {
        if (!bench.marks[i])
            continue;
        runs += i == 0 || !bench.marks[i - 1];
        p[i] = '*';
    }
    return runs;
}

size_t guard_mask(struct guard_set *set, uint8_t *p, size_t n) {
    set->look++;
    return guard_mask_more(set, p, n);
}

/* ---- streams ---- */

void guard_stream_init(struct guard_stream *s, struct guard_set *set) {
    *s = (struct guard_stream){.set = guard_set_ref(set)};
    buf_init_cleared(&s->kept, GUARD_CONTEXT + (size_t)4 * GUARD_PATTERN_MAX);
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

/* How much of text's end, without the `before` bytes at its beginning, may be the beginning of a secret. */
static size_t trailing_word(const struct guard_set *set, struct view text, size_t before) {
    size_t least = text.n - before > set->hold ? text.n - set->hold : before;
    for (size_t at = text.n;;) {
        while (at > least && set->token[text.p[at - 1]])
            at--;
        size_t fold = at > least ? fold_before(text, at) : 0;
        if (fold == 0)
            return text.n - at;
        if (at - least <= fold)
            return text.n - least;
        at -= fold;
    }
}

/* The end of the bytes from `from` on that are all marked or all not. */
static size_t run_end(const uint8_t *marks, size_t from, size_t n) {
    bool marked = marks[from];
    while (from < n && (marks[from] != MARK_NONE) == marked)
        from++;
    return from;
}

/* Appends v, with '*' for what is marked; unmasked secrets never touch out's memory. */
static void put_masked(struct guard_stream *s, struct view v, const uint8_t *marks,
                       struct buf *out) {
    uint8_t *to = buf_reserve(out, v.n);
    if (!to || v.n == 0)
        return;
    for (size_t from = 0, end; from < v.n; from = end) {
        bool masked = marks && marks[from];
        end = marks ? run_end(marks, from, v.n) : v.n;
        if (masked)
            memset(to + from, '*', end - from);
        else
            memcpy(to + from, v.p + from, end - from);
        s->masked += masked && !s->ends_in_mask;
        s->ends_in_mask = masked;
    }
    buf_commit(out, v.n);
}

/* What becomes of the bytes behind which something may come. */
enum rest { REST_HELD, REST_RELEASED, REST_LAST /* released, and nothing comes */ };

/* How far a whole spelling reaches that holds the byte at `from`, or did in an earlier look. */
static size_t whole_from(const struct window *w, size_t from) {
    size_t at = from;
    while (at < w->whole ||
           (w->any && at < w->n && (bench.marks[at] == MARK_WHOLE || (w->folds && bench.gone[at]))))
        at++;
    return at - from;
}

static int keep_context(struct guard_stream *s, struct view text, const struct window *w) {
    size_t context = w->end < GUARD_CONTEXT ? w->end : GUARD_CONTEXT;
    buf_reset(&s->kept);
    buf_put(&s->kept, view_skip(text, w->end - context));
    s->released = context;
    s->whole = whole_from(w, w->end - context);
    return buf_ok(&s->kept) ? 0 : ERR_MEMORY;
}

/* Looks at what is kept and one more piece together; releases all of it but what is to be held. */
static int pass(struct guard_stream *s, struct view piece, enum rest rest, struct buf *out) {
    struct guard_set *set = s->set;
    struct view kept = buf_view(&s->kept);
    size_t n = kept.n + piece.n;
    if (!guard_bench_fits(n))
        return ERR_MEMORY;
    view_copy(kept, bench.window);
    view_copy(piece, bench.window + kept.n);
    struct view text = view_of(bench.window, n);
    size_t held = rest == REST_HELD ? trailing_word(set, text, s->released) : 0;
    struct window w = {.n = n, .shown = s->released, .end = n - held, .whole = s->whole};
    set->look++;
    look_at(set, &w);
    if (guard_set_exceeded(set))
        return ERR_DENIED;
    put_masked(s, view_slice(text, s->released, w.end), w.any ? bench.marks + s->released : NULL,
               out);
    if (!buf_ok(out))
        return ERR_LIMIT;
    if (rest != REST_LAST)
        return keep_context(s, text, &w);
    buf_reset(&s->kept);
    s->released = 0;
    return 0;
}

/* What was kept is context of secrets that are not looked for any more. */
static int pass_unseen(struct guard_stream *s, struct view piece, struct buf *out) {
    buf_reset(&s->kept);
    s->released = 0;
    s->whole = 0;
    s->ends_in_mask = false;
    buf_put(out, piece);
    return buf_ok(out) ? 0 : ERR_LIMIT;
}

int guard_stream_feed(struct guard_stream *s, struct view piece, struct buf *out) {
    if (guard_stream_idle(s))
        return pass_unseen(s, piece, out);
    while (piece.n > 0) {
        enum rest rest = s->set->n > 0 ? REST_HELD : REST_RELEASED;
        int result = pass(s, view_head(piece, GUARD_PIECE_MAX), rest, out);
        if (result != 0)
            return result;
        piece = view_skip(piece, GUARD_PIECE_MAX);
    }
    return 0;
}

int guard_stream_end(struct guard_stream *s, struct view piece, struct buf *out) {
    size_t before = piece.n > GUARD_PIECE_MAX ? piece.n - GUARD_PIECE_MAX : 0;
    int result = guard_stream_feed(s, view_head(piece, before), out);
    if (result != 0)
        return result;
    piece = view_skip(piece, before);
    return guard_stream_idle(s) ? pass_unseen(s, piece, out) : pass(s, piece, REST_LAST, out);
}

int guard_stream_release(struct guard_stream *s, struct buf *out) {
    return guard_stream_held(s) == 0 ? 0 : pass(s, (struct view){NULL, 0}, REST_RELEASED, out);
}

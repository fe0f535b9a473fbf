#include "egress/guard.h"

#include "base/eight.h"
#include "base/secret.h"
#include "egress/escape.h"
#include "egress/fold.h"
#include "egress/guard_set.h"

#include <stdlib.h>
#include <string.h>

enum mark { MARK_NONE, MARK_FRAGMENT, MARK_WHOLE };

/*
 * The layers of a text: as it is; without its folds; with its escapes undone; and undone once more, since a string may
 * stand in a string. Each is made of the one before.
 */
enum { LAYER_PLAIN, LAYER_FOLDS, LAYER_ESCAPES, LAYER_NESTED, LAYERS };

struct layer {
    uint8_t *text, *marks; /* what is to be masked of it */
    bool *gone;            /* bytes of the layer before that this one lacks */
};

/*
 * Where context, held bytes and a piece stand side by side, in all layers (arena). Used within one call only, and so
 * one for all sets.
 */
static struct bench {
    unsigned sets;
    size_t size;
    struct layer layers[LAYERS];
} bench;

static void bench_clear(void) {
    for (size_t i = 0; i < LAYERS; i++) {
        secret_free(bench.layers[i].text);
        free(bench.layers[i].marks);
        free(bench.layers[i].gone);
    }
    bench = (struct bench){.sets = bench.sets};
}

void guard_bench_open(void) {
    bench.sets++;
}

void guard_bench_close(void) {
    if (--bench.sets == 0)
        bench_clear();
}

static bool layer_make(struct layer *layer, size_t size) {
    layer->text = secret_alloc(size);
    layer->marks = malloc(size);
    layer->gone = malloc(size);
    return layer->text && layer->marks && layer->gone;
}

bool guard_bench_fits(size_t n) {
    if (n <= bench.size)
        return true;
    bench_clear();
    size_t size = n > 2 * GUARD_PIECE_MAX ? n : 2 * GUARD_PIECE_MAX, made = 0;
    while (made < LAYERS && layer_make(&bench.layers[made], size))
        made++;
    if (made == LAYERS)
        bench.size = size;
    else
        bench_clear();
    return bench.size > 0;
}

/* ---- masking ---- */

enum { SEEN = 64 };

/* A text being looked at, in one layer. */
struct look {
    struct guard_set *set;
    struct view text;
    const struct layer *layer;
    uint8_t *marks; /* made when the first run is found: plain text does not pay for them */
    bool any;
    size_t shown, end, whole;    /* of struct window */
    struct guard_run seen[SEEN]; /* some of those that were noted: copies are cheap */
};

/*
 * What is looked at: the n bytes in the bench's window. Those before `shown` were released before, those
 * from `end` on are held back. The first `whole` belong to a whole spelling that began before them.
 */
struct window {
    size_t n, shown, end, whole;
    bool any;   /* the plain layer's marks say what is to be masked */
    bool folds; /* the layer without folds says which bytes are folds */
};

/* Without `seen`, which few looks need. */
static void begin_look(struct look *look, struct guard_set *set, struct view text,
                       const struct layer *layer) {
    look->set = set;
    look->text = text;
    look->layer = layer;
    look->marks = layer->marks;
    look->any = false;
    look->shown = look->end = look->whole = 0;
}

static void mark(void *ctx, const struct guard_run *run) {
    struct look *look = ctx;
    if (!look->any)
        memset(look->marks, MARK_NONE, look->text.n);
    look->any = true;
    size_t from = run->from - run->leans_before, to = run->to + run->leans_after;
    if (run->whole)
        memset(look->marks + from, MARK_WHOLE, to - from);
    for (size_t i = from; i < to && !run->whole; i++)
        if (look->marks[i] == MARK_NONE)
            look->marks[i] = MARK_FRAGMENT;
}

static uint8_t graver(uint8_t a, uint8_t b) {
    return a > b ? a : b;
}

/* What one look found holds for the other; and for all of an escape what holds for what it stands for. */
static void share_marks(struct look *upper, struct look *lower) {
    const bool *gone = lower->layer->gone;
    bool escapes = lower->layer != &bench.layers[LAYER_FOLDS];
    if (!upper->any)
        memset(upper->marks, MARK_NONE, upper->text.n);
    if (!lower->any)
        memset(lower->marks, MARK_NONE, lower->text.n);
    for (size_t i = 0, j = 0; i < upper->text.n; i++) {
        uint8_t *mark = &upper->marks[i];
        if (!gone[i]) {
            *mark = lower->marks[j] = graver(*mark, lower->marks[j]);
            j++;
        } else if (escapes) {
            *mark = graver(*mark, mark[-1]);
        }
    }
    upper->any = lower->any = true;
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

/* How many of the first n bytes of the layer before are in this one. */
static size_t left_of(const struct layer *layer, size_t n) {
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        left += !layer->gone[i];
    return left;
}

/* The places of a layer of n bytes where the layer before, of before_n, had more: each is the one behind what was undone. */
struct seams {
    const bool *gone;
    size_t before_n, at, n_gone;
};

static bool next_seam(struct seams *s, size_t *place) {
    const bool *first = memchr(s->gone + s->at, true, s->before_n - s->at);
    if (!first)
        return false;
    s->at = (size_t)(first - s->gone);
    *place = s->at - s->n_gone;
    for (; s->at < s->before_n && s->gone[s->at]; s->at++)
        s->n_gone++;
    return true;
}

/*
 * Runs that the layer before does not have hold a byte of what an escape stands for, before a seam, or bytes from both
 * sides of where a fold was.
 */
static void look_at_seams(struct look *look, size_t before_n) {
    const struct guard_index *index = &look->set->index;
    struct seams s = {look->layer->gone, before_n, 0, 0};
    size_t place, from = 0, to = 0;
    while (next_seam(&s, &place)) {
        size_t begin = place > ESCAPE_BYTES_MAX ? place - ESCAPE_BYTES_MAX : 0;
        if (to > 0 && begin > to + 2 * index->reach) {
            guard_index_scan_at(index, look->text, from, to, mark, look);
            to = 0;
        }
        from = to > 0 ? from : begin;
        to = place + 1;
    }
    guard_index_scan_at(index, look->text, from, to, mark, look);
}

/* Escapes that were none before the last ones were undone hold a byte that one of those stands for; of several none is of an escape. */
static bool has_nested(struct view text, size_t before_n) {
    struct seams s = {bench.layers[LAYER_ESCAPES].gone, before_n, 0, 0};
    size_t place;
    while (next_seam(&s, &place))
        if (escape_begins(text, place > ESCAPE_MAX ? place - ESCAPE_MAX : 0, place))
            return true;
    return false;
}

/* Looks for runs in each layer that is another one than the layer before; how many looks there were. */
static size_t look_in_layers(struct guard_set *set, struct view text, struct look looks[LAYERS]) {
    static size_t (*const undo[LAYERS])(struct view, uint8_t *, bool *) = {
        [LAYER_FOLDS] = fold_remove, [LAYER_ESCAPES] = escape_undo, [LAYER_NESTED] = escape_undo};
    size_t n = 1, last_n = 0;
    begin_look(&looks[0], set, text, &bench.layers[LAYER_PLAIN]);
    guard_index_scan(&set->index, text, mark, &looks[0]);
    for (size_t i = LAYER_FOLDS; i < LAYERS; i++) {
        const struct layer *layer = &bench.layers[i];
        size_t before_n = text.n;
        if (i == LAYER_NESTED && !has_nested(text, last_n))
            break;
        size_t left = undo[i](text, layer->text, layer->gone);
        if (left == before_n && i == LAYER_ESCAPES)
            break;
        if (left == before_n)
            continue;
        last_n = before_n;
        text = view_of(layer->text, left);
        begin_look(&looks[n], set, text, layer);
        look_at_seams(&looks[n++], before_n);
    }
    return n;
}

static bool any_found(const struct look *looks, size_t n) {
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || looks[i].any;
    return any;
}

/* Everything that was found holds for all looks: up to the plain one, and down from it. */
static void share_looks(struct look *looks, size_t n) {
    for (size_t i = n; i-- > 1;)
        share_marks(&looks[i - 1], &looks[i]);
    for (size_t i = 1; i < n; i++)
        share_marks(&looks[i - 1], &looks[i]);
}

static void place_looks(struct look *looks, size_t n, const struct window *w) {
    looks[0].shown = w->shown;
    looks[0].end = w->end;
    looks[0].whole = w->whole;
    for (size_t i = 1; i < n; i++) {
        looks[i].shown = left_of(looks[i].layer, looks[i - 1].shown);
        looks[i].end = left_of(looks[i].layer, looks[i - 1].end);
        looks[i].whole = left_of(looks[i].layer, looks[i - 1].whole);
    }
}

/* Finds what is to be masked, and counts fragments: of every look, since what one undoes may be of a secret. */
static void look_at(struct guard_set *set, struct window *w) {
    struct look looks[LAYERS];
    struct view text = view_of(bench.layers[LAYER_PLAIN].text, w->n);
    size_t n = look_in_layers(set, text, looks);
    w->folds = n > 1 && looks[1].layer == &bench.layers[LAYER_FOLDS];
    w->any = any_found(looks, n);
    if (!w->any)
        return;
    share_looks(looks, n);
    /* The plain one has all marks now; most runs lie in a whole spelling, and none of those counts. */
    if (!memchr(looks[0].marks, MARK_FRAGMENT, looks[0].text.n))
        return;
    place_looks(looks, n, w);
    for (size_t i = 0; i < n; i++)
        count_all(&looks[i]);
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
    const uint8_t *marks = bench.layers[LAYER_PLAIN].marks;
    memcpy(bench.layers[LAYER_PLAIN].text, p, n);
    look_at(set, &w);
    for (size_t i = 0; w.any && i < n; i++) {
        if (!marks[i])
            continue;
        runs += i == 0 || !marks[i - 1];
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
    uint64_t same = EIGHT(marks[from]);
    while (n - from >= 8 && eight_at(marks + from) == same)
        from += 8;
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
    const uint8_t *marks = bench.layers[LAYER_PLAIN].marks;
    const bool *folds = bench.layers[LAYER_FOLDS].gone;
    size_t at = from;
    while (at < w->whole ||
           (w->any && at < w->n && (marks[at] == MARK_WHOLE || (w->folds && folds[at]))))
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
    const struct layer *plain = &bench.layers[LAYER_PLAIN];
    view_copy(kept, plain->text);
    view_copy(piece, plain->text + kept.n);
    struct view text = view_of(plain->text, n);
    size_t held = rest == REST_HELD ? trailing_word(set, text, s->released) : 0;
    struct window w = {.n = n, .shown = s->released, .end = n - held, .whole = s->whole};
    set->look++;
    look_at(set, &w);
    if (guard_set_exceeded(set))
        return ERR_DENIED;
    put_masked(s, view_slice(text, s->released, w.end), w.any ? plain->marks + s->released : NULL,
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

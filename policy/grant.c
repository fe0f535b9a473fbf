#include "policy/errors.h"
#include "policy/rules.h"
#include "policy/sort.h"

#include <time.h>

/* ---- which of several is used ---- */

static size_t count_labels(const struct sandbox *s) {
    size_t n = 0;
    for (const struct mention *m = s->labels; m; m = m->next)
        n++;
    return n;
}

static size_t count_bits(const uint64_t *bits, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < bit_words(n); i++)
        count += (size_t)__builtin_popcountll(bits[i]);
    return count;
}

static int by_number(uint64_t a, uint64_t b) {
    return a == b ? 0 : a < b ? -1 : 1;
}

/* A limit of 0 is none: the last. */
static int by_limit(uint64_t a, uint64_t b) {
    return by_number(a - 1, b - 1);
}

static int by_rate(const struct grant_limits *a, const struct grant_limits *b) {
    if (a->rate == 0 || b->rate == 0)
        return by_limit(a->rate, b->rate);
    return by_number(a->rate * b->rate_seconds, b->rate * a->rate_seconds);
}

static int by_limits(const struct grant_limits *a, const struct grant_limits *b) {
    int order = by_limit(a->until, b->until);
    if (order == 0)
        order = by_limit(a->uses, b->uses);
    if (order == 0)
        order = by_limit(a->bytes_out, b->bytes_out);
    if (order == 0)
        order = by_rate(a, b);
    return order != 0 ? order : by_limit(a->concurrent, b->concurrent);
}

/* A name before a glob, a longer glob before a shorter one, more labels before fewer. */
static int by_block(const struct sandbox *a, const struct sandbox *b) {
    if (a->glob != b->glob)
        return a->glob ? 1 : -1;
    int order = by_number(glob_weight(b->name), glob_weight(a->name));
    if (order == 0)
        order = by_number(count_labels(b), count_labels(a));
    return order != 0 ? order : view_compare(a->name, b->name);
}

/* Of the same service and as many: that of the first name that only one of them grants. */
static int by_operations(const struct grant *a, const struct grant *b) {
    for (size_t i = 0; a->of && a->of == b->of && i < a->of->n_operations; i++) {
        size_t o = a->of->names[i]->index;
        bool in_a = bit_is_set(a->operations, o), in_b = bit_is_set(b->operations, o);
        if (in_a != in_b)
            return in_a ? -1 : 1;
    }
    return 0;
}

static int compare_grants(const void *left, const void *right, const void *ctx) {
    const struct policy *p = ctx;
    const struct grant *a = *(const struct grant *const *)left,
                       *b = *(const struct grant *const *)right;
    int order = by_block(a->sandbox, b->sandbox);
    if (order == 0)
        order = by_number(count_bits(a->operations, p->n_operations),
                          count_bits(b->operations, p->n_operations));
    if (order == 0)
        order = by_limits(&a->limits, &b->limits);
    if (order == 0)
        order = by_operations(a, b);
    return order != 0 ? order : view_compare(a->note, b->note);
}

/* ---- errors ---- */

static bool is_line(const struct grant *g) {
    return g->operations != NULL;
}

static bool same_identity(const struct grant *a, const struct grant *b) {
    struct buf x, y;
    buf_init(&x, POLICY_TEXT_MAX);
    buf_init(&y, POLICY_TEXT_MAX);
    grant_put_identity(a, &x);
    grant_put_identity(b, &y);
    bool same = view_equal(buf_view(&x), buf_view(&y));
    buf_free(&x);
    buf_free(&y);
    return same;
}

/* Of the lines before it in the block. */
static size_t crowd_of(const struct grant *g, const struct operation *o) {
    size_t n = 0;
    for (const struct grant *q = g->sandbox->grants; q != g; q = q->next)
        n += is_line(q) && q->limited && bit_is_set(q->operations, o->index);
    return n;
}

/* By a line of the same block that does not limit it. */
static bool is_free_by(const struct grant *g, const struct operation *o) {
    if (bit_is_set(g->sandbox->unlimited, o->index))
        return true;
    const struct grant *q = g->sandbox->grants;
    while (q && !(is_line(q) && !q->limited && bit_is_set(q->operations, o->index)))
        q = q->next;
    return q != NULL;
}

static void check_use(const struct grant *g, struct policy_errors *errors) {
    for (const struct operation *o = g->of->operations; o; o = o->next)
        if (bit_is_set(g->operations, o->index) && is_free_by(g, o)) {
            errors_add(errors, g->service_at,
                       "'%.*s' is granted without limits, too: those of this grant limit nothing",
                       VIEW_ARG(o->name));
            return;
        }
}

static void check_line(const struct grant *g, struct policy_errors *errors) {
    check_use(g, errors);
    for (const struct grant *q = g->sandbox->grants; q != g; q = q->next)
        if (is_line(q) && q->limited && q->of == g->of && same_identity(q, g)) {
            errors_add(errors, g->service_at,
                       "the same grant with limits twice: what is counted of each is only told "
                       "apart when one has a note of its own");
            return;
        }
    for (const struct operation *o = g->of->operations; o; o = o->next)
        if (bit_is_set(g->operations, o->index) && crowd_of(g, o) >= GRANTS_A_LAYER) {
            errors_add(errors, g->service_at, "'%.*s' has more than %d grants with limits",
                       VIEW_ARG(o->name), GRANTS_A_LAYER);
            return;
        }
}

int policy_rank_grants(struct policy *p, struct policy_errors *errors) {
    size_t n = 0;
    struct grant **lines = arena_array(&p->arena, p->n_grants + 1, sizeof *lines);
    if (!lines)
        return ERR_MEMORY;
    for (size_t i = 0; i < p->n_grants; i++) {
        struct grant *g = p->grants[i];
        if (!g || !is_line(g))
            continue;
        lines[n++] = g;
        if (g->limited && g->of)
            check_line(g, errors);
    }
    sort_items(lines, n, sizeof *lines, compare_grants, p);
    for (size_t i = 0; i < n; i++)
        lines[i]->rank = i;
    return 0;
}

/* ---- what they say ---- */

const struct grant_limits *grant_limits(const struct grant *g) {
    return &g->limits;
}

size_t grant_index(const struct grant *g) {
    return g->index;
}

size_t policy_grants(const struct policy *p) {
    return p->n_grants;
}

const struct grant *policy_grant_at(const struct policy *p, size_t index) {
    return is_line(p->grants[index]) ? p->grants[index] : NULL;
}

unsigned grant_layer(const struct grant *g) {
    return (unsigned)g->sandbox->layer;
}

struct position grant_position(const struct grant *g) {
    return g->service_at;
}

struct view grant_service(const struct grant *g) {
    return g->service;
}

struct view grant_note(const struct grant *g) {
    return g->note;
}

bool grant_observes(const struct grant *g) {
    return g->observe;
}

/* The least label that is greater than one; NULL: there is none. */
static const struct mention *label_after(const struct sandbox *s, struct view one) {
    const struct mention *next = NULL;
    for (const struct mention *m = s->labels; m; m = m->next)
        if (view_compare(m->name, one) > 0 && (!next || view_compare(m->name, next->name) < 0))
            next = m;
    return next;
}

/* The same of the operations of a line. `all` is the empty name. */
static const struct grant *operation_after(const struct grant *line, struct view one) {
    const struct grant *next = NULL;
    for (const struct grant *g = line; g && g->index == line->index; g = g->next)
        if (view_compare(g->operation, one) > 0 &&
            (!next || view_compare(g->operation, next->operation) < 0))
            next = g;
    return next;
}

void grant_put_identity(const struct grant *g, struct buf *out) {
    const struct sandbox *s = g->sandbox;
    struct view last = {NULL, 0};
    buf_put_u8(out, (uint8_t)s->layer);
    buf_put_block(out, s->name);
    for (const struct mention *m; (m = label_after(s, last)) != NULL; last = m->name)
        buf_put_block(out, m->name);
    buf_put_u8(out, 0xff); /* no block begins with it */
    buf_put_block(out, g->service);
    last = (struct view){NULL, 0};
    for (const struct grant *o; (o = operation_after(g, last)) != NULL; last = o->operation)
        buf_put_block(out, o->operation);
    buf_put_u8(out, 0xff); /* no block begins with it */
    buf_put_block(out, g->note);
}

static void put_time(uint64_t seconds, struct buf *out) {
    time_t t = (time_t)seconds;
    char text[32];
    struct tm tm;
    if (gmtime_r(&t, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        buf_put_str(out, text);
}

static void put_number(struct buf *out, const char *word, uint64_t n) {
    if (n == 0)
        return;
    buf_printf(out, "%s%s ", buf_len(out) > 0 ? " " : "", word);
    buf_put_decimal(out, n);
}

void grant_put_terms(const struct grant *g, struct buf *out) {
    const struct grant_limits *l = &g->limits;
    if (l->until) {
        buf_put_str(out, "until ");
        put_time(l->until, out);
    }
    put_number(out, "uses", l->uses);
    put_number(out, "rate", l->rate);
    if (l->rate)
        buf_put_str(out, l->rate_seconds == 1 ? "/s" : l->rate_seconds == 60 ? "/m" : "/h");
    put_number(out, "bytes out", l->bytes_out);
    put_number(out, "concurrent", l->concurrent);
    if (g->observe)
        buf_put_str(out, buf_len(out) > 0 ? " mode observe" : "mode observe");
}

const struct grant *policy_sandbox_grant_at(const struct policy *p, struct view sandbox, size_t i) {
    struct who who;
    if (!who_find(p, sandbox, &who))
        return NULL;
    for (size_t b = 0; b < who.n_blocks; b++) {
        const struct sandbox *block = who.blocks ? who.blocks[b] : who.globs[b];
        for (const struct grant *g = block->grants; g; g = g->next)
            if (is_line(g) && i-- == 0)
                return g;
    }
    return NULL;
}

bool policy_observes(const struct policy *p, size_t i, struct view *sandbox, struct view *service,
                     struct position *at) {
    for (size_t k = 0; k < p->n_grants; k++) {
        const struct grant *g = p->grants[k];
        if (!g || !g->observe || i-- > 0)
            continue;
        *sandbox = g->sandbox->name;
        *service = g->service;
        *at = g->service_at;
        return true;
    }
    return false;
}

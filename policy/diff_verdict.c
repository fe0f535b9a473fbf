#include "policy/diff_verdict.h"

#include "policy/rules.h"

/* ---- limits of grants ---- */

static bool is_wider(uint64_t before, uint64_t after) {
    return before != 0 && (after == 0 || after > before);
}

/* In the long run, or at once. */
static bool is_faster(const struct grant_limits *a, const struct grant_limits *b) {
    return a->rate != 0 && (b->rate == 0 || b->rate > a->rate ||
                            b->rate * a->rate_seconds > a->rate * b->rate_seconds);
}

static bool limits_laxer(const struct grant_limits *a, const struct grant_limits *b) {
    return is_faster(a, b) || is_wider(a->until, b->until) || is_wider(a->uses, b->uses) ||
           is_wider(a->bytes_out, b->bytes_out) || is_wider(a->concurrent, b->concurrent);
}

/* Operations that share a count need more of it than those that are counted apart. */
static bool shares_as_much(const struct grant *before, const struct grant *after) {
    for (size_t i = 0; i < before->of->n_operations; i++) {
        const struct operation *o = before->of->names[i];
        const struct operation *now =
            bit_is_set(before->operations, o->index) ? service_operation(after->of, o->name) : NULL;
        if (now && !bit_is_set(after->operations, now->index))
            return false;
    }
    return true;
}

/* What is counted over all time goes on only where the grant is the same. */
static bool counts_on(const struct grant *before, const struct grant *after) {
    struct buf x, y;
    if (before->limits.uses == 0 && before->limits.bytes_out == 0)
        return true;
    buf_init(&x, 2 * POLICY_TEXT_MAX);
    buf_init(&y, 2 * POLICY_TEXT_MAX);
    grant_put_identity(before, &x);
    grant_put_identity(after, &y);
    bool same = buf_ok(&x) && buf_ok(&y) && view_equal(buf_view(&x), buf_view(&y));
    buf_free(&x);
    buf_free(&y);
    return same;
}

static bool is_no_laxer(const struct grant *before, const struct grant *after) {
    return !limits_laxer(&before->limits, &after->limits) && shares_as_much(before, after) &&
           counts_on(before, after);
}

static bool same_limits(const struct grant *a, const struct grant *b) {
    return is_no_laxer(a, b) && is_no_laxer(b, a);
}

/* The grants of a verdict that are of one layer. */
struct part {
    const struct grant *const *at;
    size_t n;
};

static struct part part_of(const struct verdict *v, unsigned layer) {
    size_t from = 0, n = 0;
    while (from < v->n_grants && grant_layer(v->grants[from]) < layer)
        from++;
    while (from + n < v->n_grants && grant_layer(v->grants[from + n]) == layer)
        n++;
    return (struct part){v->grants + from, n};
}

/* Whether each of b has one of a of its own that it goes with. What nothing limits is the laxest. */
static bool pairs(struct part a, struct part b,
                  bool (*goes)(const struct grant *before, const struct grant *after)) {
    bool used[GRANTS_A_LAYER] = {false};
    for (size_t i = 0; i < b.n; i++) {
        size_t k = 0;
        while (k < a.n && (used[k] || !goes(a.at[k], b.at[i])))
            k++;
        if (k == a.n)
            return false;
        used[k] = true;
    }
    return true;
}

bool verdict_limits_differ(const struct verdict v[2], enum diff_kind *kind) {
    bool differ = false, laxer = false;
    for (unsigned layer = 0; layer < LAYERS_MAX; layer++) {
        struct part a = part_of(&v[0], layer), b = part_of(&v[1], layer);
        differ = differ || a.n != b.n || !pairs(a, b, same_limits);
        laxer = laxer || (a.n > 0 && (b.n == 0 || !pairs(a, b, is_no_laxer)));
    }
    *kind = laxer ? DIFF_LAXER : DIFF_STRICTER;
    return differ;
}

/* ---- splices ---- */

static bool is_spliced(const struct verdict *v) {
    return service_tls(v->service) == SERVICE_SPLICE;
}

static bool splices_differ(const struct verdict v[2], enum diff_kind *kind) {
    if (is_spliced(&v[0]) != is_spliced(&v[1])) {
        *kind = is_spliced(&v[1]) ? DIFF_UNREAD : DIFF_READ;
        return true;
    }
    uint64_t before = service_splice_most(v[0].service), after = service_splice_most(v[1].service);
    *kind = after > before ? DIFF_LAXER : DIFF_STRICTER;
    return before != after;
}

/* ---- all of it ---- */

bool verdicts_differ(const struct verdict v[2], enum diff_kind *kind) {
    if (v[0].allow != v[1].allow) {
        *kind = v[1].allow ? DIFF_ALLOWED : DIFF_DENIED;
        return true;
    }
    if (!v[0].allow)
        return false;
    *kind = DIFF_CREDENTIAL;
    if (!view_equal(verdict_credential(&v[0]), verdict_credential(&v[1])) &&
        (v[0].swap >= 0 || v[1].swap >= 0))
        return true;
    return splices_differ(v, kind) || verdict_limits_differ(v, kind);
}

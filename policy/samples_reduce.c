#include "policy/method.h"
#include "policy/samples.h"

#include <string.h>

/*
 * What a condition says of a request hangs on one subject alone, but for `query only`, which says no
 * as soon as one parameter makes it do so. So two samples of a subject are one when each condition on it answers the
 * same in both readings. Where another condition hears of the subject too (names that are alike), or
 * the sample is a credential, none is left out.
 */

struct reducer {
    struct samples *samples;
    const struct watched *watched; /* two of them */
    struct sample_request request;
    uint8_t *answers; /* of all conditions, for each sample of a subject */
    size_t n;
};

/* ---- one sample alone ---- */

static bool is_own(const struct condition *c, const struct subject *s) {
    switch (s->kind) {
    case SUBJECT_QUERY:
        return c->kind == CONDITION_QUERY_ONLY ||
               (c->kind == CONDITION_QUERY && view_equal(c->name, s->name));
    case SUBJECT_HEADER:
        return c->kind == CONDITION_HEADER && view_equal_nocase(c->name, s->name);
    case SUBJECT_BODY:
        return c->kind == CONDITION_BODY && view_equal(c->name, s->name);
    case SUBJECT_GRAPHQL:
        return c->kind == CONDITION_GRAPHQL;
    case SUBJECT_RPC:
        return c->kind == CONDITION_RPC || c->kind == CONDITION_MCP;
    default:
        return false;
    }
}

/* Both readings, as bits. */
static uint8_t answer(const struct condition *c, const struct condition *all,
                      const struct request_facts *f) {
    return (uint8_t)(condition_holds(c, all, f, false) | condition_holds(c, all, f, true) << 1);
}

static void answer_all(struct reducer *r, const struct subject *s, size_t i) {
    struct target target = {.path = VIEW("/")};
    struct sample_request *q = &r->request;
    size_t at = i * r->n;
    samples_request(r->samples, NULL, q);
    target.query = buf_view(&q->query);
    target.has_query = target.query.n > 0;
    struct request_facts f = {.target = &target,
                              .fields = q->fields,
                              .n_fields = q->n_fields,
                              .length_known = true,
                              .length = 1,
                              .body = &q->facts};
    for (const struct sampled_rule *each = r->samples->rules; each; each = each->next)
        for (const struct condition *c = each->rule->conditions; c; c = c->next) {
            for (size_t k = 0; k < q->facts.n_values; k++)
                q->values[k].pointer = (uint16_t)(c->pointer + !is_own(c, s));
            r->answers[at++] = answer(c, each->rule->conditions, &f);
        }
}

static bool is_credential(struct reducer *r, const struct watched *watched) {
    const struct sample_request *q = &r->request;
    struct target target = {.path = VIEW("/"), .query = buf_view(&q->query), .has_query = true};
    struct materials m = {.n = 0};
    for (size_t i = 0; i < q->n_fields; i++)
        provenance_field(q->fields[i].name, q->fields[i].value, watched, &m);
    provenance_target(&target, watched, &m);
    return m.n > 0 || m.overflow;
}

/* ---- all samples of a subject ---- */

static size_t count_conditions(const struct samples *s) {
    size_t n = 0;
    for (const struct sampled_rule *each = s->rules; each; each = each->next)
        for (const struct condition *c = each->rule->conditions; c; c = c->next)
            n++;
    return n;
}

/*
 * Whether conditions on other things answer the same whichever sample is chosen. A body that reads in two ways concerns
 * all that is asked of it, and is what each of them makes of a value that is uncertain.
 */
static bool concerns_no_other(const struct reducer *r, const struct subject *s) {
    size_t at = 0;
    for (const struct sampled_rule *each = r->samples->rules; each; each = each->next)
        for (const struct condition *c = each->rule->conditions; c; c = c->next, at++)
            for (size_t i = 1; i < s->n && !is_own(c, s); i++)
                if (s->at[i].form != SAMPLE_UNCLEAR && r->answers[i * r->n + at] != r->answers[at])
                    return false;
    return true;
}

static bool fill(struct reducer *r, struct subject *s) {
    bool harmless = true;
    r->answers = arena_array(&r->samples->arena, s->n, r->n + 1);
    r->samples->failed = r->samples->failed || !r->answers;
    for (s->chosen = 0; r->answers && s->chosen < s->n; s->chosen++) {
        answer_all(r, s, s->chosen);
        harmless =
            harmless && !is_credential(r, &r->watched[0]) && !is_credential(r, &r->watched[1]);
    }
    s->chosen = 0;
    return r->answers && harmless;
}

/* All samples left concern them alike. */
static void forget_others(struct reducer *r, const struct subject *s) {
    size_t at = 0;
    for (const struct sampled_rule *each = r->samples->rules; each; each = each->next)
        for (const struct condition *c = each->rule->conditions; c; c = c->next, at++)
            for (size_t i = 0; i < s->n && !is_own(c, s); i++)
                r->answers[i * r->n + at] = 0;
}

static void keep_different(const struct reducer *r, struct subject *s) {
    size_t kept = 1;
    for (size_t i = 1; i < s->n; i++) {
        size_t k = 0;
        while (k < kept && memcmp(r->answers + k * r->n, r->answers + i * r->n, r->n) != 0)
            k++;
        if (k < kept)
            continue;
        memmove(r->answers + kept * r->n, r->answers + i * r->n, r->n);
        s->at[kept++] = s->at[i];
    }
    s->n = kept;
}

/* ---- two values ---- */

static bool is_like_one_before(const struct reducer *r, const struct subject *s, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (s->at[k].form == SAMPLE_VALUE &&
            memcmp(r->answers + k * r->n, r->answers + i * r->n, r->n) == 0)
            return true;
    return false;
}

static void add_pair(struct samples *s, struct subject *to, const struct sample *a,
                     const struct sample *b, enum sample_form form) {
    if (to->n == SAMPLES_OF_SUBJECT) {
        s->whole = false;
        return;
    }
    to->at[to->n] = *a;
    to->at[to->n].form = form;
    to->at[to->n].second_type = b->type;
    to->at[to->n++].second = b->text.p ? b->text : VIEW("");
}

/* What is asked of several values hangs on what each of them answers: any two that differ in it. */
static void add_pairs(struct reducer *r, struct subject *s) {
    size_t values[SAMPLES_OF_SUBJECT], n = 0;
    for (size_t i = 0, all = s->n; i < all; i++)
        if (s->at[i].form == SAMPLE_VALUE && !is_like_one_before(r, s, i))
            values[n++] = i;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++) {
            add_pair(r->samples, s, &s->at[values[i]], &s->at[values[k]], SAMPLE_TWICE);
            add_pair(r->samples, s, &s->at[values[i]], &s->at[values[k]], SAMPLE_ALIKE);
        }
}

/* ---- all of it ---- */

/* By GET a GraphQL document stands in parameters. */
static bool is_read_as_body(const struct samples *s, const struct subject *subject) {
    bool found = false;
    for (size_t i = 0; i < s->n; i++)
        found = found || s->at[i].kind == SUBJECT_GRAPHQL;
    return found && subject->kind == SUBJECT_QUERY;
}

static bool is_reducible(const struct samples *s, const struct subject *subject) {
    return subject->kind != SUBJECT_STRANGER && subject->kind != SUBJECT_TYPE &&
           subject->kind != SUBJECT_SIZE && subject->kind != SUBJECT_UPGRADE &&
           subject->kind != SUBJECT_UNREADABLE && !method_is_override_name(subject->name) &&
           !is_read_as_body(s, subject);
}

static void reduce(struct reducer *r, struct subject *s) {
    bool valued = s->kind == SUBJECT_QUERY || s->kind == SUBJECT_HEADER || s->kind == SUBJECT_BODY;
    if (!fill(r, s) || !concerns_no_other(r, s))
        return;
    forget_others(r, s);
    if (valued) {
        add_pairs(r, s);
        if (!fill(r, s))
            return;
        forget_others(r, s);
    }
    keep_different(r, s);
}

void samples_reduce(struct samples *s, const struct watched watched[2]) {
    struct reducer r = {.samples = s, .watched = watched, .n = count_conditions(s)};
    buf_init(&r.request.query, 1 << 15);
    for (size_t i = 0; i < s->n && !s->failed; i++)
        if (is_reducible(s, &s->at[i]))
            reduce(&r, &s->at[i]);
    buf_free(&r.request.query);
}

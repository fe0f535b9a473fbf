#include "policy/samples.h"

#include "policy/value_test.h"

void samples_init(struct samples *s) {
    s->arena = (struct arena){.chunks = NULL};
    s->rules = NULL;
    s->n = 0;
    s->whole = true;
    s->failed = false;
}

void samples_free(struct samples *s) {
    arena_free(&s->arena);
}

/* ---- subjects ---- */

static struct subject *find_subject(struct samples *s, enum subject_kind kind, struct view name) {
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i].kind == kind && view_equal_nocase(s->at[i].name, name) &&
            (kind == SUBJECT_HEADER || view_equal(s->at[i].name, name)))
            return &s->at[i];
    if (s->n == SUBJECTS_MAX) {
        s->whole = false;
        return NULL;
    }
    struct subject *new = &s->at[s->n++];
    new->kind = kind;
    new->name = name;
    new->at[0] = (struct sample){.form = SAMPLE_ABSENT};
    new->n = 1;
    new->chosen = 0;
    return new;
}

static bool same_sample(const struct sample *a, const struct sample *b) {
    if (a->form != b->form || !view_equal(a->text, b->text) || a->type != b->type ||
        !view_equal(a->second, b->second) || a->second_type != b->second_type ||
        a->size != b->size || a->graphql != b->graphql || a->n_names != b->n_names ||
        !view_equal(a->tool, b->tool))
        return false;
    for (size_t i = 0; i < a->n_names; i++)
        if (!view_equal(a->names[i], b->names[i]))
            return false;
    return true;
}

static void add(struct samples *s, struct subject *to, struct sample sample) {
    for (size_t i = 0; i < to->n; i++)
        if (same_sample(&to->at[i], &sample))
            return;
    if (to->n == SAMPLES_OF_SUBJECT)
        s->whole = false;
    else
        to->at[to->n++] = sample;
}

static struct view copy_of(struct samples *s, struct view v) {
    struct view copy = arena_copy(&s->arena, v);
    s->failed = s->failed || !copy.p;
    return copy.p ? copy : (struct view){NULL, 0};
}

/* ---- values ---- */

static struct view other_case(struct samples *s, struct view v) {
    struct view copy = copy_of(s, v);
    uint8_t *p = (uint8_t *)copy.p;
    for (size_t i = 0; i < copy.n; i++)
        p[i] = is_alpha(p[i]) ? p[i] ^ 0x20 : p[i];
    return copy;
}

/* The glob with the same text for each star. */
static struct view fill_glob(struct samples *s, struct view glob, struct view text) {
    struct buf out;
    buf_init(&out, glob.n * (text.n + 1) + 1);
    for (size_t i = 0; i < glob.n; i++)
        if (glob.p[i] == '*')
            buf_put(&out, text);
        else
            buf_put_u8(&out, glob.p[i]);
    s->failed = s->failed || !buf_ok(&out);
    struct view copy = copy_of(s, buf_view(&out));
    buf_free(&out);
    return copy;
}

static void add_value(struct samples *s, struct subject *to, enum body_type type,
                      struct view text) {
    add(s, to, (struct sample){.form = SAMPLE_VALUE, .type = type, .text = text});
    add(s, to,
        (struct sample){.form = SAMPLE_TWICE,
                        .type = type,
                        .text = text,
                        .second = VIEW("zq9twice"),
                        .second_type = BODY_STRING});
    add(s, to, (struct sample){.form = SAMPLE_ALIKE, .type = type, .text = text});
}

static void add_types(struct samples *s, struct subject *to) {
    add_value(s, to, BODY_BOOLEAN, VIEW("true"));
    add_value(s, to, BODY_BOOLEAN, VIEW("false"));
    add_value(s, to, BODY_NUMBER, VIEW("70007"));
    add_value(s, to, BODY_NULL, to->kind == SUBJECT_BODY ? VIEW("") : VIEW("null"));
    if (to->kind != SUBJECT_BODY)
        return;
    add_value(s, to, BODY_ARRAY, (struct view){NULL, 0});
    add_value(s, to, BODY_OBJECT, (struct view){NULL, 0});
    add_value(s, to, BODY_TEXT, VIEW("true"));
    add_value(s, to, BODY_TEXT, VIEW("false"));
    add_value(s, to, BODY_TEXT, VIEW("70007"));
    add_value(s, to, BODY_TEXT, VIEW("null"));
    add_value(s, to, BODY_TEXT, VIEW(""));
}

/* A text; in a body also as the field of a form, which has no type of its own. */
static void add_text(struct samples *s, struct subject *to, struct view text) {
    add_value(s, to, BODY_STRING, text);
    if (to->kind == SUBJECT_BODY)
        add_value(s, to, BODY_TEXT, text);
}

static void add_glob(struct samples *s, struct subject *to, struct view glob) {
    struct view full = fill_glob(s, glob, VIEW("zq9"));
    add_text(s, to, full);
    add_text(s, to, other_case(s, full));
    add_text(s, to, fill_glob(s, glob, VIEW("")));
    if (to->kind == SUBJECT_BODY)
        add_types(s, to);
}

/* What two globs have in common is sampled only where one of them is a value that the other matches. */
static void check_globs(struct samples *s, const struct subject *to, struct view glob) {
    size_t matched = 0;
    for (size_t i = 0; i < to->n; i++)
        matched += to->at[i].form == SAMPLE_VALUE && to->at[i].type != BODY_TEXT &&
                   glob_match(glob, to->at[i].text);
    s->whole = s->whole && matched <= 2;
}

/* Another one of the same number. */
static void add_spelling(struct samples *s, struct subject *to, struct view number) {
    bool whole = view_find(number, '.') == number.n, plain = view_find(number, 'e') == number.n;
    struct buf out;
    buf_init(&out, number.n + 2);
    buf_put(&out, plain ? number : other_case(s, number));
    if (plain)
        buf_put_str(&out, whole ? ".0" : "0");
    struct view spelling = copy_of(s, buf_view(&out));
    buf_free(&out);
    add_value(s, to, BODY_NUMBER, spelling);
    add_text(s, to, spelling);
}

static void add_test(struct samples *s, struct subject *to, const struct test *test) {
    bool typed = to->kind == SUBJECT_BODY;
    add_text(s, to, VIEW("zq9"));
    switch (test->kind) {
    case TEST_PRESENT:
        return;
    case TEST_TYPE:
        add_types(s, to);
        return;
    case TEST_GLOB:
        check_globs(s, to, test->glob);
        add_glob(s, to, test->glob);
        return;
    case TEST_VALUES:
        break;
    }
    for (size_t i = 0; i < test->n_values; i++) {
        const struct test_value *v = &test->values[i];
        add_value(s, to, typed ? v->type : BODY_STRING, v->text);
        add_text(s, to, v->text);
        if (v->type == BODY_STRING)
            add_text(s, to, other_case(s, v->text));
        else if (v->type == BODY_NUMBER)
            add_spelling(s, to, v->text);
    }
    if (typed)
        add_types(s, to);
}

/* ---- lists of names ---- */

static void add_names(struct samples *s, struct subject *to, const struct condition *c,
                      const struct view *names, size_t n, struct view tool) {
    if (n > SAMPLE_FIELDS) {
        s->whole = false;
        return;
    }
    add(s, to,
        (struct sample){.form = SAMPLE_VALUE,
                        .graphql = c->graphql,
                        .names = names,
                        .n_names = n,
                        .tool = tool});
}

/* Each alone, all, and all with a stranger: what is allowed by "all are among these" shows in the greatest sets. */
static void add_sets(struct samples *s, struct subject *to, const struct condition *c) {
    struct view *more = arena_array(&s->arena, c->n_names + 1, sizeof *more);
    s->failed = s->failed || !more;
    if (!more)
        return;
    for (size_t i = 0; i < c->n_names; i++) {
        struct view *other = arena_alloc(&s->arena, sizeof *other);
        s->failed = s->failed || !other;
        if (!other)
            return;
        more[i] = c->names[i];
        *other = other_case(s, c->names[i]);
        add_names(s, to, c, &more[i], 1, (struct view){NULL, 0});
        add_names(s, to, c, other, 1, (struct view){NULL, 0});
    }
    more[c->n_names] = VIEW("zq9");
    add_names(s, to, c, more, c->n_names, (struct view){NULL, 0});
    add_names(s, to, c, more, c->n_names + 1, (struct view){NULL, 0});
    add_names(s, to, c, &more[c->n_names], 1, (struct view){NULL, 0});
}

static void add_tools(struct samples *s, struct subject *to, const struct condition *c) {
    static const struct view stranger = {(const uint8_t *)"zq9", 3};
    for (size_t i = 0; i < c->n_names; i++)
        add_names(s, to, c, &c->name, 1, c->names[i]);
    add_names(s, to, c, &c->name, 1, VIEW("zq9"));
    add_names(s, to, c, &c->name, 1, (struct view){NULL, 0});
    add_names(s, to, c, &stranger, 1, (struct view){NULL, 0});
}

/* ---- conditions ---- */

void samples_add_size(struct samples *s, uint64_t limit) {
    struct subject *to = find_subject(s, SUBJECT_SIZE, (struct view){NULL, 0});
    if (!to || limit == UINT64_MAX)
        return;
    add(s, to, (struct sample){.form = SAMPLE_VALUE, .size = limit > 0 ? limit : 1});
    add(s, to, (struct sample){.form = SAMPLE_VALUE, .size = limit + 1});
}

static void add_types_of(struct samples *s, const struct condition *c) {
    struct subject *to = find_subject(s, SUBJECT_TYPE, (struct view){NULL, 0});
    for (size_t i = 0; i < c->n_names && to; i++)
        add(s, to, (struct sample){.form = SAMPLE_VALUE, .text = c->names[i]});
    if (to)
        add(s, to, (struct sample){.form = SAMPLE_VALUE, .text = VIEW("zq9/zq9")});
}

static void add_content(struct samples *s, const struct condition *c) {
    bool graphql = c->kind == CONDITION_GRAPHQL;
    struct subject *to =
        find_subject(s, graphql ? SUBJECT_GRAPHQL : SUBJECT_RPC, (struct view){NULL, 0});
    if (!to)
        return;
    if (c->kind == CONDITION_MCP)
        add_tools(s, to, c);
    else
        add_sets(s, to, c);
    for (int kind = 0; graphql && kind <= GRAPHQL_SUBSCRIPTION; kind++)
        add(s, to, (struct sample){.form = SAMPLE_VALUE, .graphql = (enum graphql_kind)kind});
    add(s, to, (struct sample){.form = SAMPLE_UNCLEAR});
}

static void add_tested(struct samples *s, enum subject_kind kind, const struct condition *c) {
    struct subject *to = find_subject(s, kind, c->name);
    if (!to)
        return;
    add_test(s, to, &c->test);
    if (kind == SUBJECT_BODY)
        add(s, to, (struct sample){.form = SAMPLE_UNCLEAR});
}

static void add_mark(struct samples *s, enum subject_kind kind) {
    struct subject *to = find_subject(s, kind, (struct view){NULL, 0});
    if (to)
        add(s, to, (struct sample){.form = SAMPLE_VALUE});
}

static void add_media_types(struct samples *s, const char *const *types, size_t n) {
    struct subject *to = find_subject(s, SUBJECT_TYPE, (struct view){NULL, 0});
    for (size_t i = 0; to && i < n; i++)
        add(s, to, (struct sample){.form = SAMPLE_VALUE, .text = view_str(types[i])});
}

void samples_add_credential(struct samples *s) {
    static const char *const types[] = {"application/json", "application/x-www-form-urlencoded"};
    add_media_types(s, types, 2);
    add_mark(s, SUBJECT_UNREADABLE);
}

/* The path is a matter of path classes. */
static void add_grpc_types(struct samples *s) {
    static const char *const types[] = {"application/grpc", "application/grpc+zq9", "zq9/zq9"};
    add_media_types(s, types, 3);
}

static void add_condition(struct samples *s, const struct condition *c) {
    switch (c->kind) {
    case CONDITION_QUERY:
        add_tested(s, SUBJECT_QUERY, c);
        return;
    case CONDITION_QUERY_ONLY:
        add_mark(s, SUBJECT_STRANGER);
        return;
    case CONDITION_HEADER:
        add_tested(s, SUBJECT_HEADER, c);
        return;
    case CONDITION_TYPE:
        add_types_of(s, c);
        return;
    case CONDITION_SIZE:
        samples_add_size(s, c->limit);
        return;
    case CONDITION_BODY:
        add_tested(s, SUBJECT_BODY, c);
        return;
    case CONDITION_GRAPHQL:
    case CONDITION_RPC:
    case CONDITION_MCP:
        add_content(s, c);
        return;
    case CONDITION_WEBSOCKET:
        add_mark(s, SUBJECT_UPGRADE);
        return;
    case CONDITION_GRPC:
        add_grpc_types(s);
        return;
    }
}

void samples_add(struct samples *s, const struct rule *r) {
    struct sampled_rule *added = arena_alloc(&s->arena, sizeof *added);
    s->failed = s->failed || !added;
    if (!added)
        return;
    *added = (struct sampled_rule){r, s->rules};
    s->rules = added;
    for (const struct condition *c = r->conditions; c; c = c->next)
        add_condition(s, c);
}

/* ---- combinations ---- */

static size_t combinations(const struct samples *s) {
    size_t n = 1;
    for (size_t i = 0; i < s->n && n <= COMBINATIONS_MAX; i++)
        n *= s->at[i].n;
    return n;
}

static bool next_of_all(struct samples *s) {
    for (size_t i = 0; i < s->n; i++) {
        if (++s->at[i].chosen < s->at[i].n)
            return true;
        s->at[i].chosen = 0;
    }
    return false;
}

/* Pairs of subjects, where all together would be too many. */
static bool next_of_pairs(struct samples *s, size_t round) {
    for (size_t i = 0; i < s->n; i++)
        s->at[i].chosen = 0;
    for (size_t a = 0; a < s->n; a++)
        for (size_t b = a + 1; b < s->n; b++) {
            size_t n = s->at[a].n * s->at[b].n;
            if (round < n) {
                s->at[a].chosen = round % s->at[a].n;
                s->at[b].chosen = round / s->at[a].n;
                return true;
            }
            round -= n;
        }
    return false;
}

bool samples_next(struct samples *s, size_t *round) {
    size_t n = (*round)++;
    if (combinations(s) <= COMBINATIONS_MAX)
        return n == 0 || next_of_all(s);
    s->whole = false;
    return next_of_pairs(s, n);
}

#include "policy/errors.h"
#include "policy/rules.h"

/* Only where operations differ in their credential can a tie be about one. */
static bool has_choice(const struct service *s) {
    for (const struct operation *o = s->operations; o; o = o->next)
        if (o->credential != s->operations->credential)
            return true;
    return false;
}

static bool same_credential(const struct credential *a, const struct credential *b) {
    return a && b ? view_equal(a->name, b->name) : a == b;
}

static bool conditions_can_meet(const struct rule *a, const struct rule *b) {
    for (const struct condition *x = a->conditions; x; x = x->next)
        for (const struct condition *y = b->conditions; y; y = y->next)
            if (conditions_exclude(x, y))
                return false;
    return a->websocket == b->websocket;
}

static bool ties(const struct rule *a, const struct rule *b) {
    return a->rank == b->rank && (a->methods & b->methods) != 0 &&
           !same_credential(a->operation->credential, b->operation->credential) &&
           path_patterns_overlap(&a->path, &b->path) && conditions_can_meet(a, b);
}

static const char *name_of(const struct credential *c, struct view *name) {
    *name = c ? c->name : VIEW("none");
    return c ? "'" : "";
}

static void report(struct policy_errors *errors, const struct rule *a, const struct rule *b) {
    struct view first, second;
    const char *mark_a = name_of(a->operation->credential, &first);
    const char *mark_b = name_of(b->operation->credential, &second);
    errors_add(errors, b->at,
               "%s may match the same requests and is as specific: which credential is theirs, "
               "%s%.*s%s or %s%.*s%s?",
               PLACE_TEXT(a->at, b->at), mark_a, VIEW_ARG(first), mark_a, mark_b, VIEW_ARG(second),
               mark_b);
}

/* The first rule before r that ties with it. */
static const struct rule *find_tie(const struct service *s, const struct rule *r) {
    for (const struct operation *o = s->operations; o; o = o->next)
        for (const struct rule *q = o->rules; q; q = q->next) {
            if (q == r)
                return NULL;
            if (q->rank == r->rank && ties(q, r))
                return q;
        }
    return NULL;
}

static void check_two(const struct service *a, const struct service *b,
                      struct policy_errors *errors) {
    for (const struct operation *o = b->operations; o; o = o->next)
        for (const struct rule *r = o->rules; r; r = r->next) {
            const struct rule *q = find_tie(a, r);
            if (q)
                report(errors, q, r);
        }
}

void policy_check_ties(const struct policy *p, struct policy_errors *errors) {
    for (const struct service *b = p->services; b; b = b->next) {
        for (const struct service *a = p->services; a != b; a = a->next)
            if ((has_choice(a) || has_choice(b)) && services_share_port(a, b) &&
                services_share_host(a, b))
                check_two(a, b, errors);
        if (has_choice(b))
            check_two(b, b, errors);
    }
}

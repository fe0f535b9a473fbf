#include "policy/nearest.h"

#include "policy/policy.h"
#include "policy/rules.h"

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t nearest_distance(struct view a, struct view b) {
    size_t row[NEAREST_MAX + 1];
    a = view_head(a, NEAREST_MAX);
    b = view_head(b, NEAREST_MAX);
    for (size_t k = 0; k <= b.n; k++)
        row[k] = k;
    for (size_t i = 0; i < a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t k = 0; k < b.n; k++) {
            size_t replaced = diagonal + (to_lower(a.p[i]) != to_lower(b.p[k]));
            diagonal = row[k + 1];
            row[k + 1] = least(replaced, least(row[k], row[k + 1]) + 1);
        }
    }
    return row[b.n];
}

bool policy_has_credential(const struct policy *p, struct view name, struct view *nearest) {
    size_t best = SIZE_MAX;
    *nearest = (struct view){NULL, 0};
    for (const struct service *s = p->services; s; s = s->next)
        for (const struct credential *c = s->credentials; c; c = c->next) {
            if (view_equal(c->name, name))
                return true;
            size_t distance = nearest_distance(c->name, name);
            if (distance < best) {
                best = distance;
                *nearest = c->name;
            }
        }
    return false;
}

#include "egress/share.h"

#include "egress/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one sandbox holds; there while it holds anything. */
struct share {
    struct share *next;
    char sandbox[IDENTITY_SIZE];
    size_t n[SHARE_COUNT], all;
};

static const enum limit limits[SHARE_COUNT] = {
    [SHARE_CONNECTIONS] = LIMIT_CONNECTIONS,
    [SHARE_EXCHANGES] = LIMIT_EXCHANGES,
};

bool share_allows(const struct lane *l, size_t own, size_t taken, uint64_t limit) {
    if (taken >= limit)
        return false;
    return !l->now->shared || own < limit - taken;
}

static struct share **find(struct lane *l, const char *sandbox) {
    struct share **at = &l->shares;
    while (*at && strcmp((*at)->sandbox, sandbox) != 0)
        at = &(*at)->next;
    return at;
}

static struct share *find_or_add(struct lane *l, const char *sandbox) {
    struct share *s = *find(l, sandbox);
    if (s)
        return s;
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    snprintf(s->sandbox, sizeof s->sandbox, "%s", sandbox);
    s->next = l->shares;
    return l->shares = s;
}

static void drop_unused(struct lane *l, struct share *s) {
    if (s->all > 0)
        return;
    *find(l, s->sandbox) = s->next;
    free(s);
}

struct share *share_take(struct lane *l, const char *sandbox, enum share_of of) {
    struct share *s = find_or_add(l, sandbox);
    if (!s)
        return NULL;
    if (!share_allows(l, s->n[of], l->taken[of], lane_limit(l, limits[of]))) {
        drop_unused(l, s);
        return NULL;
    }
    share_add(l, s, of, 1);
    return s;
}

bool share_has_room(const struct lane *l, const struct share *s, enum share_of of, uint64_t limit) {
    return share_allows(l, s->n[of], l->taken[of], limit);
}

void share_add(struct lane *l, struct share *s, enum share_of of, size_t n) {
    s->n[of] += n;
    s->all += n;
    l->taken[of] += n;
}

void share_less(struct lane *l, struct share *s, enum share_of of, size_t n) {
    s->n[of] -= n;
    s->all -= n;
    l->taken[of] -= n;
    drop_unused(l, s);
}

void share_give(struct lane *l, struct share *s, enum share_of of) {
    if (s)
        share_less(l, s, of, 1);
}

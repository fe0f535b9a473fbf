#include "policy/host_table.h"

#include "policy/rules.h"

/* ---- the table ---- */

static struct view base_of(const struct host_rule *h) {
    return view_of(h->pattern.base.host, h->pattern.base_n);
}

int host_table_init(struct host_table *t, struct arena *a, size_t n) {
    size_t slots = 8;
    while (slots < 2 * n)
        slots *= 2;
    t->slots = arena_array(a, slots, sizeof(const struct host_rule *));
    t->mask = slots - 1;
    return t->slots ? 0 : ERR_MEMORY;
}

/* Where a pattern is, or the free slot where it would be. */
static size_t find_slot(const struct host_table *t, enum host_reach reach, uint32_t mark,
                        struct view base) {
    size_t i = (mark + (size_t)reach * 0x9e3779b9u) & t->mask;
    for (const struct host_rule *h; (h = t->slots[i]) != NULL; i = (i + 1) & t->mask)
        if (h->pattern.mark == mark && h->pattern.reach == reach && view_equal(base_of(h), base))
            break;
    return i;
}

void host_table_add(struct host_table *t, struct host_rule *h) {
    size_t i = find_slot(t, h->pattern.reach, h->pattern.mark, base_of(h));
    h->same = t->slots[i];
    t->slots[i] = h;
}

/* ---- the walk ---- */

static const struct host_rule *look_up(const struct host_walk *w, enum host_reach reach,
                                       uint32_t mark, struct view base) {
    return w->table->slots[find_slot(w->table, reach, mark, base)];
}

struct host_walk host_walk_of(const struct host_table *t, const struct host_facts *host) {
    struct host_walk w = {.table = t, .host = *host, .rest = host->above};
    w.next = look_up(&w, REACH_EXACT, host->mark, host->host);
    return w;
}

/* The next pattern: behind the name itself one label before the rest, then any, ever shorter. */
static bool advance(struct host_walk *w) {
    if (w->level == 0) {
        w->level = 1;
        w->next =
            w->host.above.n > 0 ? look_up(w, REACH_ONE, w->host.above_mark, w->host.above) : NULL;
        return true;
    }
    if (w->rest.n == 0)
        return false;
    w->level++;
    w->next = look_up(w, REACH_MANY, host_mark(w->rest), w->rest);
    (void)view_cut(&w->rest, '.');
    return true;
}

const struct host_rule *host_walk_next(struct host_walk *w, unsigned *level) {
    while (!w->next)
        if (!advance(w))
            return NULL;
    const struct host_rule *h = w->next;
    w->next = h->same;
    *level = w->level;
    return h;
}

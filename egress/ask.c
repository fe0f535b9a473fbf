#include "egress/ask.h"

#include <stdlib.h>

static void forget(struct lane *l, struct ask *a) {
    table_take(&l->asks, a->id);
    free(a);
}

uint32_t ask_new(struct lane *l, enum role of, uint64_t seconds,
                 void (*lost)(struct lane *l, void *ctx, enum reason why), void *ctx) {
    struct ask *a = calloc(1, sizeof *a);
    if (!a)
        return 0;
    if (++l->last_ask == 0)
        l->last_ask = 1;
    *a = (struct ask){.id = l->last_ask,
                      .of = of,
                      .deadline = loop_now(l->loop) + seconds * 1000000000u,
                      .lost = lost,
                      .ctx = ctx};
    if (table_put(&l->asks, a->id, a) != 0) {
        free(a);
        return 0;
    }
    return a->id;
}

void *ask_take(struct lane *l, enum role of, uint32_t id,
               void (*lost)(struct lane *l, void *ctx, enum reason why)) {
    struct ask *a = table_get(&l->asks, id);
    if (!a || a->of != of || a->lost != lost)
        return NULL;
    void *ctx = a->ctx;
    forget(l, a);
    return ctx;
}

void ask_forget(struct lane *l, uint32_t id) {
    struct ask *a = table_get(&l->asks, id);
    if (a)
        forget(l, a);
}

/* The reason that stands for the absence of a role. */
static enum reason absent(enum role of) {
    switch (of) {
    case ROLE_CA:
        return REASON_CA_UNAVAILABLE;
    case ROLE_DIALER:
        return REASON_DIALER_UNAVAILABLE;
    case ROLE_INSPECT:
        return REASON_INSPECT_UNAVAILABLE;
    default:
        return REASON_BROKER_UNAVAILABLE;
    }
}

static void lose(struct lane *l, struct ask *a) {
    void (*lost)(struct lane *, void *, enum reason) = a->lost;
    void *ctx = a->ctx;
    enum reason why = absent(a->of);
    forget(l, a);
    lost(l, ctx, why);
}

/* What a search over the table found; the table may not change during the walk. */
struct search {
    enum role of;
    uint64_t now; /* 0: any deadline */
    struct ask *found;
};

static void search_visit(void *ctx, uint32_t id, void *object) {
    struct search *s = ctx;
    struct ask *a = object;
    (void)id;
    if (s->now ? a->deadline <= s->now : a->of == s->of)
        s->found = a;
}

static void lose_found(struct lane *l, struct search s) {
    for (;;) {
        s.found = NULL;
        table_each(&l->asks, search_visit, &s);
        if (!s.found)
            return;
        lose(l, s.found);
    }
}

void ask_lose_all(struct lane *l, enum role of) {
    lose_found(l, (struct search){.of = of});
}

static void on_sweep(evutil_socket_t fd, short what, void *ctx) {
    struct lane *l = ctx;
    (void)fd;
    (void)what;
    lose_found(l, (struct search){.now = loop_now(l->loop)});
}

int ask_start(struct lane *l) {
    struct timeval second = {1, 0};
    l->ask_sweep = event_new(loop_base(l->loop), -1, EV_PERSIST, on_sweep, l);
    return l->ask_sweep && event_add(l->ask_sweep, &second) == 0 ? 0 : ERR_MEMORY;
}

#include "base/loop.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct loop {
    struct event_base *base;
    struct deferred *first, *last;
    uint64_t now; /* 0: not read in this turn */
    bool stopped;
};

static uint64_t clock_read(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_mono(void) {
    return clock_read(CLOCK_MONOTONIC);
}

uint64_t clock_wall(void) {
    return clock_read(CLOCK_REALTIME);
}

struct loop *loop_new(void) {
    struct loop *l = calloc(1, sizeof *l);
    struct event_config *config = event_config_new();
    if (l && config) {
        /* Each role has one thread; the changelist saves an epoll_ctl per re-armed event. */
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK |
                                          EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST |
                                          EVENT_BASE_FLAG_IGNORE_ENV);
        l->base = event_base_new_with_config(config);
    }
    if (config)
        event_config_free(config);
    if (!l || !l->base) {
        free(l);
        return NULL;
    }
    signal(SIGPIPE, SIG_IGN);
    return l;
}

void loop_free(struct loop *l) {
    if (!l)
        return;
    event_base_free(l->base);
    free(l);
}

struct event_base *loop_base(struct loop *l) {
    return l->base;
}

static void run_deferred(struct loop *l) {
    /* What is deferred while this runs is run as well: no work waits for the next event. */
    while (l->first) {
        struct deferred *d = l->first;
        l->first = d->next;
        if (!l->first)
            l->last = NULL;
        d->next = NULL;
        d->queued = false;
        d->run(d->ctx);
    }
}

int loop_turn(struct loop *l) {
    run_deferred(l);
    if (l->stopped)
        return 0;
    l->now = 0; /* it waits first */
    int result = event_base_loop(l->base, EVLOOP_ONCE);
    if (result < 0)
        return ERR_SYSTEM;
    if (result == 1)
        l->stopped = true; /* nothing left to wait for */
    run_deferred(l);
    return 0;
}

int loop_run(struct loop *l) {
    while (!l->stopped)
        if (loop_turn(l) != 0)
            return ERR_SYSTEM;
    return 0;
}

void loop_stop(struct loop *l) {
    l->stopped = true;
    event_base_loopbreak(l->base);
}

void loop_resume(struct loop *l) {
    l->stopped = false;
}

void loop_defer(struct loop *l, struct deferred *d) {
    if (d->queued)
        return;
    d->queued = true;
    d->next = d->first ? l->first : NULL;
    if (d->first) {
        l->first = d;
        l->last = l->last ? l->last : d;
        return;
    }
    if (l->last)
        l->last->next = d;
    else
        l->first = d;
    l->last = d;
}

void loop_forget(struct loop *l, struct deferred *d) {
    struct deferred *before = NULL;
    if (!d->queued)
        return;
    for (struct deferred *at = l->first; at; before = at, at = at->next) {
        if (at != d)
            continue;
        if (before)
            before->next = d->next;
        else
            l->first = d->next;
        if (l->last == d)
            l->last = before;
        d->queued = false;
        return;
    }
}

uint64_t loop_now(struct loop *l) {
    if (l->now == 0)
        l->now = clock_mono();
    return l->now;
}

/*
 * The event loop of a role: libevent's core, plus work deferred to the end of
 * the turn, where channels write what the turn has gathered in one system call.
 * libevent's evhttp, evdns, evrpc and bufferevents are used nowhere.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include "base/error.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;

/* Embedded in its owner; run is called once at the end of the turn in which it was deferred. */
struct deferred {
    void (*run)(void *ctx);
    void *ctx;
    bool queued;
    struct deferred *next;
    bool first; /* runs before what is not first, whenever that was deferred */
};

/* NULL when out of memory or descriptors. SIGPIPE is ignored from here on. */
struct loop *loop_new(void);
void loop_free(struct loop *l);
struct event_base *loop_base(struct loop *l);
/* Runs turns until loop_stop, or until no event is left. 0 or ERR_SYSTEM. */
MUST_USE int loop_run(struct loop *l);
/* One turn: waits for at most one round of events, runs them and the deferred work. */
MUST_USE int loop_turn(struct loop *l);
void loop_stop(struct loop *l);
/* Takes that back, for tests that go on with what was stopped. */
void loop_resume(struct loop *l);
/* Queues d once; a queued d stays where it is. */
void loop_defer(struct loop *l, struct deferred *d);
/* Takes d out of the queue, before its owner dies. */
void loop_forget(struct loop *l, struct deferred *d);
/* Monotonic nanoseconds, read once a turn, when it is first asked for after the wait. */
uint64_t loop_now(struct loop *l);

/* Nanoseconds of CLOCK_MONOTONIC and of CLOCK_REALTIME, read now. */
uint64_t clock_mono(void);
uint64_t clock_wall(void);

#endif

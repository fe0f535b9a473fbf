/*
 * The window of a request's body: how much of it proxy may send before it was passed on. An upload that flows is given
 * more than at first, so that pieces are longer and proxy and egress wake each other less often. What all uploads of a lane
 * have been given so is bounded, and one that comes to wait for its upstream gives it back with what leaves next.
 */
#ifndef EGRESS_WINDOW_H
#define EGRESS_WINDOW_H

#include <stddef.h>

/* Of a lane: more than that is not given on top of first windows. */
enum { WINDOWS_MORE_MAX = 4 << 20 };

struct window {
    size_t size;   /* at first: LIMIT_WINDOW */
    size_t more;   /* given on top */
    size_t owed;   /* bytes that were passed on, of which proxy was not told */
    size_t flowed; /* bytes that were passed on since it last waited */
};

void window_begin(struct window *w, size_t size);
/* n bytes were passed on. */
void window_pass(struct window *w, size_t n);
/* The upstream takes nothing more for now. */
void window_wait(struct window *w);
/* Bytes that proxy is to be told of as credit, in large steps, as each wakes it; or 0. given: what the lane's windows have on top. */
size_t window_credit(struct window *w, size_t *given);
/* The exchange is over. */
void window_end(struct window *w, size_t *given);

#endif

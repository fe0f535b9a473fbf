#include "egress/window.h"

#include "base/channel.h"

/* Credit is given when so large a part of the window is owed. */
enum { CREDIT_STEPS = 2 };

void window_begin(struct window *w, size_t size) {
    *w = (struct window){.size = size};
}

void window_pass(struct window *w, size_t n) {
    w->owed += n;
    w->flowed += n;
}

void window_wait(struct window *w) {
    w->flowed = 0;
}

/* As much again, where a whole window fits the longest message. */
static size_t most_more(const struct window *w) {
    return 2 * w->size <= CHANNEL_BODY_MAX ? w->size : CHANNEL_BODY_MAX - w->size;
}

static void grow(struct window *w, size_t *given) {
    size_t n = most_more(w) - w->more;
    if (n > WINDOWS_MORE_MAX - *given)
        return;
    w->more += n;
    w->owed += n;
    *given += n;
}

static void shrink(struct window *w, size_t *given) {
    size_t n = w->more < w->owed ? w->more : w->owed;
    w->more -= n;
    w->owed -= n;
    *given -= n;
}

static size_t step_of(const struct window *w) {
    return (w->size + w->more) / CREDIT_STEPS;
}

size_t window_credit(struct window *w, size_t *given) {
    if (w->owed < step_of(w))
        return 0;
    if (w->flowed >= w->size + w->more)
        grow(w, given);
    else
        shrink(w, given);
    /* Whole steps: what was odd in the first pieces would part all that follow. */
    size_t n = w->owed - w->owed % step_of(w);
    w->owed -= n;
    return n;
}

void window_end(struct window *w, size_t *given) {
    *given -= w->more;
    w->more = 0;
}

#include "proxy/passage.h"

#include "egress/lane_messages.h"
#include "proxy/say.h"

#include <stdlib.h>

void passage_begin(struct client *c, size_t window) {
    if (c->state != CLIENT_LEAF)
        return;
    c->passage = calloc(1, sizeof *c->passage);
    if (!c->passage) {
        client_drop(c);
        return;
    }
    c->passage->window = c->passage->credit = window;
    client_enter(c, CLIENT_PASSAGE);
    client_wake(c);
}

/* ---- from the client ---- */

enum client_step passage_step(struct client *c, struct view *input) {
    struct passage *s = c->passage;
    while (input->n > 0 && s->credit > 0) {
        size_t n = s->credit < LANE_BODY_MAX ? s->credit : LANE_BODY_MAX;
        struct view piece = view_head(*input, n);
        say_raw(c, piece);
        s->credit -= piece.n;
        *input = view_skip(*input, piece.n);
    }
    return STEP_WAIT;
}

bool passage_wants_input(const struct client *c) {
    return c->passage->credit > 0;
}

/* It is only read while there is credit: what came before has been said. */
void passage_ended(struct client *c) {
    say_raw_end(c);
    if (c->passage->upstream_over)
        client_shut(c);
}

void passage_credit(struct client *c, size_t n) {
    struct passage *s = c->passage;
    if (c->state != CLIENT_PASSAGE)
        return;
    s->credit = n < s->window - s->credit ? s->credit + n : s->window;
    client_wake(c);
}

/* ---- to the client ---- */

void passage_back(struct client *c, struct view v) {
    struct passage *s = c->passage;
    if (c->state != CLIENT_PASSAGE)
        return;
    if (s->upstream_over || v.n > s->window - s->owed) {
        client_drop(c);
        return;
    }
    s->owed += v.n;
    buf_put(client_out(c), v);
}

/* All of it is with the client's kernel: now the client can be told that there is no more. */
static void settle(struct client *c) {
    if (!c->passage->upstream_over || buf_len(&c->wire.out) > 0)
        return;
    if (c->wire.ended)
        client_shut(c);
    else
        wire_finish(&c->wire);
}

void passage_back_end(struct client *c) {
    if (c->state != CLIENT_PASSAGE || c->passage->upstream_over)
        return;
    c->passage->upstream_over = true;
    settle(c);
}

void passage_flushed(struct client *c) {
    struct passage *s = c->passage;
    /* The first of what is gathered may be what was said before: what is surely written is the rest. */
    size_t gathered = buf_len(&c->wire.out);
    size_t written = s->owed > gathered ? s->owed - gathered : 0;
    s->passed += written;
    s->owed -= written;
    if (s->passed >= s->window / 4 && !s->upstream_over) {
        say_raw_credit(c, s->passed);
        s->passed = 0;
    }
    settle(c);
}

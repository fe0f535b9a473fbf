#include "egress/inspection.h"

#include "egress/answer.h"
#include "egress/reading.h"
#include "egress/send.h"
#include "egress/share.h"

#include <stdlib.h>

/*
 * Deflate grows a byte to 1032 at most: this much at once keeps the answer within a channel's bounds.
 * Where a body grows much, pieces become smaller, so that an answer that nobody takes stays small.
 */
enum {
    DECODE_PIECE = 4096,
    PIECE_LEAST = 64,
    PIECE_FIRST = 256,
    GROWN = 64 * 1024,
    DECODE_QUEUE = 256 * 1024
};
/*
 * Bytes of all bodies that are to be looked at and not yet answered for; sandboxes have shares of it. More
 * waits in its exchange, and so does what finds the channel half full: there may lie bodies that are over.
 */
enum { AHEAD_MAX = 4 << 20 };
/* What is left to small messages when the channel is full. */
enum { OPEN_ROOM = 1 << 20 };

struct inspection {
    uint32_t id;
    struct lane *lane;
    struct exchange *exchange;
    bool decodes, reads; /* neither: it scans */
    struct buf queue;    /* decoding: not yet handed over */
    size_t in_hand;      /* handed over and not yet answered for */
    size_t piece;        /* decoding: the most to hand over next */
    size_t grown;        /* decoding: what the last piece has become so far */
    bool ended, end_sent;
};

struct inspection *inspection_new(struct exchange *ex, struct lane *l, enum inspect_job job,
                                  struct view argument, uint64_t grow_to) {
    bool may = l->inspect && channel_unsent(l->inspect) < CHANNEL_OUT_MAX - OPEN_ROOM;
    struct inspection *i = may ? calloc(1, sizeof *i) : NULL;
    if (!i)
        return NULL;
    if (++l->last_job == 0)
        l->last_job = 1;
    i->id = l->last_job;
    i->lane = l;
    i->exchange = ex;
    i->decodes = job == INSPECT_GUNZIP || job == INSPECT_INFLATE;
    i->reads = job == INSPECT_READ;
    i->piece = PIECE_FIRST;
    buf_init_cleared(&i->queue, DECODE_QUEUE);
    if (table_put(&l->jobs, i->id, i) != 0) {
        free(i);
        return NULL;
    }
    struct buf *b = channel_begin(l->inspect, INSPECT_OPEN, i->id, 0);
    buf_put_u8(b, (uint8_t)job);
    buf_put_block(b, argument);
    buf_put_u64(b, grow_to);
    channel_end(l->inspect);
    return i;
}

void inspection_more_room(struct lane *l) {
    if (l->inspect_crowded)
        loop_defer(l->loop, &l->inspect_again);
}

/* Inspect is done with n bytes of a body that it looks at. */
static void answered(struct inspection *i, size_t n) {
    i->in_hand -= n;
    share_less(i->lane, i->exchange->share, SHARE_INSPECTED, n);
    inspection_more_room(i->lane);
}

void inspection_free(struct inspection *i) {
    if (!i)
        return;
    if (!i->decodes)
        answered(i, i->in_hand);
    table_take(&i->lane->jobs, i->id);
    if (i->lane->inspect)
        channel_send(i->lane->inspect, INSPECT_CLOSE, i->id, 0, (struct view){NULL, 0});
    buf_free(&i->queue);
    free(i);
}

static void adapt_piece(struct inspection *i) {
    if (i->grown > GROWN)
        i->piece = i->piece * GROWN / i->grown;
    else if (i->grown < GROWN / 4)
        i->piece *= 2;
    if (i->piece < PIECE_LEAST)
        i->piece = PIECE_LEAST;
    if (i->piece > DECODE_PIECE)
        i->piece = DECODE_PIECE;
    i->grown = 0;
}

static void hand_over(struct inspection *i) {
    struct lane *l = i->lane;
    if (channel_is_full(l->inspect)) {
        l->inspect_crowded = true;
        return;
    }
    if (i->in_hand == 0 && buf_len(&i->queue) > 0) {
        adapt_piece(i);
        struct view piece = view_head(buf_view(&i->queue), i->piece);
        channel_send(l->inspect, INSPECT_DATA, i->id, 0, piece);
        i->in_hand = piece.n;
        buf_consume(&i->queue, piece.n);
    }
    if (i->ended && !i->end_sent && buf_len(&i->queue) == 0) {
        i->end_sent = true;
        channel_send(l->inspect, INSPECT_END, i->id, 0, (struct view){NULL, 0});
    }
}

void inspection_resume(struct inspection *i) {
    hand_over(i);
}

void inspection_feed(struct inspection *i, struct view bytes) {
    buf_put(&i->queue, bytes);
    hand_over(i);
}

static bool may_offer(const struct inspection *i) {
    struct lane *l = i->lane;
    return share_has_room(l, i->exchange->share, SHARE_INSPECTED, AHEAD_MAX) &&
           !channel_is_full(l->inspect);
}

size_t inspection_offer(struct inspection *i, struct view bytes) {
    size_t taken = 0;
    while (taken < bytes.n && i->in_hand < INSPECT_WINDOW) {
        if (!may_offer(i)) {
            i->lane->inspect_crowded = true;
            break;
        }
        size_t most = INSPECT_WINDOW - i->in_hand;
        struct view piece = view_skip(bytes, taken);
        piece = view_head(piece, most < INSPECT_PIECE_MAX ? most : INSPECT_PIECE_MAX);
        channel_send(i->lane->inspect, INSPECT_DATA, i->id, 0, piece);
        i->in_hand += piece.n;
        share_add(i->lane, i->exchange->share, SHARE_INSPECTED, piece.n);
        taken += piece.n;
    }
    return taken;
}

void inspection_end(struct inspection *i) {
    i->ended = true;
    hand_over(i);
}

size_t inspection_waiting(const struct inspection *i) {
    return buf_len(&i->queue);
}

/* ---- messages ---- */

static int take_plain(struct inspection *i, struct reader *r) {
    uint32_t consumed = read_u32(r);
    if (r->bad || !i->decodes || consumed > i->in_hand)
        return ERR_BAD;
    i->in_hand -= consumed;
    i->grown += r->rest.n;
    answer_decoded(i->exchange, r->rest);
    return 0;
}

static int take_clear(struct inspection *i, struct reader *r) {
    uint32_t n = read_u32(r);
    if (!read_done(r) || i->decodes || n > i->in_hand)
        return ERR_BAD;
    answered(i, n);
    if (i->reads)
        reading_acknowledged(i->exchange, n);
    else
        send_cleared(i->exchange, n);
    return 0;
}

static int take_found(struct inspection *i, struct reader *r) {
    struct view name = read_block(r, INSPECT_PIECE_MAX), value = read_block(r, INSPECT_PIECE_MAX);
    if (!read_done(r) || i->decodes || i->reads)
        return ERR_BAD;
    send_found(i->exchange, name, value);
    return 0;
}

static int take_bad(struct inspection *i, struct reader *r) {
    struct view why = read_block(r, INSPECT_PIECE_MAX);
    if (!read_done(r))
        return ERR_BAD;
    exchange_refuse(i->exchange,
                    i->decodes ? REASON_MALFORMED_ANSWER
                    : i->reads ? REASON_INSPECT_UNAVAILABLE
                               : REASON_MALFORMED_REQUEST,
                    why);
    return 0;
}

static int take_done(struct inspection *i) {
    if (i->reads)
        return ERR_BAD;
    if (i->decodes)
        answer_decoded_all(i->exchange);
    else
        send_scanned(i->exchange);
    return 0;
}

int inspection_take(struct lane *l, struct message *m) {
    struct inspection *i = table_get(&l->jobs, m->id);
    struct reader r = reader_of(m->body);
    /* A job that was closed a moment ago still answers. */
    if (!i)
        return 0;
    switch (m->type) {
    case INSPECT_PLAIN:
        return take_plain(i, &r);
    case INSPECT_CLEAR:
        return take_clear(i, &r);
    case INSPECT_FOUND:
        return take_found(i, &r);
    case INSPECT_BAD:
        return take_bad(i, &r);
    case INSPECT_DONE:
        return take_done(i);
    case INSPECT_FACTS:
        return i->reads ? reading_told(i->exchange, m->body) : ERR_BAD;
    default:
        return ERR_BAD;
    }
}

void inspection_lose_all(struct lane *l) {
    uint32_t id;
    struct inspection *i;
    while ((i = table_any(&l->jobs, &id)) != NULL)
        exchange_refuse(i->exchange, REASON_INSPECT_UNAVAILABLE, (struct view){NULL, 0});
}

static void visit(void *ctx, uint32_t id, void *object) {
    struct inspection *i = object;
    (void)ctx;
    (void)id;
    if (i->decodes)
        hand_over(i);
    else if (i->reads)
        reading_offer(i->exchange);
    else
        send_offer(i->exchange);
}

static void on_again(void *ctx) {
    struct lane *l = ctx;
    l->inspect_crowded = false;
    table_each(&l->jobs, visit, NULL);
}

void inspection_start(struct lane *l) {
    l->inspect_again = (struct deferred){.run = on_again, .ctx = l};
}

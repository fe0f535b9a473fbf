/*
 * The guard: masking in pieces gives what masking the whole gives, keeps the
 * length, and leaves no run of a spelling that should have been masked.
 *
 * Input: two bytes of seed for the secret, one for its length; then
 * instructions: 'c' cuts the text, 's' kind from length puts a part of a
 * spelling, anything else is itself.
 */
#include "egress/guard.h"
#include "base/secret.h"
#include "egress/spelling.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RUN = 16, TEXT_MAX = 4096, CUTS_MAX = 64 };

struct text {
    uint8_t p[TEXT_MAX];
    size_t n;
    size_t cut[CUTS_MAX], n_cuts;
};

static size_t make_secret(const uint8_t *seed, uint8_t *out) {
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=.\"\\<& '";
    size_t n = 8 + seed[2] % 60;
    uint32_t x = 0x9e3779b9u ^ seed[0] ^ (uint32_t)seed[1] << 8;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        out[i] = (uint8_t)alphabet[x % (sizeof alphabet - 1)];
    }
    return n;
}

static void put(struct text *t, struct view v) {
    v = view_head(v, TEXT_MAX - t->n);
    if (v.n)
        memcpy(t->p + t->n, v.p, v.n);
    t->n += v.n;
}

static void make_text(struct text *t, struct view secret, struct view script) {
    uint8_t spelled[SPELLING_GROWTH * 80];
    while (script.n > 0) {
        uint8_t c = script.p[0];
        if (c == 'c' && t->n_cuts < CUTS_MAX) {
            t->cut[t->n_cuts++] = t->n;
        } else if (c == 's' && script.n >= 4) {
            size_t n = spelling_write(script.p[1] % SPELLINGS, secret, spelled);
            size_t from = script.p[2] % n;
            put(t, view_slice(view_of(spelled, n), from, from + script.p[3] * 2u));
            script = view_skip(script, 3);
        } else {
            put(t, view_of(&c, 1));
        }
        script = view_skip(script, 1);
    }
}

static void check_nothing_left(struct view text, struct view secret) {
    uint8_t spelled[SPELLING_GROWTH * 80];
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        size_t n = spelling_write(kind, secret, spelled);
        size_t head = spelling_offset(kind, secret, spelling_public_head(secret, 0, RUN));
        size_t need = spelling_run(kind, secret, RUN);
        if (need > n - head)
            need = n - head;
        for (size_t i = head; i + need <= n; i++)
            if (view_search(text, view_of(spelled + i, need)) != text.n)
                abort();
    }
}

static void check_pieces(struct guard_set *set, const struct text *t, struct view whole) {
    struct guard_stream s;
    struct buf out;
    buf_init(&out, TEXT_MAX);
    guard_stream_init(&s, set);
    size_t from = 0;
    for (size_t i = 0; i <= t->n_cuts; i++) {
        size_t to = i < t->n_cuts ? t->cut[i] : t->n;
        if (guard_stream_feed(&s, view_of(t->p + from, to - from), &out) != 0)
            abort();
        if (buf_len(&out) + guard_stream_held(&s) != to || guard_stream_held(&s) > 1024)
            abort();
        from = to;
    }
    if (guard_stream_release(&s, &out) != 0 || !view_equal(buf_view(&out), whole))
        abort();
    guard_stream_free(&s);
    buf_reset(&out);
    guard_stream_init(&s, set);
    from = t->n_cuts > 0 ? t->cut[t->n_cuts - 1] : 0;
    if (guard_stream_feed(&s, view_of(t->p, from), &out) != 0 ||
        guard_stream_end(&s, view_of(t->p + from, t->n - from), &out) != 0 ||
        !view_equal(buf_view(&out), whole))
        abort();
    guard_stream_free(&s);
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool open;
    if (!open && secret_arena_open((size_t)1 << 20) != 0)
        abort();
    open = true;
    if (size < 3)
        return 0;
    uint8_t value[80], masked[TEXT_MAX];
    struct view secret = view_of(value, make_secret(data, value));
    static struct text t;
    t.n = t.n_cuts = 0;
    make_text(&t, secret, view_of(data + 3, size - 3));
    struct guard_set *set = guard_set_new(4, RUN, 0x0123456789abcdef);
    if (!set || guard_set_add(set, secret, VIEW("key"), 0, 1) != 0)
        abort();
    memcpy(masked, t.p, t.n);
    guard_mask(set, masked, t.n);
    check_nothing_left(view_of(masked, t.n), secret);
    check_pieces(set, &t, view_of(masked, t.n));
    guard_set_free(set);
    if (secret_in_use() != 0)
        abort();
    return 0;
}

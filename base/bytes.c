#include "base/bytes.h"

#include "base/eight.h"
#include "base/secret.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- views ---- */

bool bytes_equal_nocase(const uint8_t *a, const uint8_t *b, size_t n) {
    if (n == 0 || memcmp(a, b, n) == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (to_lower(a[i]) != to_lower(b[i]))
            return false;
    return true;
}

int view_compare(struct view a, struct view b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    if (order != 0)
        return order;
    return (a.n > b.n) - (a.n < b.n);
}

struct view view_slice(struct view v, size_t from, size_t to) {
    if (to > v.n)
        to = v.n;
    if (from > to)
        from = to;
    return view_head(view_skip(v, from), to - from);
}

size_t view_search(struct view v, struct view needle) {
    if (needle.n == 0)
        return 0;
    const uint8_t *at = v.n ? memmem(v.p, v.n, needle.p, needle.n) : NULL;
    return at ? (size_t)(at - v.p) : v.n;
}

int view_number(struct view v, uint64_t max, uint64_t *out) {
    uint64_t x = 0;
    if (v.n == 0)
        return ERR_BAD;
    for (size_t i = 0; i < v.n; i++) {
        if (!is_digit(v.p[i]))
            return ERR_BAD;
        uint64_t d = (uint64_t)(v.p[i] - '0');
        if (x > (UINT64_MAX - d) / 10 || x * 10 + d > max)
            return ERR_LIMIT;
        x = x * 10 + d;
    }
    *out = x;
    return 0;
}

int view_cstr(struct view v, char *out, size_t size) {
    if (view_find(v, 0) != v.n)
        return ERR_BAD;
    if (v.n >= size)
        return ERR_LIMIT;
    view_copy(v, out);
    out[v.n] = 0;
    return 0;
}

/* ---- buffers ---- */

void buf_raise(struct buf *b, size_t max) {
    if (b->max < max)
        b->max = max;
}

void buf_init_secret(struct buf *b, size_t max) {
    *b = (struct buf){.max = max, .secret = true, .cleared = true};
}

void buf_init_cleared(struct buf *b, size_t max) {
    *b = (struct buf){.max = max, .cleared = true};
}

static void memory_free(const struct buf *b) {
    if (b->secret) {
        secret_free(b->p);
        return;
    }
    if (b->cleared && b->p)
        secret_clear(b->p + b->pos, b->n - b->pos);
    free(b->p);
}

void buf_give_back(struct buf *b) {
    memory_free(b);
    b->p = NULL;
    b->pos = b->n = b->cap = 0;
    b->failed = false;
}

void buf_reset(struct buf *b) {
    if (b->cleared && b->p)
        secret_clear(b->p, b->n);
    b->pos = b->n = 0;
    b->failed = false;
}

void buf_consume(struct buf *b, size_t n) {
    assert(n <= b->n - b->pos);
    if (b->cleared && n)
        secret_clear(b->p + b->pos, n);
    b->pos += n;
    if (b->pos == b->n)
        b->pos = b->n = 0;
}

void buf_truncate(struct buf *b, size_t n) {
    size_t end = b->pos + n;
    assert(end >= b->pos && end <= b->n);
    if (b->cleared && end < b->n)
        secret_clear(b->p + end, b->n - end);
    b->n = end;
}

void buf_replace(struct buf *b, size_t at, size_t n, struct view v) {
    size_t len = buf_len(b);
    assert(at <= len && n <= len - at);
    if (v.n > n && !buf_reserve(b, v.n - n))
        return;
    uint8_t *from = b->p + b->pos + at;
    memmove(from + v.n, from + n, len - at - n);
    view_copy(v, from);
    if (b->cleared && v.n < n)
        secret_clear(b->p + b->pos + len - (n - v.n), n - v.n);
    b->n = b->n - n + v.n;
}

/* Moves unread bytes to the front. */
static void compact(struct buf *b) {
    size_t len = b->n - b->pos;
    if (b->pos == 0)
        return;
    memmove(b->p, b->p + b->pos, len);
    if (b->cleared)
        secret_clear(b->p + len, b->n - len);
    b->pos = 0;
    b->n = len;
}

static bool grow(struct buf *b, size_t need) {
    size_t cap = b->cap ? b->cap : 256;
    while (cap < need)
        cap *= 2;
    if (cap > b->max)
        cap = b->max;
    uint8_t *p = b->secret ? secret_alloc(cap) : malloc(cap);
    if (!p)
        return false;
    size_t len = b->n - b->pos;
    if (b->p)
        memcpy(p, b->p + b->pos, len);
    memory_free(b);
    b->p = p;
    b->pos = 0;
    b->n = len;
    b->cap = cap;
    return true;
}

uint8_t *buf_make_room(struct buf *b, size_t want) {
    if (b->failed || want > buf_room(b)) {
        b->failed = true;
        return NULL;
    }
    if (b->p && want > b->cap - b->n)
        compact(b);
    if ((!b->p || want > b->cap - b->n) && !grow(b, b->n - b->pos + want)) {
        b->failed = true;
        return NULL;
    }
    return b->p + b->n;
}

/* A base that the compiler knows costs no division. */
static inline size_t digits_count(uint64_t x, unsigned base) {
    size_t n = 1;
    while (x /= base)
        n++;
    return n;
}

static inline void digits_put(uint64_t x, unsigned base, char *to, size_t n) {
    for (; n > 0; x /= base)
        to[--n] = "0123456789abcdef"[x % base];
}

static inline size_t digits_of(uint64_t x, unsigned base, char *to) {
    size_t n = digits_count(x, base);
    digits_put(x, base, to, n);
    return n;
}

size_t digits_write(uint64_t x, unsigned base, char out[20]) {
    return base == 16 ? digits_of(x, 16, out) : digits_of(x, 10, out);
}

void buf_put_decimal(struct buf *b, uint64_t x) {
    size_t n = digits_count(x, 10);
    uint8_t *to = buf_reserve(b, n);
    if (!to)
        return;
    digits_put(x, 10, (char *)to, n);
    b->n += n;
}

void buf_printf(struct buf *b, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    uint8_t *p = n < 0 ? NULL : buf_reserve(b, (size_t)n + 1);
    if (!p) {
        b->failed = true;
        return;
    }
    va_start(ap, format);
    vsnprintf((char *)p, (size_t)n + 1, format, ap);
    va_end(ap);
    b->n += (size_t)n;
}

void buf_patch_u32(struct buf *b, size_t at, uint32_t x) {
    if (b->failed)
        return;
    assert(at <= buf_len(b) && buf_len(b) - at >= 4);
    x = htobe32(x);
    memcpy(b->p + b->pos + at, &x, sizeof x);
}

/* ---- characters ---- */

bool is_tchar(uint8_t c) {
    return is_alnum(c) || (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

int hex_value(uint8_t c) {
    if (is_digit(c))
        return c - '0';
    c = to_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The eight digits of four bytes: each half byte spread to a byte of its own, and all made digits together. */
static void put_eight_digits(const uint8_t *p, char *out) {
    uint32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    uint64_t x = be32toh(bytes);
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
    uint64_t letters = (x + EIGHT(6)) >> 4 & EIGHT(1);
    x = htobe64(x + EIGHT('0') + letters * ('a' - '0' - 10));
    memcpy(out, &x, sizeof x);
}

void hex_encode(struct view v, char *out) {
    for (; v.n >= 4; v = view_skip(v, 4), out += 8)
        put_eight_digits(v.p, out);
    for (; v.n > 0; v = view_skip(v, 1)) {
        *out++ = "0123456789abcdef"[v.p[0] >> 4];
        *out++ = "0123456789abcdef"[v.p[0] & 15];
    }
    *out = 0;
}

int hex_number(struct view v, uint32_t *out) {
    if (v.n == 0 || v.n > 8)
        return ERR_BAD;
    for (*out = 0; v.n > 0; v = view_skip(v, 1)) {
        int digit = hex_value(v.p[0]);
        if (digit < 0)
            return ERR_BAD;
        *out = *out << 4 | (uint32_t)digit;
    }
    return 0;
}

int hex_decode(struct view v, uint8_t *out, size_t size) {
    if (v.n / 2 != size || v.n % 2 != 0)
        return ERR_BAD;
    for (size_t i = 0; i < size; i++) {
        int high = hex_value(v.p[2 * i]), low = hex_value(v.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return ERR_BAD;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return 0;
}

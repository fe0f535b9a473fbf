#include "base/bytes.h"

#include "base/secret.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- views ---- */

bool view_equal(struct view a, struct view b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool view_equal_nocase(struct view a, struct view b) {
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (to_lower(a.p[i]) != to_lower(b.p[i]))
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

bool view_starts(struct view v, struct view prefix) {
    return v.n >= prefix.n && view_equal(view_head(v, prefix.n), prefix);
}

bool view_ends(struct view v, struct view suffix) {
    return v.n >= suffix.n && view_equal(view_skip(v, v.n - suffix.n), suffix);
}

struct view view_slice(struct view v, size_t from, size_t to) {
    if (to > v.n)
        to = v.n;
    if (from > to)
        from = to;
    return view_head(view_skip(v, from), to - from);
}

size_t view_find(struct view v, uint8_t c) {
    const uint8_t *at = v.n ? memchr(v.p, c, v.n) : NULL;
    return at ? (size_t)(at - v.p) : v.n;
}

size_t view_search(struct view v, struct view needle) {
    if (needle.n == 0)
        return 0;
    const uint8_t *at = v.n ? memmem(v.p, v.n, needle.p, needle.n) : NULL;
    return at ? (size_t)(at - v.p) : v.n;
}

static bool is_blank(uint8_t c) {
    return c == ' ' || c == '\t';
}

struct view view_trim(struct view v) {
    while (v.n > 0 && is_blank(v.p[0]))
        v = view_skip(v, 1);
    while (v.n > 0 && is_blank(v.p[v.n - 1]))
        v.n--;
    return v;
}

struct view view_cut(struct view *v, uint8_t c) {
    size_t at = view_find(*v, c);
    struct view before = view_head(*v, at);
    *v = view_skip(*v, at + 1);
    return before;
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

void buf_init(struct buf *b, size_t max) {
    *b = (struct buf){.max = max};
}

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

void buf_free(struct buf *b) {
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

struct view buf_view(const struct buf *b) {
    return view_of(b->p ? b->p + b->pos : NULL, b->n - b->pos);
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

void buf_commit(struct buf *b, size_t n) {
    assert(n <= b->cap - b->n);
    b->n += n;
}

void buf_put(struct buf *b, struct view v) {
    if (v.n == 0)
        return;
    uint8_t *p = buf_reserve(b, v.n);
    if (!p)
        return;
    memcpy(p, v.p, v.n);
    b->n += v.n;
}

static void store_u32(uint8_t *p, uint32_t x) {
    p[0] = (uint8_t)(x >> 24);
    p[1] = (uint8_t)(x >> 16);
    p[2] = (uint8_t)(x >> 8);
    p[3] = (uint8_t)x;
}

void buf_put_u8(struct buf *b, uint8_t x) {
    uint8_t *p = buf_reserve(b, 1);
    if (!p)
        return;
    *p = x;
    b->n++;
}

void buf_put_u16(struct buf *b, uint16_t x) {
    uint8_t p[2] = {(uint8_t)(x >> 8), (uint8_t)x};
    buf_put(b, view_of(p, sizeof p));
}

void buf_put_u32(struct buf *b, uint32_t x) {
    uint8_t *p = buf_reserve(b, 4);
    if (!p)
        return;
    store_u32(p, x);
    b->n += 4;
}

void buf_put_u64(struct buf *b, uint64_t x) {
    uint8_t *p = buf_reserve(b, 8);
    if (!p)
        return;
    store_u32(p, (uint32_t)(x >> 32));
    store_u32(p + 4, (uint32_t)x);
    b->n += 8;
}

/* A base that the compiler knows costs no division. */
static inline size_t digits_of(uint64_t x, unsigned base, char out[20]) {
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = "0123456789abcdef"[x % base];
    while (x /= base);
    memcpy(out, digits + at, sizeof digits - at);
    return sizeof digits - at;
}

size_t digits_write(uint64_t x, unsigned base, char out[20]) {
    return base == 16 ? digits_of(x, 16, out) : digits_of(x, 10, out);
}

void buf_put_decimal(struct buf *b, uint64_t x) {
    char digits[20];
    buf_put(b, view_of(digits, digits_of(x, 10, digits)));
}

void buf_put_block(struct buf *b, struct view v) {
    uint8_t *p = v.n <= UINT32_MAX && v.n <= SIZE_MAX - 4 ? buf_reserve(b, v.n + 4) : NULL;
    if (!p) {
        b->failed = true;
        return;
    }
    store_u32(p, (uint32_t)v.n);
    view_copy(v, p + 4);
    b->n += v.n + 4;
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
    store_u32(b->p + b->pos + at, x);
}

/* ---- readers ---- */

struct reader reader_of(struct view v) {
    return (struct reader){v, false};
}

struct view read_bytes(struct reader *r, size_t n) {
    if (r->bad || n > r->rest.n) {
        r->bad = true;
        return (struct view){NULL, 0};
    }
    struct view v = view_head(r->rest, n);
    r->rest = view_skip(r->rest, n);
    return v;
}

static inline uint64_t read_number(struct reader *r, size_t n) {
    struct view v = read_bytes(r, n);
    uint64_t x = 0;
    for (size_t i = 0; v.n > 0 && i < n; i++)
        x = x << 8 | v.p[i];
    return x;
}

uint8_t read_u8(struct reader *r) {
    return (uint8_t)read_number(r, 1);
}

uint16_t read_u16(struct reader *r) {
    return (uint16_t)read_number(r, 2);
}

uint32_t read_u32(struct reader *r) {
    return (uint32_t)read_number(r, 4);
}

uint64_t read_u64(struct reader *r) {
    return read_number(r, 8);
}

struct view read_block(struct reader *r, size_t max) {
    uint32_t n = read_u32(r);
    if (n > max)
        r->bad = true;
    return read_bytes(r, n);
}

bool read_done(const struct reader *r) {
    return !r->bad && r->rest.n == 0;
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

void hex_encode(struct view v, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < v.n; i++) {
        *out++ = digits[v.p[i] >> 4];
        *out++ = digits[v.p[i] & 15];
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

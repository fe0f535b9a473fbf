/*
 * Bytes: views of memory somebody else owns, and growing buffers with a hard maximum.
 *
 * All length arithmetic of the program is in here. Bytes from a network are
 * views, never C strings; a C string is made only by view_cstr, which refuses NUL.
 * The smallest functions stand here in full: they are called hundreds of times for a request.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include "base/error.h"

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- views: pointer and length, borrowed; p may be NULL when n is 0 ---- */

struct view {
    const uint8_t *p;
    size_t n;
};

/* A view of a string literal: VIEW("abc"). */
#define VIEW(literal) ((struct view){(const uint8_t *)(literal), sizeof(literal) - 1})

/* printf a view's bytes that are known to be text: printf("%.*s", VIEW_ARG(v)). */
#define VIEW_ARG(v) (int)(v).n, (v).n > 0 ? (const char *)(v).p : ""

static inline struct view view_of(const void *p, size_t n) {
    return (struct view){p, n};
}
/* The bytes of s without its NUL; NULL gives the empty view. */
static inline struct view view_str(const char *s) {
    return s ? view_of(s, strlen(s)) : (struct view){NULL, 0};
}
static inline bool view_is_empty(struct view v) {
    return v.n == 0;
}
static inline bool view_equal(struct view a, struct view b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
/* n bytes of a and of b, which may be NULL when n is 0; ASCII letters compare without case. */
bool bytes_equal_nocase(const uint8_t *a, const uint8_t *b, size_t n);
/* The same of two views (RFC 9110 field names, RFC 4343 host names). */
static inline bool view_equal_nocase(struct view a, struct view b) {
    return a.n == b.n && bytes_equal_nocase(a.p, b.p, a.n);
}
/* Orders like memcmp, a prefix first. */
int view_compare(struct view a, struct view b);
/* v without its first n bytes; n beyond the end gives the empty view at the end. */
static inline struct view view_skip(struct view v, size_t n) {
    if (n > v.n)
        n = v.n;
    return n > 0 ? view_of(v.p + n, v.n - n) : v;
}
/* The first n bytes of v, or all of it. */
static inline struct view view_head(struct view v, size_t n) {
    return view_of(v.p, n < v.n ? n : v.n);
}
static inline bool view_starts(struct view v, struct view prefix) {
    return v.n >= prefix.n && view_equal(view_head(v, prefix.n), prefix);
}
static inline bool view_ends(struct view v, struct view suffix) {
    return v.n >= suffix.n && view_equal(view_skip(v, v.n - suffix.n), suffix);
}
/* Copies v's bytes to out, which has room for them. An empty view may have no p, which memcpy must not see. */
static inline void view_copy(struct view v, void *out) {
    if (v.n > 0)
        memcpy(out, v.p, v.n);
}
/* v[from, to), both clamped to v. */
struct view view_slice(struct view v, size_t from, size_t to);
/* Index of the first byte c, or v.n. */
static inline size_t view_find(struct view v, uint8_t c) {
    const uint8_t *at = v.n ? (const uint8_t *)memchr(v.p, c, v.n) : NULL;
    return at ? (size_t)(at - v.p) : v.n;
}
/* Index of the first occurrence of needle, or v.n; an empty needle is found at 0. */
size_t view_search(struct view v, struct view needle);
/* v without leading and trailing SP and HTAB (OWS, RFC 9110 5.6.3). */
static inline struct view view_trim(struct view v) {
    while (v.n > 0 && (v.p[0] == ' ' || v.p[0] == '\t'))
        v = view_skip(v, 1);
    while (v.n > 0 && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\t'))
        v.n--;
    return v;
}
/* Splits v at the first c: returns what stands before it, leaves the rest behind it in *v
 * (empty when there is no c). */
static inline struct view view_cut(struct view *v, uint8_t c) {
    size_t at = view_find(*v, c);
    struct view before = view_head(*v, at);
    *v = view_skip(*v, at + 1);
    return before;
}
/* Decimal digits only, at least one, no sign, at most max. ERR_BAD or ERR_LIMIT. */
MUST_USE int view_number(struct view v, uint64_t max, uint64_t *out);
/* Copies v and a NUL into out (size bytes). ERR_BAD when v holds a NUL, ERR_LIMIT when too long. */
MUST_USE int view_cstr(struct view v, char *out, size_t size);

/* ---- buffers: owned bytes [pos, n), consumed from the front, grown at the back ---- */

/*
 * Invariant: pos <= n <= cap <= max. Memory comes from malloc, or from the
 * locked arena (base/secret.h) when the buffer was made with buf_init_secret.
 * Of such a buffer, and of one made with buf_init_cleared, bytes are cleared when
 * they are consumed, moved or given back.
 */
struct buf {
    uint8_t *p;
    size_t pos, n, cap, max;
    bool secret;  /* in the arena */
    bool cleared; /* leaves nothing behind */
    bool failed;  /* a put was refused; sticky until buf_reset */
};

/* An empty buffer that never holds more than max bytes. Allocates nothing yet. */
static inline void buf_init(struct buf *b, size_t max) {
    *b = (struct buf){.max = max};
}
/* Lets it hold up to max bytes where it could hold fewer. */
void buf_raise(struct buf *b, size_t max);
void buf_init_secret(struct buf *b, size_t max);
/* In ordinary memory, for what may hold a secret in passing. */
void buf_init_cleared(struct buf *b, size_t max);
/* Gives the memory back, if there is any; the buffer may be used again with its old maximum. */
void buf_give_back(struct buf *b);
static inline void buf_free(struct buf *b) {
    if (b->p)
        buf_give_back(b);
    b->failed = false;
}
/* Empties without giving memory back; clears the bytes where that is the buffer's way, and `failed`. */
void buf_reset(struct buf *b);
/* Unread bytes; valid until the buffer changes. */
static inline struct view buf_view(const struct buf *b) {
    return view_of(b->p ? b->p + b->pos : NULL, b->n - b->pos);
}
static inline size_t buf_len(const struct buf *b) {
    return b->n - b->pos;
}
/* Bytes that may still be put. */
static inline size_t buf_room(const struct buf *b) {
    return b->max - (b->n - b->pos);
}
/* Drops n unread bytes from the front (n <= buf_len). */
void buf_consume(struct buf *b, size_t n);
/* Keeps the first n unread bytes (n <= buf_len); the others are gone, and cleared where the buffer is. */
void buf_truncate(struct buf *b, size_t n);
/* Puts v in the place of n unread bytes from `at` on (at + n <= buf_len). Sets failed, and changes nothing, when it does not fit. */
void buf_replace(struct buf *b, size_t at, size_t n, struct view v);
/*
 * Makes room for want more bytes and gives the place to write them, or NULL
 * (over max, or no memory; sets failed). buf_commit then says how many were written.
 */
uint8_t *buf_make_room(struct buf *b,
                       size_t want); /* the same when memory must be moved or grown */
static inline uint8_t *buf_reserve(struct buf *b, size_t want) {
    /* What fits behind n fits below max as well: n + want <= cap <= max. */
    if (b->p && !b->failed && want <= b->cap - b->n)
        return b->p + b->n;
    return buf_make_room(b, want);
}
static inline void buf_commit(struct buf *b, size_t n) {
    assert(n <= b->cap - b->n);
    b->n += n;
}
/*
 * Puts append or set `failed` and append nothing; a caller may make many and
 * look once at buf_ok. Numbers are big-endian.
 */
static inline bool buf_ok(const struct buf *b) {
    return !b->failed;
}
static inline void buf_put(struct buf *b, struct view v) {
    if (v.n == 0)
        return;
    uint8_t *p = buf_reserve(b, v.n);
    if (!p)
        return;
    memcpy(p, v.p, v.n);
    b->n += v.n;
}
static inline void buf_put_str(struct buf *b, const char *s) {
    buf_put(b, view_str(s));
}
static inline void buf_put_u8(struct buf *b, uint8_t x) {
    buf_put(b, view_of(&x, sizeof x));
}
static inline void buf_put_u16(struct buf *b, uint16_t x) {
    x = htobe16(x);
    buf_put(b, view_of(&x, sizeof x));
}
static inline void buf_put_u32(struct buf *b, uint32_t x) {
    x = htobe32(x);
    buf_put(b, view_of(&x, sizeof x));
}
static inline void buf_put_u64(struct buf *b, uint64_t x) {
    x = htobe64(x);
    buf_put(b, view_of(&x, sizeof x));
}
/* Writes the number's digits in base 10 or 16, and no NUL; how many. */
size_t digits_write(uint64_t x, unsigned base, char out[20]);
/* The number in decimal digits. */
void buf_put_decimal(struct buf *b, uint64_t x);
/* A 32-bit length and the bytes. */
static inline void buf_put_block(struct buf *b, struct view v) {
    uint8_t *p = v.n <= UINT32_MAX && v.n <= SIZE_MAX - 4 ? buf_reserve(b, v.n + 4) : NULL;
    if (!p) {
        b->failed = true;
        return;
    }
    uint32_t n = htobe32((uint32_t)v.n);
    memcpy(p, &n, sizeof n);
    view_copy(v, p + 4);
    b->n += v.n + 4;
}
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Overwrites four bytes at offset `at` from pos (a length written after its content). */
void buf_patch_u32(struct buf *b, size_t at, uint32_t x);

/* ---- reading what the puts wrote ---- */

/*
 * Each take returns zero or the empty view once `bad` is set, and sets it when
 * too little is left. Views point into the source.
 */
struct reader {
    struct view rest;
    bool bad;
};

static inline struct reader reader_of(struct view v) {
    return (struct reader){v, false};
}
static inline struct view read_bytes(struct reader *r, size_t n) {
    if (r->bad || n > r->rest.n) {
        r->bad = true;
        return (struct view){NULL, 0};
    }
    struct view v = view_head(r->rest, n);
    r->rest = view_skip(r->rest, n);
    return v;
}
static inline uint8_t read_u8(struct reader *r) {
    struct view v = read_bytes(r, 1);
    return v.n > 0 ? v.p[0] : 0;
}
static inline uint16_t read_u16(struct reader *r) {
    uint16_t x = 0;
    view_copy(read_bytes(r, sizeof x), &x);
    return be16toh(x);
}
static inline uint32_t read_u32(struct reader *r) {
    uint32_t x = 0;
    view_copy(read_bytes(r, sizeof x), &x);
    return be32toh(x);
}
static inline uint64_t read_u64(struct reader *r) {
    uint64_t x = 0;
    view_copy(read_bytes(r, sizeof x), &x);
    return be64toh(x);
}
/* A block of at most max bytes; a longer one sets bad. */
static inline struct view read_block(struct reader *r, size_t max) {
    uint32_t n = read_u32(r);
    if (n > max)
        r->bad = true;
    return read_bytes(r, n);
}
/* Not bad, and nothing left. */
static inline bool read_done(const struct reader *r) {
    return !r->bad && r->rest.n == 0;
}

/* ---- characters (RFC 9110 5.6.2; locale does not matter) ---- */

bool is_tchar(uint8_t c);
static inline bool is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}
static inline bool is_alpha(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool is_alnum(uint8_t c) {
    return is_digit(c) || is_alpha(c);
}
/* Value of a hexadecimal digit, or -1. */
int hex_value(uint8_t c);
static inline uint8_t to_lower(uint8_t c) {
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}
/* Writes 2*n lower-case digits and a NUL; out must hold 2*n+1. */
void hex_encode(struct view v, char *out);
/* Exactly 2*size digits of either case. ERR_BAD otherwise. */
MUST_USE int hex_decode(struct view v, uint8_t *out, size_t size);
/* A number of one to eight digits of either case. ERR_BAD otherwise. */
MUST_USE int hex_number(struct view v, uint32_t *out);

#endif

#include "audit/record.h"

#include "base/eight.h"

/*
 * Length of the valid UTF-8 character at the beginning of v (RFC 3629: shortest form, no surrogates,
 * up to U+10FFFF) with its code, or 0.
 */
static size_t utf8_next(struct view v, uint32_t *code) {
    static const struct {
        uint8_t mask, lead;
        uint32_t least;
    } forms[] = {{0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t i = 0; i < 3; i++) {
        size_t n = i + 2;
        if ((v.p[0] & forms[i].mask) != forms[i].lead)
            continue;
        if (v.n < n)
            return 0;
        uint32_t c = v.p[0] & (uint8_t)~forms[i].mask;
        for (size_t k = 1; k < n; k++) {
            if ((v.p[k] & 0xc0) != 0x80)
                return 0;
            c = c << 6 | (v.p[k] & 0x3f);
        }
        if (c < forms[i].least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
            return 0;
        *code = c;
        return n;
    }
    return 0;
}

static uint8_t *put_code(uint32_t code, uint8_t *to) {
    static const char digits[] = "0123456789abcdef";
    *to++ = '\\';
    *to++ = 'u';
    for (int i = 0; i < 4; i++)
        *to++ = (uint8_t)digits[code >> (12 - 4 * i) & 15];
    return to;
}

static bool is_plain(uint8_t c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static uint8_t *put_character(struct view v, size_t *n, uint8_t *to) {
    uint32_t code = v.p[0];
    *n = code < 0x80 ? 0 : utf8_next(v, &code);
    *n = *n ? *n : 1;
    if (code < 0x10000)
        return put_code(code, to);
    to = put_code(0xd800 + ((code - 0x10000) >> 10), to);
    return put_code(0xdc00 + ((code - 0x10000) & 0x3ff), to);
}

/* No byte takes more room than this; a character beyond the first plane has four for its twelve. */
enum { GROWTH = sizeof "\\u0000" - 1 };

/* Eight bytes that are. */
static inline bool are_plain(uint64_t x) {
    return !(eight_control(x) | eight_is(x, '"') | eight_is(x, '\\') | eight_beyond_ascii(x));
}

/* Copies v's beginning as far as that needs no escapes, eight bytes at a time; how much of it. */
static size_t put_plain(struct view v, uint8_t *to) {
    size_t at = 0;
    for (; v.n - at >= 8; at += 8) {
        if (!are_plain(eight_at(v.p + at)))
            return at;
        memcpy(to + at, v.p + at, 8);
    }
    /* The last eight, of which the first were copied as they are. */
    if (at == v.n || v.n < 8 || !are_plain(eight_at(v.p + v.n - 8)))
        return at;
    memcpy(to + v.n - 8, v.p + v.n - 8, 8);
    return v.n;
}

/* to has room; the place behind. */
static uint8_t *put_escaped(struct view v, uint8_t *to) {
    size_t n = put_plain(v, to);
    to += n;
    for (size_t at = n; at < v.n; at += n) {
        n = 1;
        if (is_plain(v.p[at]))
            *to++ = v.p[at];
        else
            to = put_character(view_skip(v, at), &n, to);
    }
    return to;
}

void record_escape(struct view v, struct buf *out) {
    uint8_t *to = buf_reserve(out, GROWTH * v.n);
    if (to)
        buf_commit(out, (size_t)(put_escaped(v, to) - to));
}

static void put_text(struct view member, struct view value, struct buf *out) {
    uint8_t *to = buf_reserve(out, member.n + GROWTH * value.n + 1);
    if (!to)
        return;
    view_copy(member, to);
    uint8_t *end = put_escaped(value, to + member.n);
    *end++ = '"';
    buf_commit(out, (size_t)(end - to));
}

void record_json(const struct record_facts *r, struct buf *out) {
    buf_put_str(out, ",\"kind\":\"");
    buf_put_str(out, record_kind_name(r->kind));
    buf_put_u8(out, '"');
    for (uint64_t rest = r->present; rest != 0; rest &= rest - 1) {
        enum record_field f = (enum record_field)__builtin_ctzll(rest);
        struct view member = record_field_member(f);
        if (!record_field_is_number(f)) {
            put_text(member, r->text[f], out);
            continue;
        }
        buf_put(out, member);
        buf_put_decimal(out, r->number_of[f]);
    }
}

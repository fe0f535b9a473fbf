#include "audit/record.h"

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

static void put_code(uint32_t code, struct buf *out) {
    static const char digits[] = "0123456789abcdef";
    uint8_t text[6] = {'\\', 'u'};
    for (int i = 0; i < 4; i++)
        text[2 + i] = (uint8_t)digits[code >> (12 - 4 * i) & 15];
    buf_put(out, view_of(text, sizeof text));
}

static bool is_plain(uint8_t c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void record_escape(struct view v, struct buf *out) {
    while (v.n > 0) {
        size_t plain = 0;
        while (plain < v.n && is_plain(v.p[plain]))
            plain++;
        buf_put(out, view_head(v, plain));
        v = view_skip(v, plain);
        if (v.n == 0)
            return;
        uint32_t code = v.p[0];
        size_t n = code < 0x80 ? 0 : utf8_next(v, &code);
        if (code >= 0x10000) {
            put_code(0xd800 + ((code - 0x10000) >> 10), out);
            put_code(0xdc00 + ((code - 0x10000) & 0x3ff), out);
        } else {
            put_code(code, out);
        }
        v = view_skip(v, n ? n : 1);
    }
}

void record_json(const struct record_facts *r, struct buf *out) {
    buf_put_str(out, ",\"kind\":\"");
    buf_put_str(out, record_kind_name(r->kind));
    buf_put_u8(out, '"');
    for (unsigned f = 0; f < FIELD_COUNT; f++) {
        if (!(r->present & (UINT64_C(1) << f)))
            continue;
        bool number = record_field_is_number((enum record_field)f);
        buf_put_str(out, ",\"");
        buf_put_str(out, record_field_name((enum record_field)f));
        buf_put_str(out, number ? "\":" : "\":\"");
        if (number) {
            buf_put_decimal(out, r->number_of[f]);
        } else {
            record_escape(r->text[f], out);
            buf_put_u8(out, '"');
        }
    }
}

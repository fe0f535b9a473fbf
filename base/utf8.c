#include "base/utf8.h"

/* The second byte is what tells overlong forms, surrogates and points out of range. */
static bool begin(struct utf8 *u, uint8_t c) {
    u->least = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    u->most = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    u->due = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    return c < 0x80 || (c >= 0xc2 && c <= 0xf4);
}

bool utf8_byte(struct utf8 *u, uint8_t c) {
    if (u->due == 0)
        return begin(u, c);
    if (c < u->least || c > u->most)
        return false;
    u->due--;
    u->least = 0x80;
    u->most = 0xbf;
    return true;
}

bool utf8_is_text(struct view v) {
    struct utf8 u = {0, 0, 0};
    for (size_t i = 0; i < v.n; i++)
        if (!utf8_byte(&u, v.p[i]))
            return false;
    return u.due == 0;
}

void utf8_put(struct buf *out, uint32_t point) {
    if (point < 0x80) {
        buf_put_u8(out, (uint8_t)point);
        return;
    }
    if (point < 0x800) {
        buf_put_u8(out, (uint8_t)(0xc0 | point >> 6));
    } else {
        if (point < 0x10000) {
            buf_put_u8(out, (uint8_t)(0xe0 | point >> 12));
        } else {
            buf_put_u8(out, (uint8_t)(0xf0 | point >> 18));
            buf_put_u8(out, (uint8_t)(0x80 | (point >> 12 & 63)));
        }
        buf_put_u8(out, (uint8_t)(0x80 | (point >> 6 & 63)));
    }
    buf_put_u8(out, (uint8_t)(0x80 | (point & 63)));
}

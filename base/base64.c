#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static bool is_of_url(uint8_t c) {
    return c == '-' || c == '_';
}

/* One group of four; n bytes come out (1 to 3). */
static int decode_group(const uint8_t *p, size_t n, struct buf *out) {
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        bool pad = i > n;
        int value = pad ? 0 : is_of_url(p[i]) ? -1 : base64_value(p[i]);
        if (value < 0 || (pad && p[i] != '='))
            return ERR_BAD;
        bits = bits << 6 | (uint32_t)value;
    }
    /* Spare bits that are not zero would be a second spelling of the same bytes. */
    if ((n == 1 && (bits & 0xffff)) || (n == 2 && (bits & 0xff)))
        return ERR_BAD;
    for (size_t i = 0; i < n; i++)
        buf_put_u8(out, (uint8_t)(bits >> (16 - 8 * i)));
    return buf_ok(out) ? 0 : ERR_LIMIT;
}

int base64_decode(struct view v, struct buf *out) {
    if (v.n % 4 != 0)
        return ERR_BAD;
    for (size_t i = 0; i < v.n; i += 4) {
        size_t n = 3;
        if (i + 4 == v.n)
            n -= (size_t)(v.p[i + 3] == '=') + (size_t)(v.p[i + 2] == '=' && v.p[i + 3] == '=');
        int result = decode_group(v.p + i, n, out);
        if (result != 0)
            return result;
    }
    return 0;
}

void base64_encode(struct view v, struct buf *out) {
    for (size_t i = 0; i < v.n; i += 3) {
        size_t n = v.n - i < 3 ? v.n - i : 3;
        uint32_t bits = (uint32_t)v.p[i] << 16;
        if (n > 1)
            bits |= (uint32_t)v.p[i + 1] << 8;
        if (n > 2)
            bits |= v.p[i + 2];
        for (size_t j = 0; j < 4; j++)
            buf_put_u8(out, j <= n ? (uint8_t)alphabet[bits >> (18 - 6 * j) & 63] : '=');
    }
}

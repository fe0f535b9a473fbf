#include "policy/punycode.h"

#include "base/utf8.h"

#include <string.h>

enum {
    BASE = 36,
    T_MIN = 1,
    T_MAX = 26,
    SKEW = 38,
    DAMP = 700,
    FIRST_BIAS = 72,
    FIRST_POINT = 128
};
enum { LABEL_MAX = 63, POINT_MAX = 0x10ffff };

static int digit_of(uint8_t c) {
    return is_digit(c) ? c - '0' + 26 : c >= 'a' && c <= 'z' ? c - 'a' : -1;
}

static uint32_t adapt(uint32_t delta, uint32_t points, bool first) {
    uint32_t k = 0;
    delta = first ? delta / DAMP : delta / 2;
    for (delta += delta / points; delta > (BASE - T_MIN) * T_MAX / 2; k += BASE)
        delta /= BASE - T_MIN;
    return k + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}

/* One number of variable length, added to *sum. False: it is not whole, or too large to be one of a name. */
static bool take_number(struct view *rest, uint32_t bias, uint32_t *sum) {
    const uint64_t most = (uint64_t)POINT_MAX * (LABEL_MAX + 1);
    uint64_t total = *sum, weight = 1;
    for (uint32_t k = BASE; rest->n > 0; k += BASE) {
        int digit = digit_of(rest->p[0]);
        uint32_t t = k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;
        *rest = view_skip(*rest, 1);
        if (digit < 0)
            return false;
        total += (uint64_t)digit * weight;
        if (total > most)
            return false;
        if ((uint32_t)digit < t) {
            *sum = (uint32_t)total;
            return true;
        }
        /* Beyond most only for one more digit: any but 0, which is the last, ends above. */
        weight *= BASE - t;
    }
    return false;
}

static bool is_point(uint32_t point) {
    return point <= POINT_MAX && (point < 0xd800 || point > 0xdfff);
}

/* text: of a label behind "xn--". How many code points it has; 0: it is no punycode. */
static size_t decode(struct view text, uint32_t points[LABEL_MAX]) {
    size_t n = 0, basic = text.n;
    while (basic > 0 && text.p[basic - 1] != '-')
        basic--;
    for (; n + 1 < basic; n++)
        points[n] = text.p[n];
    struct view rest = view_skip(text, basic);
    uint32_t point = FIRST_POINT, bias = FIRST_BIAS;
    for (uint32_t i = 0; rest.n > 0; i++) {
        uint32_t before = i, next = (uint32_t)n + 1;
        if (n == LABEL_MAX || !take_number(&rest, bias, &i))
            return 0;
        bias = adapt(i - before, next, before == 0);
        point += i / next;
        i %= next;
        if (!is_point(point))
            return 0;
        memmove(points + i + 1, points + i, (n - i) * sizeof *points);
        points[i] = point;
        n++;
    }
    return text.n > basic ? n : 0;
}

static bool show_label(struct view label, struct buf *out) {
    uint32_t points[LABEL_MAX];
    size_t n = 0;
    if (view_starts(label, VIEW("xn--")) && label.n <= LABEL_MAX)
        n = decode(view_skip(label, VIEW("xn--").n), points);
    for (size_t i = 0; i < n; i++)
        utf8_put(out, points[i]);
    if (n == 0)
        buf_put(out, label);
    return n > 0;
}

bool punycode_show(struct view name, struct buf *out) {
    bool differs = false;
    for (bool more = true; more;) {
        more = view_find(name, '.') < name.n;
        differs |= show_label(view_cut(&name, '.'), out);
        if (more)
            buf_put_u8(out, '.');
    }
    return differs;
}

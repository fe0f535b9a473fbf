#include "policy/path_segment.h"

#include <string.h>

uint8_t path_segment_decoded(struct view *v) {
    size_t n = 1;
    uint8_t c = v->p[0];
    int high = v->n > 2 ? hex_value(v->p[1]) : -1;
    int low = v->n > 2 ? hex_value(v->p[2]) : -1;
    if (c == '%' && high >= 0 && low >= 0) {
        c = (uint8_t)(high << 4 | low);
        n = 3;
    }
    *v = view_skip(*v, n);
    return c;
}

/* White space of Unicode beyond ASCII, in UTF-8, which servers trim as well; 0: none stands there. */
static size_t wide_blank(struct view v) {
    static const char *const blanks[] = {
        "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
        "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
        "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
        "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80", "\xef\xbb\xbf"};
    uint8_t bytes[3];
    size_t n = 0;
    for (struct view rest = v; rest.n > 0 && n < sizeof bytes; n++)
        bytes[n] = path_segment_decoded(&rest);
    for (size_t i = 0; i < sizeof blanks / sizeof blanks[0]; i++)
        if (view_starts(view_of(bytes, n), view_str(blanks[i])))
            return strlen(blanks[i]);
    return 0;
}

/* Bytes, once decoded, of the blank that stands in front; 0: none does. */
static size_t blank_size(struct view v) {
    struct view rest = v;
    if (v.n == 0 || (v.p[0] != '%' && v.p[0] != '+'))
        return 0;
    return v.p[0] == '+' || path_segment_decoded(&rest) == ' ' ? 1 : wide_blank(v);
}

struct view path_segment_unpadded(struct view v) {
    for (size_t n; (n = blank_size(v)) > 0;)
        for (; n > 0; n--)
            (void)path_segment_decoded(&v);
    return v;
}

static bool ends_name(struct view tail) {
    if (tail.n == 0)
        return true;
    uint8_t c = path_segment_decoded(&tail);
    return c == ';' || c == '.' || c == '?' || c == '#';
}

bool path_segment_is_stripped(struct view tail) {
    return ends_name(path_segment_unpadded(tail));
}

bool path_tails_next_is_stripped(struct path_tails *t, struct view tail) {
    if (blank_size(tail) == 0)
        return ends_name(tail);
    if (!t->behind || tail.p >= t->behind) {
        struct view rest = path_segment_unpadded(tail);
        t->behind = rest.p;
        t->stripped = ends_name(rest);
    }
    return t->stripped;
}

bool path_segment_is_number(struct view segment, bool widely) {
    size_t n = 0;
    if (widely)
        segment = path_segment_unpadded(segment);
    while (segment.n > 0 && (!widely || n == 0 || !path_segment_is_stripped(segment))) {
        uint8_t c = widely ? path_segment_decoded(&segment) : segment.p[0];
        if (!is_digit(c))
            return false;
        n++;
        if (!widely)
            segment = view_skip(segment, 1);
    }
    return n > 0;
}

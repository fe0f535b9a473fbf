/*
 * Scanning bodies: the verdict and what is clear do not depend on the cuts, and
 * nothing is clear that was not fed.
 *
 * Input: kind, piece size; then the body (multipart with boundary "b0").
 */
#include "egress/body_scan.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct body_scan *scan(enum body_kind kind, struct view body, size_t piece,
                              enum body_step *verdict) {
    struct body_scan *s;
    uint64_t fed = 0, clear = 0;
    if (body_scan_new(kind, VIEW("b0"), NULL, &s) != 0)
        abort();
    *verdict = BODY_CLEAR;
    while (body.n > 0 && *verdict == BODY_CLEAR) {
        struct view now = view_head(body, piece);
        body = view_skip(body, piece);
        *verdict = body_scan_feed(s, now);
        fed += now.n;
        if (body_scan_clear(s) < clear || body_scan_clear(s) > fed ||
            (*verdict == BODY_CLEAR && fed - body_scan_clear(s) > BODY_HELD_MAX))
            abort();
        clear = body_scan_clear(s);
    }
    if (*verdict == BODY_CLEAR)
        *verdict = body_scan_end(s);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    enum body_kind kind = (enum body_kind)(data[0] % 5);
    struct view body = view_of(data + 2, size - 2);
    enum body_step a, b;
    struct body_scan *whole = scan(kind, body, SIZE_MAX, &a);
    struct body_scan *pieces = scan(kind, body, 1u + data[1] % 64, &b);
    if (a != b || body_scan_clear(whole) != body_scan_clear(pieces))
        abort();
    if (a == BODY_CLEAR && body_scan_clear(whole) != body.n)
        abort();
    if (a == BODY_FOUND && (!view_equal(body_scan_name(whole), body_scan_name(pieces)) ||
                            !view_equal(body_scan_value(whole), body_scan_value(pieces)) ||
                            body_scan_value(whole).n == 0))
        abort();
    if (a == BODY_BAD && !body_scan_why(whole))
        abort();
    body_scan_free(whole);
    body_scan_free(pieces);
    return 0;
}

/*
 * Decompression: no crash, no more output than allowed, and the same result
 * whatever the pieces.
 *
 * Input: format, piece size, room; then the encoded body.
 */
#include "egress/inflate.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20, RATIO = 1 << 20 };

/* Whether the body is good; what it decodes to is in out. */
static bool decode(enum inflate_format format, struct view in, size_t piece, size_t room,
                   struct buf *out) {
    struct inflate *z = inflate_new(format, MOST, RATIO);
    const char *why = NULL;
    if (!z)
        abort();
    while (in.n > 0 && !why) {
        struct view now = view_head(in, piece);
        in = view_skip(in, piece);
        for (;;) {
            uint8_t *p = buf_reserve(out, room);
            if (!p)
                abort();
            struct inflate_step step = inflate_next(z, now, p, room);
            if (step.used > now.n || step.made > room)
                abort();
            now = view_skip(now, step.used);
            why = step.why;
            if (why || (step.used == 0 && step.made == 0))
                break;
            buf_commit(out, step.made);
        }
        if (!why && now.n > 0)
            abort();
    }
    if (!why)
        why = inflate_end(z);
    inflate_free(z);
    return why == NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    struct view body = view_of(data + 3, size - 3);
    enum inflate_format format = data[0] & 1 ? INFLATE_DEFLATE : INFLATE_GZIP;
    struct buf whole, pieces;
    buf_init(&whole, MOST + (1 << 17));
    buf_init(&pieces, MOST + (1 << 17));
    bool good = decode(format, body, SIZE_MAX, 1 << 16, &whole);
    if (decode(format, body, 1u + data[1], 1u + data[2], &pieces) != good)
        abort();
    if (good && !view_equal(buf_view(&whole), buf_view(&pieces)))
        abort();
    buf_free(&whole);
    buf_free(&pieces);
    return 0;
}

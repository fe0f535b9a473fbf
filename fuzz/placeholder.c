/*
 * A placeholder in a spelling and a noise that the input chooses is found, whole
 * and in pieces of any size, and none of its random characters leaves before.
 * Layout: spelling, size of pieces, 32 random bytes, 36 choices, noise.
 */
#include "policy/placeholder.h"
#include "base/base64.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_escaped(uint8_t c, unsigned choice, struct buf *out) {
    static const char *const forms[] = {"%c",        "%%%02x", "%%%02X",   "%%25%02x",
                                        "\\u00%02x", "&#%u;",  "&#x%04X;", "\\\\u00%02X"};
    buf_printf(out, forms[choice % 8], c);
}

static void spell(unsigned how, struct view core, struct view choices, struct view noise,
                  struct buf *out) {
    struct buf plain;
    buf_init(&plain, 1024);
    for (size_t i = 0; i < core.n && how % 4 < 3; i++)
        if (how % 4 == 0)
            put_escaped(core.p[i], choices.p[i], out);
        else if (how % 4 == 1)
            buf_printf(out, "%02x", core.p[i]);
        else
            buf_put_u16(out, core.p[i]);
    if (how % 4 == 3) {
        buf_put(&plain, view_head(noise, how / 4));
        buf_put(&plain, core);
        base64_encode(buf_view(&plain), out);
    }
    buf_free(&plain);
}

static bool stream_finds(struct view v, size_t size) {
    struct placeholder_stream s;
    placeholder_stream_init(&s);
    for (; v.n > 0; v = view_skip(v, size)) {
        if (placeholder_stream_feed(&s, view_head(v, size)))
            return true;
        assert(placeholder_stream_held(&s) <= PLACEHOLDER_TAIL_SIZE);
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct view input = view_of(data, size);
    (void)placeholder_is(input);
    if (placeholder_inside(input) != stream_finds(input, input.n / 2 + 1))
        abort();
    if (size < 70)
        return 0;
    char text[PLACEHOLDER_SIZE];
    struct buf out;
    struct view noise = view_slice(input, 70, 70 + 300);
    assert(placeholder_make(VIEW(""), data + 2, text) == 0);
    buf_init(&out, size + 4096);
    buf_put(&out, noise);
    spell(data[0], view_str(text), view_slice(input, 34, 70), noise, &out);
    buf_put(&out, noise);
    assert(placeholder_is(view_str(text)));
    assert(placeholder_inside(buf_view(&out)));
    assert(stream_finds(buf_view(&out), (size_t)data[1] * 4 + 3));
    buf_free(&out);
    return 0;
}

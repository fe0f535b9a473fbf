#include "base/json.h"

#include <inttypes.h>

void json_put_string(struct buf *out, struct view v) {
    buf_put_u8(out, '"');
    for (size_t i = 0; i < v.n; i++) {
        uint8_t c = v.p[i];
        if (c < 0x20 || c >= 0x7f || c == '<')
            buf_printf(out, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else
            buf_put_u8(out, c);
    }
    buf_put_u8(out, '"');
}

static void put_name(struct buf *out, const char *name) {
    struct view done = buf_view(out);
    if (done.n > 0 && done.p[done.n - 1] != '{' && done.p[done.n - 1] != '[')
        buf_put_u8(out, ',');
    json_put_string(out, view_str(name));
    buf_put_u8(out, ':');
}

void json_put_text(struct buf *out, const char *name, struct view value) {
    put_name(out, name);
    json_put_string(out, value);
}

void json_put_number(struct buf *out, const char *name, uint64_t value) {
    put_name(out, name);
    buf_printf(out, "%" PRIu64, value);
}

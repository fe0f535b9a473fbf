#include "egress/hop.h"

static const char head_end[] = "\r\n\r\n";

void hop_write(const struct authority *target, struct buf *out) {
    buf_put_str(out, "CONNECT ");
    authority_write(target, 0, out);
    buf_put_str(out, " HTTP/1.1\r\nHost: ");
    authority_write(target, 0, out);
    buf_put_str(out, head_end);
}

/* "HTTP/1.1 200" and then SP and a phrase, or nothing (RFC 9112 4). */
static int read_status(struct view line, uint16_t *status) {
    uint64_t number;
    if (!view_starts(line, VIEW("HTTP/1.1 ")) && !view_starts(line, VIEW("HTTP/1.0 ")))
        return ERR_BAD;
    struct view rest = view_skip(line, sizeof "HTTP/1.1");
    struct view code = view_cut(&rest, ' ');
    if (code.n != 3 || view_number(code, 599, &number) != 0 || number < 100)
        return ERR_BAD;
    *status = (uint16_t)number;
    return 0;
}

/* CR only before LF and the other way round; no other control but HTAB. */
static bool head_is_clean(struct view head) {
    for (size_t i = 0; i < head.n; i++) {
        uint8_t c = head.p[i];
        bool pair = (c == '\r' && i + 1 < head.n && head.p[i + 1] == '\n') ||
                    (c == '\n' && i > 0 && head.p[i - 1] == '\r');
        if ((c < 0x20 && c != '\t' && !pair) || c == 0x7f)
            return false;
    }
    return true;
}

int hop_read(struct view bytes, size_t *size, uint16_t *status) {
    struct view end = view_str(head_end);
    size_t at = view_search(view_head(bytes, HOP_HEAD_MAX), end);
    if (at >= bytes.n || at >= HOP_HEAD_MAX)
        return bytes.n >= HOP_HEAD_MAX ? ERR_LIMIT : ERR_AGAIN;
    struct view head = view_head(bytes, at + end.n);
    if (!head_is_clean(head))
        return ERR_BAD;
    *size = head.n;
    return read_status(view_cut(&head, '\r'), status);
}

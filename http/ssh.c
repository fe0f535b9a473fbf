#include "http/ssh.h"

enum { DISCONNECT = 1, NOT_ALLOWED = 1 /* HOST_NOT_ALLOWED_TO_CONNECT */, BLOCK = 8, PADDING = 4 };

bool ssh_starts(struct view bytes) {
    return view_starts(bytes, VIEW("SSH-"));
}

void ssh_put_refusal(struct buf *out, struct view text) {
    static const uint8_t zeros[BLOCK + PADDING];
    text = view_head(text, SSH_TEXT_MAX);
    /* Type, reason, text, and an empty language (RFC 4253 11.1). */
    size_t payload = 1 + 4 + 4 + text.n + 4;
    size_t padding = BLOCK - (4 + 1 + payload) % BLOCK;
    if (padding < PADDING)
        padding += BLOCK;
    buf_put_str(out, "SSH-2.0-exeat\r\n");
    buf_put_u32(out, (uint32_t)(1 + payload + padding));
    buf_put_u8(out, (uint8_t)padding);
    buf_put_u8(out, DISCONNECT);
    buf_put_u32(out, NOT_ALLOWED);
    buf_put_block(out, text);
    buf_put_u32(out, 0);
    buf_put(out, view_of(zeros, padding));
}

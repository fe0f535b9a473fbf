#include "http/proxy_v2.h"

enum { COMMAND_LOCAL = 0x20, COMMAND_PROXY = 0x21, UNSPECIFIED = 0, TCP4 = 0x11, TCP6 = 0x21 };

static const uint8_t signature[] = "\r\n\r\n\0\r\nQUIT\n";
enum { SIGNATURE_SIZE = sizeof signature - 1 };

static struct view signature_view(void) {
    return view_of(signature, SIGNATURE_SIZE);
}

bool proxy_v2_starts(struct view bytes) {
    return view_starts(bytes, signature_view());
}

static int bad(const char *text, const char **why) {
    *why = text;
    return ERR_BAD;
}

/* What comes before the addresses, as far as it is there. */
static int check_start(struct view bytes, const char **why) {
    if (!view_starts(signature_view(), view_head(bytes, SIGNATURE_SIZE)))
        return bad("no header of the PROXY protocol, version 2, where this peer must send one",
                   why);
    if (bytes.n > 12 && bytes.p[12] != COMMAND_LOCAL && bytes.p[12] != COMMAND_PROXY)
        return bad("a PROXY header of another version than 2, or with an unknown command", why);
    if (bytes.n > 13 && bytes.p[12] == COMMAND_PROXY && bytes.p[13] != UNSPECIFIED &&
        bytes.p[13] != TCP4 && bytes.p[13] != TCP6)
        return bad("a PROXY header for something other than TCP over IPv4 or IPv6", why);
    return bytes.n >= PROXY_V2_START ? 0 : ERR_AGAIN;
}

/* A type, a length of two bytes, so many bytes; until nothing is left. */
static bool are_tlvs(struct view v) {
    struct reader r = reader_of(v);
    while (!r.bad && r.rest.n > 0) {
        read_u8(&r);
        read_bytes(&r, read_u16(&r));
    }
    return read_done(&r);
}

static void take_client(struct view addresses, size_t n, struct proxy_v2 *out) {
    out->has_client = true;
    out->client.family = n == 4 ? 4 : 6;
    view_copy(view_head(addresses, n), out->client.bytes);
    out->port = (uint16_t)(addresses.p[2 * n] << 8 | addresses.p[2 * n + 1]);
}

int proxy_v2_read(struct view bytes, size_t *used, struct proxy_v2 *out, const char **why) {
    int result = check_start(bytes, why);
    if (result != 0)
        return result;
    size_t n = (size_t)bytes.p[14] << 8 | bytes.p[15];
    bool tells = bytes.p[12] == COMMAND_PROXY && bytes.p[13] != UNSPECIFIED;
    size_t address = bytes.p[13] == TCP4 ? 4 : 16, told = tells ? 2 * address + 4 : 0;
    if (n < told)
        return bad("a PROXY header that is shorter than its addresses", why);
    if (PROXY_V2_START + n > PROXY_V2_MAX)
        return bad("a PROXY header that is too long", why);
    if (bytes.n < PROXY_V2_START + n)
        return ERR_AGAIN;
    struct view body = view_slice(bytes, PROXY_V2_START, PROXY_V2_START + n);
    /* What the relay says of a connection of its own is not for us, whatever its form. */
    if (tells && !are_tlvs(view_skip(body, told)))
        return bad("a PROXY header with a malformed extension", why);
    *out = (struct proxy_v2){.has_client = false};
    if (tells)
        take_client(body, address, out);
    *used = PROXY_V2_START + n;
    return 0;
}

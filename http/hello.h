/*
 * ClientHello reader (RFC 8446 4.1.2, RFC 6066 3): a pure function over the
 * bytes that a client has sent so far. Handles fragmented records and hellos
 * up to `max` bytes (post-quantum key shares come in pieces).
 */
#ifndef HTTP_HELLO_H
#define HTTP_HELLO_H

#include "base/bytes.h"

struct hello {
    bool has_sni;
    char sni[256]; /* exactly as sent, NUL-terminated: 1 to 255 bytes of visible ASCII */
    bool has_alpn, alpn_http1, alpn_h2;
    bool has_ech; /* ignored, but recorded */
    size_t size;  /* bytes of the records that hold the hello */
};

/*
 * 0 when the whole hello is there; ERR_AGAIN; ERR_LIMIT when it does not end
 * within max bytes; ERR_BAD with *why a static sentence fragment: not a TLS
 * handshake (SSLv2 is not), too many records, a length that lies, an SNI that is an
 * address, empty, of an unknown type or not alone in its list, an empty ALPN list, an extension twice; an SNI that was read
 * before that, or is what is wrong, is in *out then, with any bytes up to the first NUL.
 * The verdict on a prefix never changes with what follows, but for ERR_AGAIN.
 */
MUST_USE int hello_read(struct view bytes, size_t max, struct hello *out, const char **why);
/* Whether the first byte can start a TLS handshake record. */
bool hello_starts(uint8_t first);

#endif

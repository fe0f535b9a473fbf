#include "http/known.h"

#include <string.h>

struct entry {
    const char *name;
    size_t n;
    enum known known;
};

#define ENTRY(name, known)                                                                         \
    { name, sizeof name - 1, known }

/* Ordered by length, so that a look-up ends early. */
static const struct entry table[] = {
    ENTRY("te", KNOWN_HOP),
    ENTRY("host", KNOWN_HOST),
    ENTRY("proxy", KNOWN_HOP),
    ENTRY("range", KNOWN_RANGE),
    ENTRY("expect", KNOWN_EXPECT),
    ENTRY("cookie", KNOWN_COOKIE),
    ENTRY("api-key", KNOWN_API_KEY),
    ENTRY("upgrade", KNOWN_UPGRADE),
    ENTRY("trailer", KNOWN_HOP),
    ENTRY("x-api-key", KNOWN_X_API_KEY),
    ENTRY("x_api_key", KNOWN_TWIN),
    ENTRY("connection", KNOWN_CONNECTION),
    ENTRY("keep-alive", KNOWN_HOP),
    ENTRY("content-type", KNOWN_CONTENT_TYPE),
    ENTRY("content_type", KNOWN_TWIN),
    ENTRY("x-auth-token", KNOWN_X_AUTH_TOKEN),
    ENTRY("authorization", KNOWN_AUTHORIZATION),
    ENTRY("private-token", KNOWN_PRIVATE_TOKEN),
    ENTRY("content-length", KNOWN_CONTENT_LENGTH),
    ENTRY("content_length", KNOWN_TWIN),
    ENTRY("http2-settings", KNOWN_HOP),
    ENTRY("x-goog-api-key", KNOWN_X_GOOG_API_KEY),
    ENTRY("content-encoding", KNOWN_CONTENT_ENCODING),
    ENTRY("content_encoding", KNOWN_TWIN),
    ENTRY("proxy-connection", KNOWN_HOP),
    ENTRY("transfer-encoding", KNOWN_TRANSFER_ENCODING),
    ENTRY("transfer_encoding", KNOWN_TWIN),
    ENTRY("proxy-authenticate", KNOWN_PROXY_AUTHENTICATE),
    ENTRY("proxy-authorization", KNOWN_PROXY_AUTHORIZATION),
    ENTRY("proxy_authorization", KNOWN_TWIN),
    ENTRY("proxy-authentication-info", KNOWN_HOP),
};

enum known known_field(struct view name) {
    const struct entry *end = table + sizeof table / sizeof *table;
    for (const struct entry *e = table; e < end && e->n <= name.n; e++)
        if (e->n == name.n && memcmp(e->name, name.p, name.n) == 0)
            return e->known;
    return KNOWN_NOT;
}

bool known_is_taken(enum known k) {
    return k >= KNOWN_HOST && k <= KNOWN_TWIN;
}

bool known_is_single(enum known k) {
    return k >= KNOWN_AUTHORIZATION;
}

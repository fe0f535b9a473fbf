#include "http/known.h"

#include <string.h>

struct entry {
    const char *name;
    enum known known;
};

/* By the name's length. */
static const struct entry table[][5] = {
    [2] = {{"te", KNOWN_HOP}},
    [4] = {{"host", KNOWN_HOST}},
    [5] = {{"proxy", KNOWN_HOP}, {"range", KNOWN_RANGE}},
    [6] = {{"expect", KNOWN_EXPECT}, {"cookie", KNOWN_COOKIE}},
    [7] = {{"api-key", KNOWN_API_KEY}, {"upgrade", KNOWN_UPGRADE}, {"trailer", KNOWN_HOP}},
    [9] = {{"x-api-key", KNOWN_X_API_KEY}, {"x_api_key", KNOWN_TWIN}},
    [10] = {{"connection", KNOWN_CONNECTION}, {"keep-alive", KNOWN_HOP}},
    [12] = {{"content-type", KNOWN_CONTENT_TYPE},
            {"content_type", KNOWN_TWIN},
            {"x-auth-token", KNOWN_X_AUTH_TOKEN}},
    [13] = {{"authorization", KNOWN_AUTHORIZATION}, {"private-token", KNOWN_PRIVATE_TOKEN}},
    [14] = {{"content-length", KNOWN_CONTENT_LENGTH},
            {"content_length", KNOWN_TWIN},
            {"http2-settings", KNOWN_HOP},
            {"x-goog-api-key", KNOWN_X_GOOG_API_KEY}},
    [16] = {{"content-encoding", KNOWN_CONTENT_ENCODING},
            {"content_encoding", KNOWN_TWIN},
            {"proxy-connection", KNOWN_HOP}},
    [17] = {{"transfer-encoding", KNOWN_TRANSFER_ENCODING}, {"transfer_encoding", KNOWN_TWIN}},
    [18] = {{"proxy-authenticate", KNOWN_PROXY_AUTHENTICATE}},
    [19] = {{"proxy-authorization", KNOWN_PROXY_AUTHORIZATION},
            {"proxy_authorization", KNOWN_TWIN}},
    [25] = {{"proxy-authentication-info", KNOWN_HOP}},
};

/* What makes '_' of '-' makes it of '.' too (PHP): "content.length" is a twin as well. */
static enum known dotted(struct view name) {
    uint8_t twin[sizeof table / sizeof *table];
    for (size_t i = 0; i < name.n; i++)
        twin[i] = name.p[i] == '.' ? '_' : name.p[i];
    for (const struct entry *e = table[name.n]; e->name; e++)
        if (e->known == KNOWN_TWIN && memcmp(e->name, twin, name.n) == 0)
            return KNOWN_TWIN;
    return KNOWN_NOT;
}

enum known known_field(struct view name) {
    if (name.n >= sizeof table / sizeof *table)
        return KNOWN_NOT;
    if (view_find(name, '.') < name.n)
        return dotted(name);
    for (const struct entry *e = table[name.n]; e->name; e++)
        if (memcmp(e->name, name.p, name.n) == 0)
            return e->known;
    return KNOWN_NOT;
}

bool known_is_taken(enum known k) {
    return k >= KNOWN_HOST && k <= KNOWN_TWIN;
}

bool known_is_single(enum known k) {
    return k >= KNOWN_AUTHORIZATION;
}

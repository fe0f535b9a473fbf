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

/*
 * What makes '_' of '-' makes it of '.' too (PHP), or of whatever is no letter and no digit (gateways of CGI):
 * "content.length" and "content+length" are twins as well.
 */
static bool is_twin(const char *twin, struct view name) {
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        if (twin[i] == '_' ? is_alnum(c) || c == '-' : c != (uint8_t)twin[i])
            return false;
    }
    return true;
}

enum known known_field(struct view name) {
    if (name.n >= sizeof table / sizeof *table)
        return KNOWN_NOT;
    for (const struct entry *e = table[name.n]; e->name; e++)
        if (e->known == KNOWN_TWIN ? is_twin(e->name, name) : memcmp(e->name, name.p, name.n) == 0)
            return e->known;
    return KNOWN_NOT;
}

bool known_is_taken(enum known k) {
    return k >= KNOWN_HOST && k <= KNOWN_TWIN;
}

bool known_is_single(enum known k) {
    return k >= KNOWN_AUTHORIZATION;
}
